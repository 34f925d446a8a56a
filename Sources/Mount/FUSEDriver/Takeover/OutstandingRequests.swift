import Synchronization
import SystemCalls

/// The numbers of the requests that were read and not answered, for kernels that cannot send them
/// again (before Linux 6.9). Where there is no room for a number, its request waits for ever if the
/// driver ends.
///
/// A driver may end after the kernel has handed it a request and before its number is noted here.
/// These kernels number requests in steps of two, in the order in which they are read. So such a
/// request has one of the next numbers after the last that is noted, and `removeAll` hands out
/// those too. For a number that no request under way has, the kernel refuses an answer with ENOENT.
///
/// Threads: any. One lock, for a look.
final class OutstandingRequests: Sendable {
  private struct State {
    var slots: [UInt64: Int] = [:]
    var free = Array(0..<SharedLog.slots)
  }

  private let state = Mutex(State())
  private let log: SharedLog

  /// How many numbers after the last are tried. Those of processes that were killed before their
  /// request was read are never read.
  static let following: UInt64 = 1024

  /// - Parameter opening: the number of the kernel's first message.
  init(_ log: SharedLog, after opening: UInt64) {
    self.log = log
    log[SavedState.Number.read.rawValue] = max(opening, log[SavedState.Number.read.rawValue])
  }

  /// Notes that a message was read.
  /// - Parameter needsAnswer: false for FORGET, BATCH_FORGET and INTERRUPT.
  func begin(_ request: UInt64, needsAnswer: Bool) {
    // The number of an INTERRUPT is odd: that of another request and one.
    if request & 1 == 0 { log[SavedState.Number.read.rawValue] = request }
    guard needsAnswer else { return }
    state.withLock { state in
      guard let slot = state.free.popLast() else { return }
      state.slots[request] = slot
      log.setSlot(slot, request)
    }
  }

  /// Notes that a request was answered.
  func end(_ request: UInt64) {
    state.withLock { state in
      guard let slot = state.slots.removeValue(forKey: request) else { return }
      log.setSlot(slot, 0)
      state.free.append(slot)
    }
  }

  /// Hands each number to the body that a request may have which a predecessor has read and not
  /// answered, and forgets them.
  static func removeAll(from log: SharedLog, _ body: (UInt64) -> Void) {
    for slot in 0..<SharedLog.slots where log.slot(slot) != 0 {
      body(log.slot(slot))
      log.setSlot(slot, 0)
    }
    let last = log[SavedState.Number.read.rawValue]
    guard last > 0 else { return }
    for step in 1...following { body(last &+ 2 &* step) }
  }
}
