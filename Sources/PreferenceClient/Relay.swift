import PreferenceModel
import Synchronization

/// Keeps the notices of an owner until this process asks that owner: who hears of a change looks it up.
///
/// Threads: any. Notices are passed on in the order in which they came.
final class Relay: Sendable {
  private struct State {
    var waiting: [Notice] = []
    var pass: (@Sendable (Notice) -> Void)?
  }

  private let state = Mutex(State())

  func put(_ notice: Notice) {
    let pass = state.withLock { state in
      if state.pass == nil { state.waiting.append(notice) }
      return state.pass
    }
    pass?(notice)
  }

  /// Passes on what waits, and from now on everything.
  func open(_ pass: @escaping @Sendable (Notice) -> Void) {
    while let notice = next(orOpen: pass) { pass(notice) }
  }

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
