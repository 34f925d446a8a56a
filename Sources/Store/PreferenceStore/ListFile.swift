import Glibc
import PreferenceModel
import PropertyList
import StoreAccess
import SystemCalls

/// Identifies one state of a file: a file that was changed or replaced has another identity.
struct FileIdentity: Hashable, Sendable {
  let size: Int64
  let modified: Timestamp
  let inode: UInt64
  /// The ctime: when the file, or what stat(2) says of it, last changed. No program can set it, so
  /// it shows an edit that kept size and modification time. nil in an identity that was recorded,
  /// because rename(2) changes the ctime too.
  let changed: Timestamp?

  init(size: Int64, modified: Timestamp, inode: UInt64) {
    self.size = size
    self.modified = modified
    self.inode = inode
    changed = nil
  }

  init(_ status: stat) {
    size = Int64(status.st_size)
    modified = Timestamp(status.st_mtim)
    inode = UInt64(status.st_ino)
    changed = Timestamp(status.st_ctim)
  }

  /// Whether the file may be replaced within a second without that showing: sshfs tells times in
  /// whole seconds, and has a number of its own for each path.
  var isCoarse: Bool { changed.map { $0.nanoseconds % 1_000_000_000 == 0 } ?? false }

  /// Whether a recorded identity can be of this state.
  func matches(_ recorded: FileIdentity?) -> Bool {
    guard let recorded else { return false }
    return size == recorded.size && modified == recorded.modified && inode == recorded.inode
  }
}

/// A property list on the disk: read as a whole, replaced as a whole.
///
/// `replace` leaves either the old list or the new one, whatever happens: it writes a temporary
/// file in the same directory, and calls fsync(2), rename(2), and fsync(2) of the directory. A
/// symbolic link is followed and stays, but none in the container of a sandboxed program. A process
/// that has the old list open goes on reading the old list.
struct ListFile {
  let path: String
  /// The container that the list lies in; nil if it lies in none.
  var container: String?

  /// The name of the file, which is the same on every machine that uses the home.
  var name: String { path.split(separator: "/").last.map(String.init) ?? "" }

  /// A list as it was read.
  struct Contents {
    var values: ListValues
    var format: Format
    var identity: FileIdentity
    /// The keys that are left alone because their values cannot be read, and why they cannot.
    var hidden: [Key: String] = [:]
    /// What the owner that wrote the list says of it.
    var statement: ListStatement?
  }

  enum ReadError: Error {
    case system(SystemError)
    case format(String)
  }

  /// The largest list that is read or written, in bytes.
  static let largest = 1 << 30

  /// The file's present identity; nil where there is no file.
  func identity() throws(SystemError) -> FileIdentity? { try status().map { FileIdentity($0) } }

  /// stat(2); in a container, lstat(2). nil where there is no file.
  func status() throws(SystemError) -> stat? {
    guard container != nil else { return try Files.status(path) }
    do throws(SystemError) {
      return try withPath { path throws(SystemError) in try Files.linkStatus(path) }
    } catch  where error.errno == .noSuchFile {
      return nil
    }
  }

  /// The bytes of the list.
  /// - Parameter limit: how many it may have; more than that throw EFBIG.
  func contents(limit: Int) throws(SystemError) -> [UInt8] {
    // Without O_NONBLOCK the opening of a pipe would wait for a writer.
    try opened(O_NONBLOCK).readToEnd(limit: limit)
  }

  /// Opens the list for reading; in a container, without following a link.
  private func opened(_ flags: CInt) throws(SystemError) -> Descriptor {
    let flags = O_RDONLY | flags | (container == nil ? 0 : O_NOFOLLOW)
    return try withPath { path throws(SystemError) in try Descriptor(opening: path, flags) }
  }

  /// Makes the directory of the list where it is missing; of a container, only what is in it.
  func makeDirectory(mode: mode_t) throws(SystemError) {
    if container == nil { try Files.makeDirectories(Files.parent(of: path), mode: mode) }
    try withPath(making: mode) { _ throws(SystemError) in }
  }

