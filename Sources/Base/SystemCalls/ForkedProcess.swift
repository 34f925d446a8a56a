import Glibc
import Synchronization

/// Tells a process from the copy that fork(2) makes of it.
///
/// A copy has the descriptors and the shared memory of the process, and none of its threads but
/// one. It must not send on a connection of the process: the owner would read what both send as one
/// stream.
public enum ForkedProcess {
  private static let isCopied = Atomic<Bool>(false)
  /// Has the C library note in each copy that it is one (pthread_atfork(3)).
  private static let watching: Void = {
    // The handler runs in the copy, where a lazy variable must not be initialised any more.
    _ = isCopied.load(ordering: .relaxed)
    pthread_atfork(nil, nil) { isCopied.store(true, ordering: .relaxed) }
  }()

  /// From now on, notices when this process is copied. posix_spawn(3) and vfork(2) make no copy in
  /// this sense: they end in execve(2).
  public static func watch() { watching }

  /// Whether this process is a copy of one that has called `watch`. Cost: a load.
  public static var isCopy: Bool { isCopied.load(ordering: .relaxed) }

  /// Returns whether this process is a copy of one that has called `watch`, and then writes a line
  /// to standard error, unless that is a pipe that is full or that nobody reads (a write would wait,
  /// or end the program). It takes no lock and allocates nothing: what another thread had locked when
  /// fork(2) copied the process, in Swift's runtime too, stays locked in the copy for ever.
  public static func isCopy(refusing line: StaticString) -> Bool {
    guard isCopy else { return false }
    var ready = pollfd(fd: STDERR_FILENO, events: Int16(POLLOUT), revents: 0)
    if poll(&ready, 1, 0) == 1, ready.revents == Int16(POLLOUT) {
      _ = write(STDERR_FILENO, line.utf8Start, line.utf8CodeUnitCount)
    }
    return true
  }
}
