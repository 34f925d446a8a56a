import CLinux
import Glibc

/// System calls on paths. It has no state; any thread may use it.
public enum Files {
  /// stat(2); nil where there is nothing at the path.
  public static func status(_ path: String) throws(SystemError) -> stat? {
    try found("stat", path) { stat(path, &$0) }
  }

  /// lstat(2); nil where there is nothing at the path.
  public static func linkStatus(_ path: String) throws(SystemError) -> stat? {
    try found("lstat", path) { lstat(path, &$0) }
  }

  private static func found(
    _ name: StaticString, _ path: String, _ call: (inout stat) -> CInt
  ) throws(SystemError) -> stat? {
    var status = stat()
    let result = CallWatch.noting(path) { systemCall(name, path) { call(&status) } }
    if result == 0 { return status }
    let reason = Errno.current
    if reason == .noSuchFile || reason == .notDirectory { return nil }
    throw SystemError("\(name)", path, reason)
  }

  /// The names in a directory, in no order; nil where there is no directory. Names that are not
  /// UTF-8 are left out.
  /// - Parameters:
  ///   - withDirectories: whether directories are included, `.` and `..` too.
  ///   - includesLink: whether the symbolic link of that name is included. Where the file system
  ///     does not say what an entry is, it is asked about any.
  public static func names(
    in directory: String, withDirectories: Bool = false,
    includesLink: (String) -> Bool = { _ in true }
  ) throws(SystemError) -> [String]? {
    guard let stream = CallWatch.noting(directory, { opendir(directory) }) else {
      let reason = Errno.current
      if reason == .noSuchFile || reason == .notDirectory { return nil }
      throw SystemError("opendir", directory, reason)
    }
    defer { closedir(stream) }
    var names: [String] = []
    while let entry = CallWatch.noting(directory, { readdir(stream) }) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(validatingCString: $0) }
      }
      let kind = Int(entry.pointee.d_type)
      guard let name, withDirectories || kind != Int(DT_DIR) else { continue }
      if kind != Int(DT_LNK) && kind != Int(DT_UNKNOWN) || includesLink(name) { names.append(name) }
    }
    return names
  }

  /// realpath(3); nil where the path cannot be resolved, e.g. because a part of it does not exist.
  public static func realPath(_ path: String) -> String? {
    guard let resolved = CallWatch.noting(path, { realpath(path, nil) }) else { return nil }
    defer { free(resolved) }
    return String(cString: resolved)
  }

  /// The path with every symbolic link followed, as far as it exists. The part that does not exist
  /// yet is kept as it is.
  public static func canonicalPath(_ path: String) -> String {
    if let real = realPath(path) { return real }
    var trimmed = path[...]
    while trimmed.utf8.count > 1, trimmed.hasSuffix("/") { trimmed = trimmed.dropLast() }
    let parent = parent(of: String(trimmed))
    let name = trimmed.split(separator: "/").last.map(String.init) ?? ""
    if parent == String(trimmed) { return parent }
    let head = canonicalPath(parent)
    return name == "." || name.isEmpty ? head : head == "/" ? "/\(name)" : "\(head)/\(name)"
  }

  /// The symbolic links that an absolute path leads through, in the order in which they are
  /// followed: 40 at most, as in the kernel. Cost: a readlink(2) for each part of the way.
  public static func links(on path: String) -> [String] {
    var links: [String] = []
    var done = ""
    var rest = path.split(separator: "/").map(String.init)[...]
    while let part = rest.popFirst(), links.count < 40 {
      if part == "." { continue }
      if part == ".." {
        if done.isEmpty { continue }
        done = parent(of: done) == "/" ? "" : parent(of: done)
        continue
      }
      guard let target = linkTarget("\(done)/\(part)") else {
        done += "/\(part)"
        continue
      }
      links.append("\(done)/\(part)")
      if target.hasPrefix("/") { done = "" }
      rest = target.split(separator: "/").map(String.init)[...] + rest
    }
    return links
  }

  /// readlink(2); nil where there is no symbolic link at the path.
  public static func linkTarget(_ path: String) -> String? {
    var count = 0
    let bytes = [UInt8](unsafeUninitializedCapacity: Int(PATH_MAX)) { buffer, initialized in
      count = buffer.withMemoryRebound(to: CChar.self) { part in
        part.baseAddress.map { start in
          CallWatch.noting(path) { readlink(path, start, part.count) }
        } ?? -1
      }
      initialized = max(count, 0)
    }
    return count < 0 ? nil : String(decoding: bytes, as: UTF8.self)
  }

  /// Makes the directory and its missing parents, as `mkdir -p` does. New directories get `mode`,
  /// and the owner of what they lie in: see `Descriptor.giveToOwner`.
  public static func makeDirectories(_ path: String, mode: mode_t) throws(SystemError) {
    if try makeDirectory(path, mode) { return }
    switch Errno.current {
    case .fileExists where isDirectory(path): return
    case .noSuchFile:
      try makeDirectories(parent(of: path), mode: mode)
      if try !makeDirectory(path, mode), !isDirectory(path) { throw SystemError("mkdir", path) }
    case let reason: throw SystemError("mkdir", path, reason)
    }
  }

  /// - Returns: whether mkdir(2) made it; if not, errno says why.
  private static func makeDirectory(_ path: String, _ mode: mode_t) throws(SystemError) -> Bool {
    // "/" has no name in a parent, by which root makes a directory below.
    guard geteuid() == 0, path != "/" else {
      return CallWatch.noting(path) { systemCall("mkdir", path) { mkdir(path, mode) } } == 0
    }
    // The parent is opened once: a user who has put a link into the path meanwhile does not get a
    // directory of root's. In a parent of the user's, root's directory can only be the new one.
    guard let parent = try? Descriptor(opening: parent(of: path), prefsfs_o_path | O_DIRECTORY)
    else {
      return false
    }
    let name = path.lastIndex(of: "/").map { String(path[path.index(after: $0)...]) } ?? path
    guard systemCall("mkdir", path, { mkdirat(parent.number, name, mode) }) == 0 else {
      return false
    }
    let new = openat(parent.number, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
    if new < 0 { throw SystemError("open", path) }
    let directory = Descriptor(owning: new)
    // Whatever root's umask is: others must be able to read the machine's lists.
    try directory.changeMode(mode)
    try directory.giveToOwner(of: parent.status())
    return true
  }

  /// Whether there is a directory at the path. Links are followed.
  public static func isDirectory(_ path: String) -> Bool {
    var status = stat()
    let result = CallWatch.noting(path) { stat(path, &status) }
    return result == 0 && status.st_mode & S_IFMT == S_IFDIR
  }

  /// The path up to its last slash: `/` for an entry of the root, `.` for a path without a slash.
  public static func parent(of path: String) -> String {
    guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }

  /// rename(2).
  public static func rename(_ old: String, to new: String) throws(SystemError) {
    try CallWatch.noting(new) { () throws(SystemError) in
      try require("rename", new) { Glibc.rename(old, new) }
    }
  }

  /// Writes to what a user has named: a pipe or a device is written to directly, and the file that
  /// a symbolic link names is made where it is missing. Anything else is replaced: see `replace`.
  public static func write(_ bytes: [UInt8], to name: String) throws(SystemError) {
    let old = try status(name)
    if let old, old.st_mode & S_IFMT != S_IFREG {
      return try Descriptor(opening: name, O_WRONLY).write(bytes)
    }
    let link = old == nil ? try? linkStatus(name) : nil
    if link == nil { return try replace(name, with: bytes) }
    let file = try Descriptor(opening: name, O_WRONLY | O_CREAT | O_TRUNC, mode: 0o666)
    try file.giveToOwner(of: status(parent(of: realPath(name) ?? name)))
    try file.write(bytes)
  }

  /// Replaces the contents of a file in one step: readers see the old contents or the new. Where
  /// writing fails, e.g. for lack of space, the old file stays. The file keeps its mode, and its
  /// owner where root replaces it; a symbolic link to it stays a link. A pipe or a device gives way
  /// to the file.
  public static func replace(_ name: String, with bytes: [UInt8]) throws(SystemError) {
    let found = try status(name)
    let old = found.flatMap { $0.st_mode & S_IFMT == S_IFREG ? $0 : nil }
    let path = realPath(name) ?? name
    let temporary = "\(path).\(getpid())"
    // What a crash has left; O_EXCL follows no link that somebody has put there.
    unlink(temporary)
    do throws(SystemError) {
      // Nobody reads more than the old file showed, even for a moment.
      let mode: mode_t = old == nil ? 0o666 : 0o600
      let new = try Descriptor(opening: temporary, O_WRONLY | O_CREAT | O_EXCL, mode: mode)
      if old == nil { try new.giveToOwner(of: status(parent(of: path))) }
      if let old, geteuid() == 0 { try new.changeOwner(old.st_uid, old.st_gid) }
      try new.write(bytes)
      if let old { _ = chmod(temporary, old.st_mode & 0o7777) }
      try rename(temporary, to: path)
    } catch {
      unlink(temporary)
      throw error
    }
  }

  /// Replaces the contents of a file in one step, durably: a loss of power leaves the old file or
  /// the new one. Where it fails, the old file stays. The new one has mode 0600.
  /// - Parameters:
  ///   - temporary: the path of the new file until it is complete, in the same directory. What a
  ///     crash has left there is removed.
  ///   - prepare: is called with the new file before it is made durable, e.g. to change its mode.
  package static func replaceDurably(
    _ path: String, with bytes: [UInt8], by temporary: String,
    _ prepare: (borrowing Descriptor) throws(SystemError) -> Void = { _ in }
  ) throws(SystemError) {
    try remove(temporary)
    do throws(SystemError) {
      let new = try Descriptor(opening: temporary, O_WRONLY | O_CREAT | O_EXCL, mode: 0o600)
      try new.write(bytes)
      try prepare(new)
      try new.synchronize()
      try rename(temporary, to: path)
    } catch {
      unlink(temporary)
      throw error
    }
    try synchronizeDirectory(parent(of: path))
  }

  /// unlink(2). It is no error where there is nothing at the path.
  public static func remove(_ path: String) throws(SystemError) {
    let result = CallWatch.noting(path) { systemCall("unlink", path) { unlink(path) } }
    if result != 0, Errno.current != .noSuchFile {
      throw SystemError("unlink", path)
    }
  }

  /// Makes the entries of a directory durable (fsync(2) of the directory).
  public static func synchronizeDirectory(_ path: String) throws(SystemError) {
    try Descriptor(opening: path, O_RDONLY | O_DIRECTORY).synchronize()
  }

  /// Throws where this process may not write to the file or directory (access(2) with W_OK), e.g.
  /// EACCES or EROFS.
  public static func checkWritable(_ path: String) throws(SystemError) {
    let result = CallWatch.noting(path) { systemCall("access", path) { access(path, W_OK) } }
    if result != 0 { throw SystemError("write", path) }
  }

  /// The free bytes that this user may fill on the path's file system; nil where the file system
  /// does not tell.
  public static func freeBytes(_ path: String) throws(SystemError) -> UInt64? {
    let space = try self.space(path)
    guard space.f_blocks > 0 else { return nil }
    let blocks = geteuid() == 0 ? space.f_bfree : space.f_bavail
    let (bytes, overflow) = UInt64(blocks).multipliedReportingOverflow(by: UInt64(space.f_frsize))
    return overflow ? .max : bytes
  }

  /// The type of the path's file system, as a number of linux/magic.h (statfs(2)); nil where it
  /// cannot be found out, e.g. because there is no such path.
  public static func fileSystemKind(_ path: String) -> Int? {
    var space = statfs()
    return CallWatch.noting(path) { statfs(path, &space) } == 0 ? Int(space.f_type) : nil
  }

  /// Whether the path lies on NFS, SMB, CIFS or FUSE: inotify does not report what other machines,
  /// or the file system itself, change there, and what the kernel knows of a file may be old
  /// (numbers of linux/magic.h).
  public static func isSilent(_ path: String) -> Bool {
    guard let kind = fileSystemKind(path) else { return false }
    return [0x6969, 0x517B, 0xFF53_4D42, 0xFE53_4D42, 0x6573_5546].contains(kind)
  }

  /// statvfs(3).
  public static func space(_ path: String) throws(SystemError) -> statvfs {
    var space = statvfs()
    try CallWatch.noting(path) { () throws(SystemError) in
      try require("statvfs", path) { statvfs(path, &space) }
    }
    return space
  }

  /// The whole of a regular file; nil where there is none. Anything else, e.g. a pipe, which might
  /// never end, throws EINVAL.
  /// - Parameter limit: how many bytes the file may have; more than that throw EFBIG.
  public static func regularContents(
    _ path: String, limit: Int
  ) throws(SystemError) -> [UInt8]? {
    do throws(SystemError) {
      // Without O_NONBLOCK the opening of a pipe would wait for a writer.
      let file = try Descriptor(opening: path, O_RDONLY | O_NONBLOCK)
      guard try file.status().st_mode & S_IFMT == S_IFREG else {
        throw SystemError("read", path, .invalidArgument)
      }
      return try file.readToEnd(limit: limit)
    } catch  where error.errno == .noSuchFile || error.errno == .notDirectory {
      return nil
    }
  }

  /// The whole of a file; nil where there is none.
  /// - Parameter limit: how many bytes the file may have; more than that throw EFBIG.
  public static func contents(_ path: String, limit: Int) throws(SystemError) -> [UInt8]? {
    do {
      return try Descriptor(opening: path, O_RDONLY).readToEnd(limit: limit)
    } catch  where error.errno == .noSuchFile || error.errno == .notDirectory {
      return nil
    }
  }
}
