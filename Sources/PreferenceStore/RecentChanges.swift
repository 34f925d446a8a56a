import PropertyList
import SystemCalls

/// What keys were before we changed them, for ten seconds: so that a program that writes back a
/// stale copy of the whole list (Foundation's UserDefaults does) does not undo us.
///
/// It keeps at most 1 MiB of values: of more, those that are largest are let go of first, and a stale copy
/// that has one of them counts as somebody's change.
struct RecentChanges: Sendable {
  fileprivate struct Before: Sendable {
    /// nil: none.
    var value: Value?
    var time: Instant
  }

  private static let mostValues = 8
  private static let mostBytes = 1 << 20

  /// Oldest first.
  private var entries: [Key: [Before]] = [:]
  /// How many entries there may be before old ones are looked for.
  private var limit = 1024
  private var bytes = 0

  /// Notes what the key was before a change. Cost: O(1), on average.
  mutating func note(_ key: Key, before: Value?, now: Instant = .now) {
    if entries.count >= limit { forget(now: now) }
    var list = entries.removeValue(forKey: key) ?? []
    bytes -= list.bytes
    list.removeAll { !$0.isRecent(now) }
    // The oldest and the latest are what a stale copy is likely to have.
    if list.count >= Self.mostValues { list.remove(at: 1) }
    if let last = list.last, last.value?.shortBytes ?? 0 > Self.mostBytes / 2 { list.removeLast() }
    list.append(Before(value: before, time: now))
    entries[key] = list
    bytes += list.bytes
    if bytes > Self.mostBytes { shed() }
  }

  /// Whether the value is one that we replaced a moment ago.
  func undoes(_ key: Key, _ value: Value?, now: Instant = .now) -> Bool {
    entries[key]?.contains { $0.isRecent(now) && $0.value == value } ?? false
  }

  /// Whether the keys are, all of them at one moment of the last seconds, as they are in the list: somebody has
  /// put a whole earlier state back.
  /// - Parameters:
  ///   - differing: the keys that the list has otherwise than we have them now.
  ///   - list: what it has.
  ///   - present: what we have now.
  func isEarlierState(
    _ differing: Set<Key>, _ list: (Key) -> Value?, present: (Key) -> Value?, now: Instant = .now
  ) -> Bool {
    guard differing.allSatisfy({ undoes($0, list($0), now: now) }) else { return false }
    let times = Set(entries.values.joined().map(\.time))
    guard times.count * entries.count <= Self.mostComparisons else { return false }
    return times.contains { time in
      entries.allSatisfy { key, history in
        // What the key was before its first change since then; else it is what it is now.
        let first = history.first { $0.time >= time }
        return list(key) == (first.map(\.value) ?? present(key))
      }
    }
  }

  /// Where more comparisons were needed, the list counts as a stale copy.
  private static let mostComparisons = 1 << 20

  /// The key's value is somebody else's now.
  mutating func forget(_ key: Key) { bytes -= entries.removeValue(forKey: key)?.bytes ?? 0 }

  /// Lets go of what is too old to matter.
  mutating func forget(now: Instant = .now) {
    entries = entries.filter { $0.value.last?.isRecent(now) == true }
    bytes = entries.values.reduce(0) { $0 + $1.bytes }
    limit = max(1024, entries.count * 2)
  }

  /// When everything that is kept now is too old; nil: nothing is.
  var deadline: Instant? {
    entries.values.compactMap(\.last?.time).max()?.advanced(milliseconds: 10_000)
  }

  /// Lets go of the largest values until half of what may be kept is free.
  private mutating func shed() {
    let sizes = entries.map { (key: $0.key, bytes: $0.value.bytes) }
    for (key, size) in sizes.sorted(by: { $0.bytes > $1.bytes }) {
      guard bytes > Self.mostBytes / 2 else { return }
      bytes -= size
      entries[key] = nil
    }
  }
}

extension RecentChanges.Before {
  fileprivate func isRecent(_ now: Instant) -> Bool {
    now.nanoseconds(after: time) < 10_000_000_000
  }
}

extension [RecentChanges.Before] {
  fileprivate var bytes: Int { reduce(0) { $0 + ($1.value?.shortBytes ?? 0) } }
}

extension Value {
  /// Bytes that a value of unknown use takes, roughly. Cost: O(values).
  fileprivate var shortBytes: Int {
    switch self {
    case .string(let text): text.utf8.count + 16
    case .data(let data): data.count + 16
    case .array(let items): items.reduce(16) { $0 + $1.shortBytes }
    case .dictionary(let items):
      items.reduce(16) { $0 + $1.key.utf8Count + $1.value.shortBytes + 16 }
    default: 16
    }
  }
}
