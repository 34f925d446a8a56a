import CLinux
import Glibc
import SystemCalls

/// A small process beside each mount, which ends the connection to the kernel when the driver was killed.
///
/// The kernel ends a connection when its last device is closed; a thread of a killed driver that waits for a
/// directory's lock keeps one open, and gets the lock only when the requests of those who hold it and wait
/// for it are ended. The notifier's own device frees the one who holds it; where several wait, nobody
/// would. The guard writes to the connection's `abort` (fusectl), which belongs to the user of the mount.
/// It opens that file while the driver lives, so that it is this connection's and never that of a mount
/// which got the same number later: once a connection is gone, a write to its file does nothing. Where
/// fusectl is not mounted root mounts it for the guard alone; another user cannot, and such a mount stays
/// until root ends it with `umount -f`.
public enum Guard {
  private static let word = "--guard"

  /// Where this process is one: its exit status, when the driver is gone. Call it first of all.
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

  /// Whether the driver still has its end of the pipe. Where it has gone already, the number may be another
  /// mount's by now.
  private static var isDriverAlive: Bool {
    var entry = pollfd(fd: 3, events: 0, revents: 0)
    return poll(&entry, 1, 0) == 0
  }

  private static let connections = "/sys/fs/fuse/connections"

  /// The driver's end; closed with the process, however it ends.
  struct Post: ~Copyable {
    private let pipe: Descriptor

    fileprivate init(_ pipe: consuming Descriptor) { self.pipe = pipe }

    /// The mount has ended: the guard goes.
    func dismiss() { try? pipe.write([1]) }
  }

  /// Sets one up for the connection.
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
