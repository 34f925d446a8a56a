import SystemCalls

/// The thread that looks for the next owner.
final class Seeker: Sendable {
  private struct State {
    var isAsked = false
    var isStopping = false
    var thread: WorkerThread?
  }

  private let state = Monitor(State())

  /// - Parameter seek: looks once; milliseconds until it is to be asked again, nil: not before `ask`.
  func start(_ seek: @escaping @Sendable () -> Int64?) throws(SystemError) {
    let thread = try WorkerThread(name: "prefs-seeker") { [state] in
      while Self.isAsked(state) {
        while !state.withLock({ $0.isStopping }), let pause = seek() {
          _ = state.wait(until: Instant.now.advanced(milliseconds: pause)) { state -> Bool? in
            guard state.isStopping || state.isAsked else { return nil }
            state.isAsked = false
            return true
          }
        }
      }
    }
    state.withLock { $0.thread = thread }
  }

  private static func isAsked(_ state: Monitor<State>) -> Bool {
    let isAsked = state.wait { state -> Bool? in
      if state.isStopping { return false }
      guard state.isAsked else { return nil }
      state.isAsked = false
      return true
    }
    return isAsked == true
  }

  /// There is something to look for.
  func ask() { state.change { $0.isAsked = true } }

  func stop() {
    let thread = state.change { state in
      state.isStopping = true
      return state.thread.take()
    }
    thread?.join()
  }
}
