import PreferenceModel
import SystemCalls

/// Why no owner of a store could change something: its directories cannot be written. That may pass,
/// so it is asked for again at each change.
///
/// Promises: `present` returns within 50 ms. A file system that does not answer holds up one thread,
/// and the last answer counts meanwhile.
///
/// Threads: any. Locks: one, for a look.
final class Obstacle: Sendable {
  private struct State {
    var last: EngineError?
    var isAsking = false
  }

  private let ask: (@Sendable () -> EngineError?)?
  private let state: Monitor<State>

  /// - Parameter ask: looks for the obstacle; nil if there is none.
  init(_ ask: (@Sendable () -> EngineError?)?) {
    self.ask = ask
    state = Monitor(State(last: ask?()))
  }

  /// The obstacle; nil if there is none, or no longer.
  var present: EngineError? {
    guard let ask, let last = state.withLock({ $0.last }) else { return nil }
    let begins = state.withLock { state in
      defer { state.isAsking = true }
      return !state.isAsking
    }
    if begins {
      let look: @Sendable () -> Void = { [state] in
        let found = ask()
        state.change { ($0.last, $0.isAsking) = (found, false) }
      }
      do throws(SystemError) {
        try WorkerThread(name: "prefs-obstacle", look).detach()
      } catch {
        state.withLock { $0.isAsking = false }
        return last
      }
    }
    let deadline = Instant.now.advanced(milliseconds: 50)
    _ = state.wait(until: deadline) { $0.isAsking ? nil : true }
    return state.withLock { $0.last }
  }
}
