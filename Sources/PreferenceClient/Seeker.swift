import SystemCalls

/// The thread that looks for the next owner; there is none before it is needed.
final class Seeker: Sendable {
  private struct State {
    var seek: (@Sendable () -> Int64?)?
    var isStarting = false
    var isAsked = false
    var isStopping = false
    var thread: WorkerThread?
  }

  private let state = Monitor(State())

  /// - Parameter seek: looks once; milliseconds until it is to be asked again, nil: not before `ask`.
  func start(_ seek: @escaping @Sendable () -> Int64?) {
    state.withLock { $0.seek = seek }
    if state.withLock({ $0.isAsked }) { ask() }
  }

  /// There is something to look for. Without memory for a thread nothing is found until the next time.
  func ask() {
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

  private static func isAsked(_ state: Monitor<State>) -> Bool {
    let isAsked = state.wait { state -> Bool? in
      if state.isStopping { return false }
      guard state.isAsked else { return nil }
      state.isAsked = false
      return true
    }
    return isAsked == true
  }

  func stop() {
    state.change { $0.isStopping = true }
    let thread = state.wait { state -> WorkerThread?? in
      state.isStarting ? nil : .some(state.thread.take())
    }
    thread??.join()
  }
}
