import Glibc

/// State that threads change and wait for: a mutex and a condition variable (pthread_cond_wait(3)).
///
/// Use `Mutex` for state that no thread waits for. Bodies run under the lock: they must not block.
public final class Monitor<State>: @unchecked Sendable {
  // Sendable, because only the bodies touch the state, and the lock runs them one at a time. POSIX
  // wants the lock and the condition at addresses that do not change.
  private var state: State
  private let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

  /// Creates a monitor with this state.
  public init(_ state: sending State) {
    self.state = state
    pthread_mutex_init(lock, nil)
    var attributes = pthread_condattr_t()
    pthread_condattr_init(&attributes)
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
    pthread_cond_init(condition, &attributes)
    pthread_condattr_destroy(&attributes)
  }

  deinit {
    pthread_cond_destroy(condition)
    pthread_mutex_destroy(lock)
    lock.deallocate()
    condition.deallocate()
  }

  /// Runs the body under the lock and wakes no thread: to look at the state, or for a change that
  /// no thread waits for.
  public func withLock<Result, Failure: Error>(
    _ body: (inout State) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    pthread_mutex_lock(lock)
    defer { pthread_mutex_unlock(lock) }
    return try body(&state)
  }

  /// Runs the body under the lock, and then has every thread in `wait` look at the state again.
  public func change<Result, Failure: Error>(
    _ body: (inout State) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    // The lock is released first: a woken thread would wait for it.
    defer { pthread_cond_broadcast(condition) }
    return try withLock(body)
  }

  /// Runs the body under the lock, and then has one of the threads in `wait` look at the state
  /// again. Use it only where any of them can make use of the change, and where all of them wait
  /// until a deadline: with some versions of glibc the one thread may not wake up
  /// (https://sourceware.org/bugzilla/show_bug.cgi?id=25847).
  public func changeForOne<Result, Failure: Error>(
    _ body: (inout State) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    defer { pthread_cond_signal(condition) }
    return try withLock(body)
  }

  /// Waits until the body returns a value. The body is called under the lock: at once, after each
  /// `change`, and maybe after a `changeForOne`.
  /// - Returns: the body's value; nil where the deadline (nil means none) passed first.
  public func wait<Result>(
    until deadline: Instant? = nil, for body: (inout State) -> Result?
  ) -> Result? {
    pthread_mutex_lock(lock)
    defer { pthread_mutex_unlock(lock) }
    while true {
      if let result = body(&state) { return result }
      guard let deadline else {
        pthread_cond_wait(condition, lock)
        continue
      }
      var time = deadline.timespec
      if pthread_cond_timedwait(condition, lock, &time) == ETIMEDOUT { return body(&state) }
    }
  }
}
