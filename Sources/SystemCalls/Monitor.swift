import Glibc

/// State that threads change and wait for: a mutex and a condition variable (pthread_cond_wait(3)).
///
/// `Mutex` is for state that nobody waits for. Bodies run under the lock: they must not block.
public final class Monitor<State>: @unchecked Sendable {
  // The state is touched by the bodies alone, which the lock keeps apart; the lock and the condition
  // have addresses of their own, as POSIX wants.
  private var state: State
  private let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

  /// A monitor of the state.
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

  /// Looks at the state.
  public func withLock<Result, Failure: Error>(
    _ body: (inout State) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    pthread_mutex_lock(lock)
    defer { pthread_mutex_unlock(lock) }
    return try body(&state)
  }

  /// Changes the state, and has everyone who waits look at it.
  public func change<Result, Failure: Error>(
    _ body: (inout State) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    pthread_mutex_lock(lock)
    defer {
      pthread_cond_broadcast(condition)
      pthread_mutex_unlock(lock)
    }
    return try body(&state)
  }

  /// Waits until the body gives something, which it is asked for at once and after each change.
  /// - Returns: nil when the deadline (nil: none) passed first.
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
