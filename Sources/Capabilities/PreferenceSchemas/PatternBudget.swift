import SystemCalls

/// The time of the processor that the searches for patterns in one change may take together: 10 ms,
/// and for each text what an expression without repetitions of repetitions takes. One text has
/// 14 ms at most. What other threads of a busy machine take does not count.
///
/// Threads: one, which searches for one pattern at a time.
package final class PatternBudget {
  /// Nanoseconds that are left for what takes long.
  private var left = PatternBudget.most
  /// Nanoseconds that the present search may take, and the thread's time when it began.
  private var allowed: Int64 = 0
  private var start: Int64 = 0
  /// When the thread's time is looked at again.
  private var nextLook = Instant(nanoseconds: 0)

  private static let most: Int64 = 10_000_000
  private static let forEachText: Int64 = 20_000
  private static let forEachByte: Int64 = 50

  package init() {}

  /// Begins a search in a text of so many bytes, `Pattern.longestText` at most.
  func begin(bytes: Int) {
    allowed = left + Self.forEachText + Self.forEachByte * Int64(clamping: bytes)
    start = ThreadTime.nanoseconds
    nextLook = Instant.now.advanced(nanoseconds: allowed)
  }

  /// Whether the present search has taken too long. Cost: a look at the clock, most of the time.
  func isSpent() -> Bool {
    let now = Instant.now
    if now < nextLook { return false }
    let rest = allowed - (ThreadTime.nanoseconds - start)
    nextLook = now.advanced(nanoseconds: max(rest, 0))
    return rest <= 0
  }

  /// Ends the search: what it took beyond its own share is gone.
  func end() {
    let rest = allowed - (ThreadTime.nanoseconds - start)
    left = min(left, max(rest, 0))
  }
}
