import CLinux
import Glibc
import SystemCalls

/// A small process beside each mount, which ends the connection to the kernel if the driver is
/// killed.
///
/// The kernel ends a connection when its last device is closed. The notifier of a killed driver can
/// keep one open: it may wait in the kernel for a directory's lock, and does not end before it gets
/// that lock. Because the notifier has a device of its own (see `Notifier`), the request that holds
/// the lock ends. But if other processes wait for the lock too, the next of them takes it and makes
/// a request that is never answered. The guard therefore writes to the connection's `abort` file
/// (fusectl), which belongs to the user of the mount.
///
/// The guard opens that file while the driver is alive, so that it is this connection's file and
/// never that of a later mount with the same number: once a connection is gone, a write to its file
/// does nothing. Where fusectl is not mounted, root mounts it for the guard alone. Another user
/// cannot, and a mount that hangs then stays until root ends it with `umount -f`.
public enum Guard {
  private static let word = "--guard"

  /// Runs the guard, if the command line is a guard's, until the driver has ended. Call it before
  /// anything else.
  /// - Returns: the exit status; nil if this process is not a guard.
  public static func run(_ words: [String]) -> Int32? {
    guard words.count == 2, words[0] == word, let connection = UInt32(words[1]) else { return nil }
    prefsfs_name_thread("prefs-guard")
    prefsfs_close_range(4, .max)
    for number in [SIGTERM, SIGINT, SIGHUP] { signal(number, SIG_IGN) }
    let path = "\(connections)/\(connection)/abort"
    let known = open(path, O_WRONLY | O_CLOEXEC)
    let abort = known >= 0 ? known : prefsfs_open_in_mount("fusectl", connections, path)
    guard abort >= 0, isDriverAlive else { return 0 }
    var byte: UInt8 = 0
    while true {
      let count = read(3, &byte, 1)
      // A byte says that the driver has ended the mount itself.
      if count == 1 { return 0 }
      if count == 0 || errno != EINTR { break }
    }
    _ = write(abort, "1", 1)
    return 0
  }

  /// Whether the driver still holds its end of the pipe. If not, the connection's number may be
  /// another mount's by now.
  private static var isDriverAlive: Bool {
    var entry = pollfd(fd: 3, events: 0, revents: 0)
    return poll(&entry, 1, 0) == 0
  }

  private static let connections = "/sys/fs/fuse/connections"

  /// The driver's end of the pipe to its guard. It is closed when the process ends, however it
  /// ends.
  struct Post: ~Copyable {
    private let pipe: Descriptor

    fileprivate init(_ pipe: consuming Descriptor) { self.pipe = pipe }

    /// Ends the guard, because the driver has ended the mount itself.
    func dismiss() { try? pipe.write([1]) }
  }

  /// Starts a guard for a connection.
  /// - Parameter connection: the connection's number in fusectl: the minor number of the mount's
  ///   device.
  static func post(for connection: UInt32) throws(SystemError) -> Post {
    var ends: [CInt] = [0, 0]
    if pipe(&ends) != 0 { throw SystemError("pipe", "") }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    let reading = Descriptor(owning: ends[0])
    let writing = Descriptor(owning: ends[1])
    try Child.runBeside([word, "\(connection)"], pipe: reading.number)
    return Post(writing)
  }
}
