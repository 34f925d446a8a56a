import PreferenceModel
import Synchronization

/// Holds back the notices of a new owner until look-ups go to that owner, because an observer that
/// is notified of a change looks it up.
///
/// Threads: any. Notices are passed on in the order in which they came. One lock, under which
/// nothing blocks.
final class Relay: Sendable {
  private struct State {
    var waiting: [Notice] = []
    /// What to call with each notice; nil: notices wait.
    var pass: (@Sendable (Notice) -> Void)?
  }

  private let state = Mutex(State())

  /// Passes a notice on, or holds it back.
  func put(_ notice: Notice) {
    let pass = state.withLock { state in
      if state.pass == nil { state.waiting.append(notice) }
      return state.pass
    }
    pass?(notice)
  }

  /// Passes on the notices that wait, and from then on every notice at once.
  func open(_ pass: @escaping @Sendable (Notice) -> Void) {
    while let notice = next(orOpen: pass) { pass(notice) }
  }

  /// Removes the oldest notice that waits; opens the relay and returns nil if none does.
  private func next(orOpen pass: @escaping @Sendable (Notice) -> Void) -> Notice? {
    state.withLock { state in
      if state.waiting.isEmpty {
        state.pass = pass
        return nil
      }
      return state.waiting.removeFirst()
    }
  }
}