  /// Calls the body with a path of the list. In a container it is one through the open directory, to
  /// which no link has led: whatever the program that owns the container puts there meanwhile, no
  /// other directory is used.
  private func withPath<Result: ~Copyable>(
    making mode: mode_t? = nil, _ body: (String) throws(SystemError) -> Result
  ) throws(SystemError) -> Result {
    guard let container else { return try body(path) }
    do throws(SystemError) {
      return try Descriptor.directory(Files.parent(of: path), below: container, making: mode)
        .withPath(of: name, body)
    } catch {
      throw SystemError(error.call, path, error.errno)
    }
  }

  /// The file's identity as the file system has it, also where the kernel's caches, or those of sshfs
  /// or NFS, are older: they ask their servers when a file is opened.
  func currentIdentity() throws(SystemError) -> FileIdentity? {
    guard Files.isSilent(path), let file = try? opened(O_NONBLOCK) else { return try identity() }
    return FileIdentity(try file.currentStatus())
  }

  /// Reads the list; nil where there is no file.
  /// - Parameter hidesUnreadable: whether a value that cannot be read hides its key alone; otherwise
  ///   such a list is refused.
  func read(hidesUnreadable: Bool = false) throws(ReadError) -> Contents? {
    let bytes: [UInt8]
    let status: stat
    let isRegular: Bool
    do throws(SystemError) {
      // Without O_NONBLOCK the opening of a pipe would wait for a writer.
      let descriptor = try opened(O_NONBLOCK)
      status = try descriptor.currentStatus()
      isRegular = status.st_mode & S_IFMT == S_IFREG
      bytes = isRegular ? try descriptor.readToEnd(limit: Self.largest) : []
    } catch  where error.errno == .noSuchFile || error.errno == .notDirectory {
      return nil
    } catch  where error.errno == .noDevice {
      throw .format("\(path): not a regular file")
    } catch  where error.errno == .linkLoop {
      throw .format(
        container.map {
          "\(path): it is, or lies behind, a symbolic link in \($0), which a sandboxed program can "
            + "change; none is followed there, so put the list itself there"
        } ?? "\(path): a symbolic link that leads to itself")
    } catch {
      throw .system(error)
    }
    guard isRegular else { throw .format("\(path): not a regular file") }
    // An empty file, as `touch` leaves it, is a list without keys.
    if bytes.isEmpty {
      return Contents(values: .decoded([:]), format: .binary, identity: FileIdentity(status))
    }
    let statement = ListStatement(in: bytes, of: name)
    let document: (value: Value, format: Format)
    do {
      if let packed = try ListValues(packing: bytes) {
        return Contents(
          values: packed, format: .binary, identity: FileIdentity(status), statement: statement)
      }
      document = try Document.read(bytes)
    } catch {
      guard hidesUnreadable, let list = ReadableList(bytes) else {
        throw .format("\(path): \(error)")
      }
      return Contents(
        values: ListValues(packingIfLarge: list.values), format: list.format,
        identity: FileIdentity(status), hidden: list.hidden, statement: statement)
    }
    guard case .dictionary(let values) = document.value else {
      throw .format(
        "\(path): the list is not a dictionary but of type \(document.value.kind.rawValue)")
    }
    // `{}` is an empty list in JSON and in old-style; programs on Linux mean the latter.
    let format = document.format == .json && values.isEmpty ? .openStep : document.format
    return Contents(
      values: ListValues(packingIfLarge: values), format: format,
      identity: FileIdentity(status), statement: statement)
  }

  /// The path behind symbolic links, also behind a link whose target does not exist yet; in a
  /// container, none is followed.
  private func target(of path: String) -> String {
    if container != nil { return path }
    if let real = Files.realPath(path) { return real }
    guard let link = Files.linkTarget(path) else { return path }
    return link.hasPrefix("/") ? link : Files.parent(of: path) + "/" + link
  }

  /// Throws the error that a replacement would meet, as far as it can be known before: a directory
  /// or list that this process may not write to, a disk without room for the list.
  /// - Parameter size: the bytes of the list.
  func checkReplaceable(size: UInt64) throws(SystemError) {
    do throws(SystemError) {
      try withPath { path throws(SystemError) in
        try Self.checkReplaceable(target(of: path), size: size)
      }
    } catch {
      // The rewrite makes the directories in a container, but not the container.
      guard let container, error.errno == .noSuchFile, Files.isDirectory(container) else {
        throw error
      }
      try Files.checkWritable(container)
    }
  }

