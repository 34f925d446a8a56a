import CLinux
import Foundation

/// The error of a file operation that was refused.
public struct Refusal: Error, Equatable, CustomStringConvertible {
  /// The errno.
  public let number: Int32

  /// Makes a refusal with the errno.
  public init(_ number: Int32) { self.number = number }

  /// The C library's text for the errno, e.g. "Invalid argument".
  public var description: String { String(cString: strerror(number)) }
}

/// The file operations of programs, on preferences. Paths are `domain` or `domain/key`. The same
/// cases run on the bare tree (`TreeFiles`) and, through the kernel, on a real mount
/// (`MountedFiles`). An operation that is refused throws a `Refusal`.
public protocol TestFiles: AnyObject {
  /// open(2). Returns a number that stands for the open file.
  func open(_ path: String, _ flags: Int32) throws -> Int
  /// pwrite(2), or write(2) at the end for O_APPEND.
  func write(_ file: Int, _ text: String, at offset: Int) throws
  /// ftruncate(2).
  func truncate(_ file: Int, to size: Int) throws
  /// fsync(2).
  func synchronize(_ file: Int) throws
  /// pread(2) of the first MiB.
  func read(_ file: Int) throws -> String
  /// close(2).
  func close(_ file: Int)
  /// renameat2(2).
  func rename(_ old: String, _ new: String, flags: UInt32) throws
  /// unlink(2).
  func unlink(_ path: String) throws
  /// mkdir(2).
  func makeDirectory(_ path: String) throws
  /// rmdir(2).
  func removeDirectory(_ path: String) throws
  /// The names in a directory, sorted.
  func names(_ path: String) throws -> [String]
  /// stat(2).
  func status(_ path: String) throws -> TestStatus
  /// getxattr(2).
  func attribute(_ path: String, _ name: String) throws -> String
  /// setxattr(2).
  func setAttribute(_ path: String, _ name: String, _ value: String) throws
  /// link(2).
  func link(_ old: String, _ new: String) throws
  /// symlink(2).
  func makeLink(_ path: String, to target: String) throws
  /// readlink(2).
  func readLink(_ path: String) throws -> String
  /// chmod(2).
  func changeMode(_ path: String, _ mode: UInt32) throws
  /// utimensat(2): the modification time, in nanoseconds.
  func setTime(_ path: String, _ nanoseconds: Int64) throws
  /// Lets time pass. Only a mount takes that time; the bare tree has a clock that is moved.
  func pass(milliseconds: Int)
}

/// The fields of stat(2) that tests look at.
public struct TestStatus: Equatable, Sendable {
  /// st_ino.
  public var inode: UInt64
  /// st_size.
  public var size: Int
  /// Permission bits.
  public var mode: UInt32
  /// st_mtim in nanoseconds.
  public var modified: Int64

  /// Makes a status from its fields.
  public init(inode: UInt64, size: Int, mode: UInt32, modified: Int64) {
    self.inode = inode
    self.size = size
    self.mode = mode
    self.modified = modified
  }
}

extension TestFiles {
  /// Writes the text as `printf TEXT > PATH` does, in writes of `pieces` bytes at most.
  public func put(_ path: String, _ text: String, pieces: Int = .max) throws {
    let file = try open(path, O_WRONLY | O_CREAT | O_TRUNC)
    defer { close(file) }
    var offset = 0
    let bytes = Array(text.utf8)
    while offset < bytes.count {
      let piece = bytes[offset..<min(bytes.count, offset + min(pieces, bytes.count))]
      try write(file, String(decoding: piece, as: UTF8.self), at: offset)
      offset += piece.count
    }
  }

  /// Returns the text of a file, as `cat PATH` prints it.
  public func get(_ path: String) throws -> String {
    let file = try open(path, O_RDONLY)
    defer { close(file) }
    return try read(file)
  }

  /// Returns the type of a key, which is its attribute `user.prefs.type`.
  public func type(_ path: String) throws -> String { try attribute(path, "user.prefs.type") }
}

/// File operations through the kernel, below a directory.
public final class MountedFiles: TestFiles {
  private let root: String

  /// Makes the operations for files below the directory.
  public init(_ root: String) { self.root = root }

