import Glibc
import PreferenceModel
import SystemCalls

/// The journal: what was acknowledged and may not be in the lists yet.
///
/// `PreferenceStore.docc/JournalFormat.md` has the layout of the files, what each broken state leads
/// to, and the order in which they are made, emptied and removed.
///
/// Threads: the owner calls everything but `synchronize` under its own lock.
final class Journal {
  private struct Segment: Sendable {
    var path: String
    var size: Int
    var lastSequence: UInt64
    var isSynchronized: Bool
    /// An fdatasync(2) failed: the kernel may have dropped what it could not write, and will not
    /// say so again.
    var isDoubtful = false
  }

  private let directory: String
  private var segments: [Segment]
  /// The file that records are appended to: the last segment; nil before the first record, so that
  /// a store can be read while its disk is full.
  private var active: SharedDescriptor?
  private var number: Int
  /// Files whose records have been written to others.
  private var obsolete: [String] = []
  /// The number of the last record.
  private(set) var lastSequence: UInt64

  static let magic = Array("PREFJRNL".utf8)
  private static let version: UInt32 = 4
  /// Versions that are read; a later one only adds to an earlier one.
  static let knownVersions: ClosedRange<UInt8> = 1...4
  static let headerSize = 16
  static let prefix = "journal."
  private static let largestNumber = 1 << 48
  /// Bytes after which records go to a new file, so that the old one can be removed.
  private static let segmentSize = 1 << 20
  private static let largestSegment = 64 << 20

  /// A record as it was found.
  struct Entry {
    let sequence: UInt64
    let record: JournalRecord
  }

  private static var header: [UInt8] {
    var writer = ByteWriter()
    for byte in magic { writer.append(byte) }
    writer.append(version)
    writer.append(0 as UInt32)
    return writer.bytes
  }

  /// The numbers of the files in a directory, ascending. A number that no journal reaches is left
  /// out: what has it was not made by this program.
  static func numbers(in directory: String) throws(SystemError) -> [Int] {
    (try Files.names(in: directory) ?? []).compactMap { name in
      guard name.hasPrefix(prefix), let number = Int(name.dropFirst(prefix.count)) else {
        return nil
      }
      return (1...largestNumber).contains(number) ? number : nil
    }.sorted()
  }

  /// The journal after what was found in it. No file is made before the first record.
  init(directory: String, after entries: [Entry]) throws(SystemError) {
    self.directory = directory
    let numbers = try Self.numbers(in: directory)
    lastSequence = entries.last?.sequence ?? 0
    let last = lastSequence
    segments = numbers.map {
      Segment(
        path: "\(directory)/\(Self.prefix)\($0)", size: 0, lastSequence: last, isSynchronized: false
      )
    }
    number = numbers.last ?? 0
  }

  /// A journal in the place of one whose files are gone. Its sequences go on.
  init(directory: String, after lost: borrowing Journal) throws(SystemError) {
    self.directory = directory
    lastSequence = lost.lastSequence
    segments = []
    number = max(lost.number, try Self.numbers(in: directory).last ?? 0)
  }

  /// Whether the file that records are appended to is still in its directory. Cost: two stat(2).
  var isInPlace: Bool {
    guard let active, let path = segments.last?.path else { return true }
    guard let own = try? active.value.status(), let there = try? Files.linkStatus(path) else {
      return false
    }
    return own.st_ino == there.st_ino && own.st_dev == there.st_dev
  }

  /// A new file with nothing but its header; made without the owner's lock.
  struct Fresh {
    let path: String
    fileprivate let number: Int
    fileprivate let descriptor: SharedDescriptor

    init(_ directory: String, _ number: Int) throws(SystemError) {
      self.number = number
      path = "\(directory)/\(prefix)\(number)"
      descriptor = SharedDescriptor(
        try Descriptor(opening: path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND))
      do throws(SystemError) {
        try descriptor.value.write(header)
        try Files.synchronizeDirectory(directory)
      } catch {
        do { try Files.remove(path) } catch {}
        throw error
      }
    }