  private static func checkReplaceable(_ target: String, size: UInt64) throws(SystemError) {
    var directory = Files.parent(of: target)
    while !Files.isDirectory(directory), directory != "/", directory != "." {
      directory = Files.parent(of: directory)
    }
    try Files.checkWritable(directory)
    if Files.isDirectory(Files.parent(of: target)), let old = try Files.status(target) {
      try Files.checkWritable(target)
      // The new list gets the owner of the old one, which is another user's.
      let user = geteuid()
      if user != 0, old.st_uid != user { throw SystemError("chown", target, .notPermitted) }
    }
    if let free = try Files.freeBytes(directory),
      free < size.addingReportingOverflow(4096).partialValue
    {
      throw SystemError("write", target, .noSpace)
    }
  }

  /// Replaces the list. The new one gets mode, owner and extended attributes of the old one. A list
  /// that root makes gets the owner of its directory.
  /// - Parameters:
  ///   - mode: the mode of a list that does not exist yet.
  ///   - prepared: called with the new identity just before the new list takes its place.
  /// - Returns: the new identity.
  func replace(
    with bytes: [UInt8], mode: mode_t, prepared: (FileIdentity) throws(SystemError) -> Void
  ) throws(SystemError) -> FileIdentity {
    try withPath { path throws(SystemError) in
      try Self.replace(target(of: path), with: bytes, mode: mode, prepared: prepared)
    }
  }

  private static func replace(
    _ target: String, with bytes: [UInt8], mode: mode_t,
    prepared: (FileIdentity) throws(SystemError) -> Void
  ) throws(SystemError) -> FileIdentity {
    let directory = Files.parent(of: target)
    let name = "\(temporaryPrefix)\(getpid())-\(UInt32.random(in: 0...(.max)))"
    let temporary = "\(directory)/\(name)"
    do throws(SystemError) {
      let descriptor = try Descriptor(opening: temporary, O_WRONLY | O_CREAT | O_EXCL, mode: 0o600)
      try copyAccess(of: target, to: descriptor, mode: mode)
      try descriptor.write(bytes)
      try descriptor.synchronize()
      try prepared(FileIdentity(try descriptor.status()))
      try Files.rename(temporary, to: target)
      try Files.synchronizeDirectory(directory)
      return FileIdentity(try descriptor.status())
    } catch {
      do { try Files.remove(temporary) } catch {}
      throw error
    }
  }

  /// Gives the new list the owner, the extended attributes (access control list and security label
  /// among them) and the mode of the old one. In this order nobody can, at any moment, do more with
  /// the new list than with the old one.
  private static func copyAccess(
    of target: String, to new: borrowing Descriptor, mode: mode_t
  ) throws(SystemError) {
    guard let old = try Files.status(target) else {
      try new.giveToOwner(of: Files.status(Files.parent(of: target)))
      return try new.changeMode(mode)
    }
    let own = try new.status()
    if old.st_uid != own.st_uid || old.st_gid != own.st_gid {
      try new.changeOwner(old.st_uid, old.st_gid)
    }
    try ExtendedAttributes.replace(those: new, by: target)
    try new.changeMode(old.st_mode & 0o7777)
  }

  private static let temporaryPrefix = ".prefsfs-"

  /// Removes the temporary files that crashed rewrites have left in the list's directory. The caller
  /// holds the directory's lock, so no rewrite is under way there.
  func removeLeftovers() throws(SystemError) {
    try withPath { path throws(SystemError) in
      let directory = Files.parent(of: path)
      for name in try Files.names(in: directory) ?? [] where name.hasPrefix(Self.temporaryPrefix) {
        try Files.remove("\(directory)/\(name)")
      }
    }
  }

  /// Removes the list; of a symbolic link the link, not its target.
  func remove() throws(SystemError) {
    try withPath { path throws(SystemError) in
      try Files.remove(path)
      let directory = Files.parent(of: path)
      if Files.isDirectory(directory) { try Files.synchronizeDirectory(directory) }
    }
  }
}

extension ListFile {
  /// The list of a location.
  init(_ layout: StoreLayout, _ location: Location) {
    (path, container) = layout.list(at: location)
  }
}
