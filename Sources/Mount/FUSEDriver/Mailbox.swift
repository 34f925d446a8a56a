import PreferenceModel
import Synchronization
import SystemCalls

/// Collects what other threads send to the loop. Any thread may put. Locks: `state`, for one look.
final class Mailbox: Sendable {
  private struct State {
    var notices: [Notice] = []
    var settled: [Settlement: UInt64] = [:]
    var awaitsMissed = false
  }

  private let state = Mutex(State())
  /// Rung when the loop has something to do, here or elsewhere.
  let wakeup: Wakeup

  init() throws(SystemError) { wakeup = try Wakeup() }

  func deliver(_ notice: Notice) {
    state.withLock { $0.notices.append(notice) }
    wakeup.signal()
  }

  /// Whether nothing was put.
  var isEmpty: Bool { state.withLock { $0.notices.isEmpty && $0.settled.isEmpty } }

  /// Whether the changes that others made before this driver began are still being looked for.
  var awaitsMissed: Bool { state.withLock(\.awaitsMissed) }

  /// Notes that changes from before this driver are being looked for; `put(missed:)` follows.
  func awaitMissed() { state.withLock { $0.awaitsMissed = true } }

  /// Hands over the events of changes from before this driver.
  func deliver(missed events: [KeyEvent]) {
    state.withLock { state in
      state.awaitsMissed = false
      if !events.isEmpty {
        state.notices.append(Notice(changeset: Changeset(), events: events, author: nil))
      }
    }
    wakeup.signal()
  }

  /// Records that the kernel has dropped what it cached before the changes up to the version.
  func deliver(_ settled: Settlement, _ version: UInt64) {
    state.withLock { $0.settled[settled] = max($0.settled[settled] ?? 0, version) }
    wakeup.signal()
  }

  /// Removes and returns everything that was put.
  func removeAll() -> (notices: [Notice], settled: [Settlement: UInt64]) {
    state.withLock { state in
      defer { (state.notices, state.settled) = ([], [:]) }
      return (state.notices, state.settled)
    }
  }
}