    /// Writes to it before it is the journal's file.
    func write(_ bytes: [UInt8]) throws(SystemError) {
      try descriptor.value.write(bytes)
      try descriptor.value.synchronize()
    }
  }

  private func append(_ path: String) {
    segments.append(
      Segment(
        path: path, size: Self.headerSize, lastSequence: lastSequence, isSynchronized: true))
  }

  /// Appends a record; it survives every process when this returns. On an error (a full disk)
  /// the journal is as it was.
  /// - Returns: the record's number.
  func append(_ record: JournalRecord) throws(SystemError) -> UInt64 {
    let isFull = (segments.last?.size ?? 0) > Self.largestSegment
    if active == nil || isFull { begin(try Fresh(directory, number + 1)) }
    guard let active else { throw SystemError("write", directory, .inputOutput) }
    let last = segments.count - 1
    var writer = ByteWriter()
    writer.append(0 as UInt64)
    writer.append(lastSequence + 1)
    record.encode(into: &writer)
    writer.overwrite(at: 0, with: UInt32(writer.bytes.count - 16))
    writer.overwrite(at: 4, with: Checksum.crc32c(writer.bytes[8...]))
    do {
      try active.value.write(writer.bytes)
    } catch {
      do { try active.value.truncate(to: segments[last].size) } catch {}
      throw error
    }
    lastSequence += 1
    segments[last].size += writer.bytes.count
    segments[last].lastSequence = lastSequence
    segments[last].isSynchronized = false
    return lastSequence
  }

  /// The number of a new file, where the present one is large enough that the next rewrites
  /// should free it.
  func reserveSegment() -> Int? {
    guard active != nil, let size = segments.last?.size, size > Self.segmentSize else { return nil }
    number += 1
    return number
  }

  /// Records go to the new file from now on.
  func begin(_ fresh: Fresh) {
    number = max(number, fresh.number)
    active = fresh.descriptor
    append(fresh.path)
  }

  /// Every record up to the number is in the lists. Files that hold no other are to be removed by
  /// the caller, in this order, who then calls `forget`; where there are none, and the present file
  /// holds no other record, it is emptied. It never is before the older ones are gone: they would
  /// come back without what followed them.
  func release(through sequence: UInt64) throws(SystemError) -> [String] {
    let closed = active == nil ? segments[...] : segments.dropLast()
    let released = closed.prefix { $0.lastSequence <= sequence }.map(\.path)
    guard released.isEmpty, segments.count == 1, obsolete.isEmpty, let active else {
      return obsolete + released
    }
    if sequence >= lastSequence, segments[0].size > Self.headerSize {
      try active.value.truncate(to: Self.headerSize)
      segments[0].size = Self.headerSize
    }
    return []
  }

  /// The file has been removed.
  func forget(_ path: String) {
    segments.removeAll { $0.path == path }
    obsolete.removeAll { $0 == path }
  }

  /// The files whose contents are not durable yet. What a doubtful one holds is written once more,
  /// to a new file, which takes its place; the old one stays until `forget`.
  func unsynchronizedPaths() throws(SystemError) -> [String] {
    for index in segments.indices where segments[index].isDoubtful {
      number += 1
      let fresh = try Fresh(directory, number)
      do {
        let bytes = try Files.contents(segments[index].path, limit: 1 << 32) ?? []
        try fresh.descriptor.value.write(Array(bytes.dropFirst(Self.headerSize)))
      } catch {
        obsolete.append(fresh.path)
        throw error
      }
      obsolete.append(segments[index].path)
      segments[index].path = fresh.path
      segments[index].isDoubtful = false
      if index == segments.count - 1 { active = fresh.descriptor }
    }
    return segments.filter { !$0.isSynchronized }.map(\.path)
  }

  /// Notes that the files were made durable up to the record.
  func noteSynchronized(_ paths: [String], through sequence: UInt64) {
    for index in segments.indices
    where paths.contains(segments[index].path) && segments[index].lastSequence <= sequence {
      segments[index].isSynchronized = true
    }
  }

  /// Notes that the file could not be made durable.
  func noteFailure(_ path: String) {
    for index in segments.indices where segments[index].path == path {
      segments[index].isDoubtful = true
    }
  }
}
