import Glibc
import PreferenceCloud
import SystemCalls

/// Which file is this host's. `prefs-cloud` saves it.
public struct HostFileIdentity: Equatable, Sendable {
  /// The name of the host; the file is named after it.
  public var host: String
  /// The sessions of which the last one in the file must be one, otherwise it is another host's,
  /// which has a copy of the state.
  public var sessions: [[UInt8]]

  /// Creates an identity.
  public init(host: String, sessions: [[UInt8]] = []) {
    (self.host, self.sessions) = (HostFileName.host(host), sessions)
  }
}

/// The files of the hosts in a directory: reads those of all hosts, and writes that of this one.
///
/// - A frame in this host's file that this process has neither written nor found there as its own
///   is another host's, with a copy of the state: this one goes on with a new file under a new
///   name.
/// - If this host's file is gone, went back to an earlier one, or its end is torn, it is written as
///   a whole; also if it is more than twice as large as it need be.
/// - Links, pipes and files that are too large are not read.
///
/// Threads: one. Every call may wait for the file system, for ever if that hangs.
struct CloudDirectory {
  /// How a file was when it was read last.
  private struct Seen {
    var inode: ino_t = 0
    var size = 0
    var modified = Timestamp(nanoseconds: 0)
    var position = HostFile.Position()
    /// The mark of the last frame, which ends at the position.
    var mark: [UInt8] = []
    /// Whether a frame of it could be opened, and whether one could not.
    var (isOpened, isRefused) = (false, false)
  }

  private let path: String
  private let sealer: any ValueSealer
  private let newHost: () -> String
  private let save: (HostFileIdentity) -> Void
  private let log: (LogLine) -> Void
  var server: DirectoryServer
  private var identity: HostFileIdentity
  private var seen: [String: Seen] = [:]
  /// Whether this process has begun to write the host's file.
  private var isBegun = false
  /// The marks of the frames that are known to be this host's.
  private var marks: Set<[UInt8]> = []
  /// The bytes of the host's file, and its frames.
  private var own = (size: 0, frames: 0)
  /// The size in bytes from which on the file may be too large for what it has to say.
  private var compaction = 0

  /// How many files may be in the directory.
  private static let mostFiles = 256
  /// Bytes that a file may always have.
  private static let smallFile = 4096

  /// Creates the files of a directory, of which nothing was read yet.
  /// - Parameters:
  ///   - newHost: draws a new name of this host.
  ///   - save: saves which file is this host's, before that is written.
  init(
    _ path: String, _ server: DirectoryServer, _ sealer: any ValueSealer,
    _ identity: HostFileIdentity, newHost: @escaping () -> String,
    save: @escaping (HostFileIdentity) -> Void, log: @escaping (LogLine) -> Void
  ) {
    (self.path, self.server, self.sealer, self.identity) = (path, server, sealer, identity)
    (self.newHost, self.save, self.log) = (newHost, save, log)
  }

  private var ownName: String { HostFileName.name(of: identity.host) }

  private static var now: Int64 { Timestamp.now.nanoseconds / 1_000_000 }

  // MARK: - Looking

  /// Reads what has changed.
  mutating func look() throws(SystemError) {
    guard let names = try Files.names(in: path, includesLink: { _ in false }) else {
      throw SystemError("opendir", path, .noSuchFile)
    }
    let files = names.compactMap { HostFileName($0) }.sorted()
    if files.count > Self.mostFiles {
      throw SystemError("more than \(Self.mostFiles) files of machines in", path, .fileTooLarge)
    }
    let present = Set(files.map(\.name))
    for name in seen.keys where !present.contains(name) {
      seen[name] = nil
      if name != ownName { server.forget(file: name) }
    }
    for file in files where file.name != ownName { readOther(file) }
    if isBegun { try readOwn() } else { try begin(present) }
    server.settle()
    for file in files where file.isCopy { try adopt(file) }
    try compact()
  }

  private mutating func readOther(_ file: HostFileName) {
    guard let (frames, isWhole) = read(file) else { return }
    server.hear(frames.flatMap(\.records), in: file.name, isWhole: isWhole)
  }

