import CLinux
import Glibc

/// An open file descriptor with one owner: it is closed when it goes out of scope.
///
/// A call that a signal interrupts (EINTR) is repeated. `init(opening:)` opens with O_CLOEXEC.
public struct Descriptor: ~Copyable, Sendable {
  /// The descriptor's number; valid as long as this value lives.
  public let number: CInt
  private let path: String

  /// Takes ownership of an open descriptor, which nothing else may close. It gets another number if
  /// it has that of a standard stream, which was closed then: what the program prints would go to
  /// it, and a program that opens its streams later would close it. `path` appears in error messages.
  public init(owning number: CInt, path: String = "") {
    self.number = Self.beyondStreams(number)
    self.path = path
  }

  private static func beyondStreams(_ number: CInt) -> CInt {
    guard (0...STDERR_FILENO).contains(number) else { return number }
    let other = fcntl(number, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)
    guard other >= 0 else { return number }
    _ = Glibc.close(number)
    return other
  }

  /// open(2).
  public init(
    opening path: String, _ flags: CInt, mode: mode_t = 0o600
  ) throws(SystemError) {
    // Without one of these, a pipe may be opened, which waits for the other end.
    let neverWaits = flags & (O_NONBLOCK | O_DIRECTORY | O_CREAT | prefsfs_o_path) != 0
    let number = CallWatch.noting(path, if: neverWaits) {
      systemCall("open", path) { open(path, flags | O_CLOEXEC, mode) }
    }
    if number < 0 { throw SystemError("open", path) }
    self.init(owning: number, path: path)
  }

  /// Creates a file in memory, of zeros. Throws EMFILE or ENOMEM where the process has no
  /// descriptors or memory left.
  package static func inMemory(
    _ name: String, size: Int = 0
  ) throws(SystemError) -> Descriptor {
    let number = prefsfs_memory_file(name)
    if number < 0 { throw SystemError("memfd_create", "") }
    let file = Descriptor(owning: number)
    try file.truncate(to: size)
    return file
  }

  /// Makes a pipe, whose ends are the caller's (pipe2(2) with O_CLOEXEC).
  package static func pipe() throws(SystemError) -> (reading: CInt, writing: CInt) {
    var ends: [CInt] = [0, 0]
    if prefsfs_pipe(&ends) != 0 { throw SystemError("pipe", "") }
    return (ends[0], ends[1])
  }

  deinit { _ = close(number) }

  /// Writes all bytes at the current offset, in as many calls as that takes.
  public func write(_ bytes: [UInt8]) throws(SystemError) {
    try bytes.withUnsafeBufferPointer { bytes throws(SystemError) in
      try write(UnsafeRawBufferPointer(bytes))
    }
  }

  /// Writes all bytes at the current offset.
  public func write(_ bytes: UnsafeRawBufferPointer) throws(SystemError) {
    var done = 0
    while done < bytes.count {
      let count = systemCall("write", path) { most in
        Glibc.write(number, bytes.baseAddress.map { $0 + done }, min(bytes.count - done, most))
      }
      if count < 0 { throw SystemError("write", path) }
      done += count
    }
  }

  /// Reads from the current offset to the end of the file.
  /// - Parameter limit: how many bytes the file may have; more than that throw EFBIG.
  public func readToEnd(limit: Int) throws(SystemError) -> [UInt8] {
    let status = try status()
    let expected = Int(status.st_size)
    // A pipe may wait for its writer, and a large file takes its time.
    let isShort = status.st_mode & S_IFMT == S_IFREG && expected < Self.large
    if expected > limit { throw SystemError("read", path, .fileTooLarge) }
    var bytes: [UInt8] = []
    var filled = 0
    while true {
      let room = max(expected + 1 - filled, 4096)
      var count = 0
      let piece = [UInt8](unsafeUninitializedCapacity: room) { buffer, initialized in
        count = CallWatch.noting(path, if: isShort) {
          systemCall("read", path) { read(number, buffer.baseAddress, room) }
        }
        initialized = max(count, 0)
      }
      if count < 0 { throw SystemError("read", path) }
      if count == 0 { return bytes }
      if bytes.isEmpty { bytes = piece } else { bytes += piece }
      filled += count
      if filled > limit { throw SystemError("read", path, .fileTooLarge) }
    }
  }

  /// The bytes of a file whose transfer may take long.
  private static let large = 1 << 20

  /// fstat(2).
  public func status() throws(SystemError) -> stat {
    var status = stat()
    try CallWatch.noting(path) { () throws(SystemError) in
      try require("fstat", path) { fstat(number, &status) }
    }
    return status
  }

  /// fstat(2), once the file system was asked (AT_STATX_FORCE_SYNC of statx(2)). What the kernel
  /// knows of a file of sshfs or NFS may be older, and a read ends at the size that it knows.
  public func currentStatus() throws(SystemError) -> stat {
    CallWatch.noting(path) { prefsfs_refresh_status(number) }
    return try status()
  }

  /// fsync(2): contents and metadata are on the disk when it returns.
  public func synchronize() throws(SystemError) {
    try require("fsync", path) { fsync(number) }
  }

  /// fdatasync(2): contents and size are on the disk when it returns.
  public func synchronizeData() throws(SystemError) {
    try require("fdatasync", path) { fdatasync(number) }
  }

  /// ftruncate(2).
  public func truncate(to size: Int) throws(SystemError) {
    try require("ftruncate", path) { ftruncate(number, off_t(size)) }
  }

  /// Takes the exclusive lock of flock(2). Waits for it unless `waiting` is false.
  /// - Returns: false where another open file holds the lock and `waiting` is false.
  public func lockExclusively(waiting: Bool) throws(SystemError) -> Bool {
    let operation = LOCK_EX | (waiting ? 0 : LOCK_NB)
    if systemCall("flock", path, { flock(number, operation) }) == 0 { return true }
    if Errno.current == .wouldBlock { return false }
    throw SystemError("flock", path)
  }

  /// Releases the lock of flock(2).
  public func unlock() { _ = flock(number, LOCK_UN) }

  /// fchmod(2).
  public func changeMode(_ mode: mode_t) throws(SystemError) {
    try require("fchmod", path) { fchmod(number, mode) }
  }

  /// futimens(2): sets the times of the last access and modification.
  public func setModified(_ time: Timestamp) throws(SystemError) {
    let times = [time.timespec, time.timespec]
    try require("futimens", path) { futimens(number, times) }
  }

  /// futimens(2): sets both times to the present one by the file system's clock: its server's, if it
  /// has one.
  public func touch() throws(SystemError) {
    try require("futimens", path) { futimens(number, nil) }
  }

  /// Gives a file or directory that this process has just made to the owner of the directory that
  /// it lies in (nil if it is gone), so that a user can use what root has made in the user's home
  /// (sudo(8) that keeps HOME, mount(8) of a user's lists). Does nothing where the process is not
  /// root's, or the directory is.
  public func giveToOwner(of directory: stat?) throws(SystemError) {
    guard geteuid() == 0, let owner = directory, owner.st_uid != 0 else { return }
    try changeOwner(owner.st_uid, owner.st_gid)
  }

  /// fchown(2).
  public func changeOwner(_ user: uid_t, _ group: gid_t) throws(SystemError) {
    try require("fchown", path) { fchown(number, user, group) }
  }
}
