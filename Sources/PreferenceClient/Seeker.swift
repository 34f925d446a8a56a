import SystemCalls

/// A thread that looks for the next owner. It is started when it is first needed.
final class Seeker: Sendable {
  private struct State {
    /// What looks for an owner; nil before `start`.
    var seek: (@Sendable () -> Int64?)?
    var isStarting = false
    /// Whether `wake` was called since the thread last looked.
    var isAsked = false
    var isStopping = false
    var thread: WorkerThread?
  }

  private let state = Monitor(State())

  /// Says how to look, and starts to look if `wake` was called before.
  /// - Parameter seek: looks once. It returns the milliseconds until it is called again; nil: not
  ///   before the next `wake`.
  func start(_ seek: @escaping @Sendable () -> Int64?) {
    state.withLock { $0.seek = seek }
    if state.withLock({ $0.isAsked }) { wake() }
  }

  /// Starts the thread if it was to look and could not be started.
  func startAgain() {
    let isNeeded = state.withLock { $0.isAsked && $0.thread == nil && $0.seek != nil }
    if isNeeded { wake() }
  }

  /// Makes the thread look at once. If the thread cannot be started, the next call, or
  /// `startAgain`, tries again.
  func wake() {
    let seek = state.change { state -> (@Sendable () -> Int64?)? in
      state.isAsked = true
      guard state.thread == nil, !state.isStarting, !state.isStopping else { return nil }
      state.isStarting = state.seek != nil
      return state.seek
    }
    guard let seek else { return }
    let thread = try? WorkerThread(name: "prefs-seeker") { [state] in Self.run(state, seek) }
    state.change { ($0.thread, $0.isStarting) = (thread, false) }
  }

  /// The thread: looks whenever it is asked, until it is stopped.
  private static func run(_ state: Monitor<State>, _ seek: () -> Int64?) {
    while isAsked(state) {
      while !state.withLock({ $0.isStopping }), let pause = seek() {
        _ = state.wait(until: Instant.now.advanced(milliseconds: pause)) { state -> Bool? in
          guard state.isStopping || state.isAsked else { return nil }
          state.isAsked = false
          return true
        }
      }
    }
  }

  /// Waits for the next `wake`, and returns true; false once it is stopped.
  private static func isAsked(_ state: Monitor<State>) -> Bool {
    let isAsked = state.wait { state -> Bool? in
      if state.isStopping { return false }
      guard state.isAsked else { return nil }
      state.isAsked = false
      return true
    }
    return isAsked == true
  }

  /// Stops the thread, and returns when it has ended.
  func stop() {
    state.change { $0.isStopping = true }
    let thread = state.wait { state -> WorkerThread?? in
      state.isStarting ? nil : .some(state.thread.take())
    }
    thread??.join()
  }
}