  /// Reads what a file has behind what was read of it; as a whole if it was replaced.
  /// - Returns: nil where nothing has changed, or it is not a file that is read.
  private mutating func read(
    _ file: HostFileName
  ) -> (frames: [HostFile.Frame], isWhole: Bool)? {
    let flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK
    guard let descriptor = try? Descriptor(opening: "\(path)/\(file.name)", flags),
      let status = try? descriptor.status(), status.st_mode & S_IFMT == S_IFREG,
      status.st_size <= HostFile.largestFile
    else { return nil }
    let (size, modified) = (Int(status.st_size), Timestamp(status.st_mtim))
    var last = seen[file.name] ?? Seen()
    if last.inode == status.st_ino, last.size == size, last.modified == modified { return nil }
    let wasRefused = last.isRefused
    if last.inode != status.st_ino || size < last.position.offset { last = Seen() }
    (last.inode, last.size, last.modified) = (status.st_ino, size, modified)
    guard let (frames, isWhole) = readFrames(descriptor, file, &last) else { return nil }
    seen[file.name] = last
    if !last.isOpened, last.isRefused, !wasRefused {
      log(LogLine("\(path)/\(file.name) is not read: it is sealed with a different key"))
    }
    return (frames, isWhole)
  }

  private func readFrames(
    _ descriptor: borrowing Descriptor, _ file: HostFileName, _ last: inout Seen
  ) -> (frames: [HostFile.Frame], isWhole: Bool)? {
    while true {
      if last.mark.isEmpty { last.position = HostFile.Position() }
      let start = last.position.offset - last.mark.count
      guard lseek(descriptor.number, off_t(start), SEEK_SET) >= 0,
        let bytes = try? descriptor.readToEnd(limit: HostFile.largestFile)
      else { return nil }
      guard bytes.starts(with: last.mark) else {
        // It was written as a whole. Its inode says nothing: numbers are used again.
        last.mark = []
        continue
      }
      let isWhole = start == 0
      let (frames, refused) = HostFile.read(
        Array(bytes.dropFirst(last.mark.count)), from: &last.position, file.host, sealer)
      if let end = frames.last { (last.mark, last.isOpened) = (end.mark, true) }
      if refused > 0 { last.isRefused = true }
      return (frames, isWhole)
    }
  }

  // MARK: - This host's file

  /// Goes on with the host's file, if nobody else has; otherwise with a new one.
  private mutating func begin(_ present: Set<String>) throws(SystemError) {
    var records: [HostFile.Record] = []
    var isTorn = true
    if present.contains(ownName) {
      let frames = HostFileName(ownName).flatMap { read($0)?.frames } ?? []
      let session = frames.last { $0.session != nil }?.session
      if let session, identity.sessions.contains(session) {
        marks = Set(frames.map(\.mark))
        records = frames.flatMap(\.records)
        let read = seen[ownName] ?? Seen()
        own = (read.size, read.position.number)
        isTorn = read.position.offset != read.size
        identity.sessions = [session]
      } else {
        server.hear(frames.flatMap(\.records), in: ownName, isWhole: true)
        identity = HostFileIdentity(host: newHost())
      }
    } else {
      try requireKey()
    }
    let session = (0..<16).map { _ in UInt8.random(in: 0...255) }
    identity.sessions.append(session)
    save(identity)
    server.hear(records, in: ownName, isWhole: true)
    isBegun = true
    if isTorn { try rewrite() } else { try append([HostFile.Frame(session: session)]) }
  }

  /// Throws where the directory has files of other hosts, and the key opens none: it was not copied
  /// to this machine.
  private func requireKey() throws(SystemError) {
    let others = seen.values
    guard others.contains(where: \.isRefused), !others.contains(where: \.isOpened) else { return }
    throw SystemError(
      "copy the key file from another machine; this one opens no file of", path, .permissionDenied)
  }

