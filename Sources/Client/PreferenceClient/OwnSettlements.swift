import PreferenceModel
import Synchronization

/// How far the other mounts have settled for the changes of this client: what the owner has said in
/// its answers (`Message.applied`) and later (`Message.settled`).
///
/// Bodies wait for changes alone of which an answer has said that mounts have still to settle. Any
/// other change was settled for, or made under an earlier owner, which told this client nothing.
///
/// Threads: any. One lock, held for a look; bodies are called without it.
final class OwnSettlements: Sendable {
  private struct State {
    /// The last change for which the owner has said that all mounts have settled, with all before.
    var settled: UInt64 = 0
    /// The last change for which mounts had still to settle when it was answered.
    var unsettled: UInt64 = 0
    var waiting: [(version: UInt64, body: @Sendable () -> Void)] = []
  }

  private let state = Mutex(State())

  /// Notes that mounts have still to settle for the change.
  func noteUnsettled(_ version: UInt64) {
    state.withLock { $0.unsettled = max($0.unsettled, version) }
  }

  /// Notes that all mounts have settled for the changes up to the version, and calls the bodies that
  /// have waited for that. `.max`: the owner is gone, and says nothing more.
  func noteSettled(through version: UInt64) {
    let ready = state.withLock { state in
      state.settled = max(state.settled, version)
      let (settled, unsettled) = (state.settled, state.unsettled)
      let ready = state.waiting.filter { min($0.version, unsettled) <= settled }
      state.waiting.removeAll { min($0.version, unsettled) <= settled }
      return ready
    }
    for (_, body) in ready { body() }
  }

  /// Whether no mount has still to settle for the changes up to the version.
  func isSettled(through version: UInt64) -> Bool {
    state.withLock { $0.settled >= min(version, $0.unsettled) }
  }

  /// Calls the body when the mounts have settled for the changes up to the version: at once if no
  /// mount has still to.
  func whenSettled(through version: UInt64, _ body: @escaping @Sendable () -> Void) {
    let isSettled = state.withLock { state in
      if state.settled >= min(version, state.unsettled) { return true }
      state.waiting.append((version, body))
      return false
    }
    if isSettled { body() }
  }
}