  private func path(_ name: String) -> String { "\(root)/\(name)" }

  private func checked<Number: BinaryInteger>(_ result: Number) throws -> Number {
    if result < 0 { throw Refusal(errno) }
    return result
  }

  public func open(_ name: String, _ flags: Int32) throws -> Int {
    Int(try checked(Foundation.open(path(name), flags | O_CLOEXEC, 0o600)))
  }

  public func write(_ file: Int, _ text: String, at offset: Int) throws {
    let bytes = Array(text.utf8)
    let isAppend = fcntl(Int32(file), F_GETFL) & O_APPEND != 0
    _ = try checked(
      isAppend
        ? Foundation.write(Int32(file), bytes, bytes.count)
        : pwrite(Int32(file), bytes, bytes.count, off_t(offset)))
  }

  public func truncate(_ file: Int, to size: Int) throws {
    _ = try checked(ftruncate(Int32(file), off_t(size)))
  }

  public func synchronize(_ file: Int) throws { _ = try checked(fsync(Int32(file))) }

  public func read(_ file: Int) throws -> String {
    var bytes = [UInt8](repeating: 0, count: 1 << 20)
    let count = try checked(pread(Int32(file), &bytes, bytes.count, 0))
    return String(decoding: bytes.prefix(count), as: UTF8.self)
  }

  public func close(_ file: Int) { _ = Foundation.close(Int32(file)) }

  public func rename(_ old: String, _ new: String, flags: UInt32) throws {
    _ = try checked(prefsfs_renameat2(AT_FDCWD, path(old), AT_FDCWD, path(new), flags))
  }

  public func unlink(_ name: String) throws { _ = try checked(Foundation.unlink(path(name))) }

  public func makeDirectory(_ name: String) throws { _ = try checked(mkdir(path(name), 0o700)) }

  public func removeDirectory(_ name: String) throws { _ = try checked(rmdir(path(name))) }

  public func names(_ name: String) throws -> [String] {
    guard let stream = opendir(path(name)) else { throw Refusal(errno) }
    defer { closedir(stream) }
    var names: [String] = []
    errno = 0
    while let entry = readdir(stream) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if name != ".", name != ".." { names.append(name) }
      errno = 0
    }
    if errno != 0 { throw Refusal(errno) }
    return names.sorted()
  }

  public func status(_ name: String) throws -> TestStatus {
    var status = stat()
    _ = try checked(stat(path(name), &status))
    return TestStatus(
      inode: UInt64(status.st_ino), size: Int(status.st_size),
      mode: UInt32(status.st_mode & 0o7777),
      modified: Int64(status.st_mtim.tv_sec) * 1_000_000_000 + Int64(status.st_mtim.tv_nsec))
  }

  public func attribute(_ name: String, _ attribute: String) throws -> String {
    var bytes = [UInt8](repeating: 0, count: 4096)
    let count = try checked(getxattr(path(name), attribute, &bytes, bytes.count))
    return String(decoding: bytes.prefix(count), as: UTF8.self)
  }

  public func setAttribute(_ name: String, _ attribute: String, _ value: String) throws {
    _ = try checked(setxattr(path(name), attribute, value, value.utf8.count, 0))
  }

  public func link(_ old: String, _ new: String) throws {
    _ = try checked(Foundation.link(path(old), path(new)))
  }

  public func makeLink(_ name: String, to target: String) throws {
    _ = try checked(symlink(target, path(name)))
  }

  public func readLink(_ name: String) throws -> String {
    var bytes = [CChar](repeating: 0, count: 4096)
    let count = try checked(readlink(path(name), &bytes, bytes.count))
    return String(decoding: bytes.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  public func changeMode(_ name: String, _ mode: UInt32) throws {
    _ = try checked(chmod(path(name), mode))
  }

  public func setTime(_ name: String, _ nanoseconds: Int64) throws {
    let (seconds, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
    var times = [timespec](
      repeating: timespec(tv_sec: Int(seconds), tv_nsec: Int(rest)), count: 2)
    _ = try checked(utimensat(AT_FDCWD, path(name), &times, 0))
  }

  public func pass(milliseconds: Int) { usleep(UInt32(milliseconds) * 1000 + 5000) }
}
