import CLinux
import Glibc

/// A thread of our own (pthread), joined by `join()`.
///
/// Swift's tasks run on a pool that must not block; our workers block in fsync(2) and poll(2).
public final class WorkerThread: Sendable {
  private final class Body: Sendable {
    let run: @Sendable () -> Void
    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
  }

  private let identifier: pthread_t

  /// Starts `body` on a new thread with the name (at most 15 bytes are kept), with every signal
  /// blocked: signals are the main thread's.
  public init(name: String, _ body: @escaping @Sendable () -> Void) throws(SystemError) {
    var everything = sigset_t()
    var before = sigset_t()
    sigfillset(&everything)
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

  /// Nobody will wait for its end. Call it once, and not `join`.
  public func detach() { pthread_detach(identifier) }

  /// Waits until the thread has ended. Call it once.
  public func join() { pthread_join(identifier, nil) }
}
