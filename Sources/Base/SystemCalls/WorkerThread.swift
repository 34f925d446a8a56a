import CLinux
import Glibc

/// A thread of our own (pthreads(7)). `join()` waits for its end.
///
/// Swift's tasks run on a pool whose threads must not block; our workers block in fsync(2) and
/// poll(2).
public final class WorkerThread: Sendable {
  private final class Body: Sendable {
    let run: @Sendable () -> Void
    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
  }

  private let identifier: pthread_t

  /// Starts `body` on a new thread with that name, of which the kernel keeps at most 15 bytes.
  /// Every signal is blocked in it, except those of a crash (SIGSEGV, SIGBUS, SIGILL, SIGTRAP,
  /// SIGFPE, SIGABRT): the main thread handles signals. Throws EAGAIN where the system allows no
  /// more threads.
  public init(name: String, _ body: @escaping @Sendable () -> Void) throws(SystemError) {
    var everything = sigset_t()
    var before = sigset_t()
    sigfillset(&everything)
    // A crash of the thread has its handler.
    for number in [SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE, SIGABRT] {
      sigdelset(&everything, number)
    }
    pthread_sigmask(SIG_SETMASK, &everything, &before)
    defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
    let box = Unmanaged.passRetained(
      Body {
        prefsfs_name_thread(name)
        body()
      })
    var thread = pthread_t()
    let status = pthread_create(
      &thread, nil,
      { argument in
        if let argument { Unmanaged<Body>.fromOpaque(argument).takeRetainedValue().run() }
        return nil
      }, box.toOpaque())
    if status != 0 {
      box.release()
      throw SystemError("pthread_create", "", Errno(rawValue: status))
    }
    identifier = thread
  }

  /// Has the calling thread act as another user from here on, and no other thread. Only root can, and
  /// the thread cannot go back. Throws EPERM.
  public static func become(user: uid_t, group: gid_t) throws(SystemError) {
    try require("setresuid", "\(user)") { prefsfs_become(user, group) }
  }

  /// Lets the thread end without a `join`. Call one of the two, once.
  public func detach() { pthread_detach(identifier) }

  /// Waits until the thread has ended. Call it once, and not after `detach`.
  public func join() { pthread_join(identifier, nil) }
}
