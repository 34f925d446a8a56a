import PropertyList
import SystemCalls

/// What keys were before we changed them, for ten seconds: so that a program that writes back a
/// stale copy of the whole list (Foundation's UserDefaults does) does not undo us.
struct RecentChanges: Sendable {
  fileprivate struct Before: Sendable {
    /// nil: none.
    var value: Value?
    var time: Instant
  }

  private static let mostValues = 8

  /// Oldest first.
  private var entries: [Key: [Before]] = [:]
  /// How many entries there may be before old ones are looked for.
  private var limit = 1024

  /// Notes what the key was before a change. Cost: O(1), on average.
  mutating func note(_ key: Key, before: Value?, now: Instant = .now) {
    if entries.count >= limit { forget(now: now) }
    var list = entries.removeValue(forKey: key)?.filter { $0.isRecent(now) } ?? []
    // The oldest and the latest are what a stale copy is likely to have.
    if list.count >= Self.mostValues { list.remove(at: 1) }
    list.append(Before(value: before, time: now))
    entries[key] = list
  }

  /// Whether the value is one that we replaced a moment ago.
  func undoes(_ key: Key, _ value: Value?, now: Instant = .now) -> Bool {
    entries[key]?.contains { $0.isRecent(now) && $0.value == value } ?? false
  }

  /// The key's value is somebody else's now.
  mutating func forget(_ key: Key) { entries[key] = nil }

  /// Lets go of what is too old to matter.
  mutating func forget(now: Instant = .now) {
    entries = entries.filter { $0.value.last?.isRecent(now) == true }
    limit = max(1024, entries.count * 2)
  }
}

extension RecentChanges.Before {
  fileprivate func isRecent(_ now: Instant) -> Bool {
    now.nanoseconds - time.nanoseconds < 10_000_000_000
  }
}