  /// Compares the host's file with what this process has written.
  private mutating func readOwn() throws(SystemError) {
    guard let file = HostFileName(ownName) else { return }
    let frames = read(file)?.frames ?? []
    let foreign = frames.filter { !marks.contains($0.mark) }
    if !foreign.isEmpty {
      server.hear(foreign.flatMap(\.records), in: file.name)
      return try drawName()
    }
    let now = seen[file.name]
    if now?.size != own.size || now?.position.offset != own.size { try rewrite() }
  }

  /// Goes on with a new file under a new name.
  private mutating func drawName() throws(SystemError) {
    let former = ownName
    server.settle()
    let records = server.needed(in: former, now: Self.now)
    identity = HostFileIdentity(
      host: newHost(), sessions: [(0..<16).map { _ in UInt8.random(in: 0...255) }])
    log(
      LogLine("a copy of this machine has written to \(former); this one goes on with \(ownName)"))
    save(identity)
    server.hear(records, in: ownName, isWhole: true)
    marks = []
    try rewrite()
  }

  /// Writes the host's file as a whole, with what it needs.
  private mutating func rewrite() throws(SystemError) {
    server.settle()
    let frames =
      HostFile.frames(of: server.needed(in: ownName, now: Self.now))
      + [HostFile.Frame(session: identity.sessions.last)]
    guard let (bytes, marks) = HostFile.bytes(of: frames, identity.host, sealer) else {
      throw SystemError("seal", "\(path)/\(ownName)", Errno(rawValue: ENOMEM))
    }
    let temporary = "\(path)/.\(ownName).new"
    try Files.remove(temporary)
    do throws(SystemError) {
      let file = try Descriptor(opening: temporary, O_WRONLY | O_CREAT | O_EXCL, mode: 0o600)
      try file.write(bytes)
      try file.synchronize()
      self.marks.formUnion(marks)
      try Files.rename(temporary, to: "\(path)/\(ownName)")
      // What is appended counts as sent, so the new file must not go in a crash. Some network file
      // systems cannot synchronize a directory.
      do throws(SystemError) {
        try Files.synchronizeDirectory(path)
      } catch  where error.errno == .invalidArgument {}
    } catch {
      try? Files.remove(temporary)
      throw error
    }
    own = (bytes.count, frames.count)
    compaction = 2 * bytes.count + Self.smallFile
    seen[ownName] = nil
  }

  /// Writes the host's file as a whole if more than half of it has been replaced.
  private mutating func compact() throws(SystemError) {
    guard own.size > compaction else { return }
    let needed = server.needed(in: ownName, now: Self.now).reduce(0) { $0 + $1.size }
    compaction = 2 * needed + Self.smallFile
    if own.size > compaction { try rewrite() } else { compaction = own.size + Self.smallFile }
  }

  /// Appends records to the host's file, in one step. What was read before is known: `look` has
  /// just been called.
  mutating func append(_ records: [HostFile.Record]) throws(SystemError) {
    try append([HostFile.Frame(records: records)])
    server.hear(records, in: ownName)
    server.settle()
  }

  private mutating func append(_ frames: [HostFile.Frame]) throws(SystemError) {
    let name = "\(path)/\(ownName)"
    let file = try Descriptor(opening: name, O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK)
    for frame in frames {
      guard let (bytes, mark) = HostFile.bytes(of: frame, identity.host, own.frames, sealer)
      else { throw SystemError("seal", name, Errno(rawValue: ENOMEM)) }
      marks.insert(mark)
      try file.write(bytes)
      own = (own.size + bytes.count, own.frames + 1)
    }
    // What is in the file counts as sent: a share tells here that it has no room.
    try file.synchronize()
  }

  // MARK: - Copies

  /// Takes what nobody else has from a copy that the synchroniser has made into the host's file,
  /// and removes the copy.
  private mutating func adopt(_ file: HostFileName) throws(SystemError) {
    guard seen[file.name]?.isOpened == true else { return }
    let records = server.needed(in: file.name, now: Self.now).filter { record in
      !server.files.contains { $0.key != file.name && $0.value[record.name] == record }
    }
    for frame in HostFile.frames(of: records) { try append(frame.records) }
    try Files.remove("\(path)/\(file.name)")
    seen[file.name] = nil
    server.forget(file: file.name)
  }
}
