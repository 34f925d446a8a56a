import PropertyList
import SystemCalls

/// What keys were before we changed them, for ten seconds: so that a program that writes back a
/// stale copy of the whole list (Foundation's UserDefaults does) does not undo us.
struct RecentChanges: Sendable {
  private struct Entry: Sendable {
    /// The values that a stale copy may have; nil: none.
    var before: [Value?]
    var last: Instant
  }

  /// Nanoseconds.
  private static let memory: Int64 = 10_000_000_000
  private static let mostValues = 8

  private var entries: [Key: Entry] = [:]
  /// How many entries there may be before old ones are looked for.
  private var limit = 1024

  /// Notes what the key was before a change. Cost: O(1), on average.
  mutating func note(_ key: Key, before: Value?, now: Instant = .now) {
    if entries.count >= limit { forget(now) }
    var entry = entries[key] ?? Entry(before: [], last: now)
    if entry.before.count < Self.mostValues { entry.before.append(before) }
    entry.last = now
    entries[key] = entry
  }

  /// Whether the value is one that we replaced a moment ago.
  func undoes(_ key: Key, _ value: Value?, now: Instant = .now) -> Bool {
    guard let entry = entries[key], now.nanoseconds - entry.last.nanoseconds < Self.memory else {
      return false
    }
    return entry.before.contains { $0 == value }
  }

  private mutating func forget(_ now: Instant) {
    entries = entries.filter { now.nanoseconds - $0.value.last.nanoseconds < Self.memory }
    limit = max(1024, entries.count * 2)
  }
}
