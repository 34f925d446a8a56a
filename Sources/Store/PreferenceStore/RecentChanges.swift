import PropertyList
import SystemCalls

/// The values that keys had before the store changed them, kept for ten seconds. With them the
/// store recognises a program that writes back a stale copy of the whole list, as Foundation's
/// UserDefaults does, and does not let it undo changes.
///
/// At most 1 MiB of values is kept. When there is more, the keys with the largest values go first;
/// a stale copy that has one of these values then counts as a change by that program.
struct RecentChanges: Sendable {
  fileprivate struct Before: Sendable {
    /// The value before the change; nil if the key was not there.
    var value: Value?
    var time: Instant
  }

  private static let mostValues = 8
  private static let mostBytes = 1 << 20

  /// What each key was before its last changes, oldest first.
  private var entries: [Key: [Before]] = [:]
  /// The number of keys at which old ones are looked for.
  private var limit = 1024
  private var bytes = 0

  /// Whether nothing is kept.
  var isEmpty: Bool { entries.isEmpty }

  /// Notes what the key was before a change. Cost: O(1), on average.
  mutating func note(_ key: Key, before: Value?, now: Instant = .now) {
    if entries.count >= limit { forget(now: now) }
    var list = entries.removeValue(forKey: key) ?? []
    bytes -= list.bytes
    list.removeAll { !$0.isRecent(now) }
    // A stale copy is most likely to have the oldest value or one of the latest.
    if list.count >= Self.mostValues { list.remove(at: 1) }
    if let last = list.last, last.value?.approximateSize ?? 0 > Self.mostBytes / 2 {
      list.removeLast()
    }
    list.append(Before(value: before, time: now))
    entries[key] = list
    bytes += list.bytes
    if bytes > Self.mostBytes { shed() }
  }

  /// Whether the key had this value before one of the changes of the last ten seconds.
  func undoes(_ key: Key, _ value: Value?, now: Instant = .now) -> Bool {
    entries[key]?.contains { $0.isRecent(now) && $0.value == value } ?? false
  }

  /// Whether the list is, as a whole, what the domain was at one moment of the last ten seconds:
  /// then somebody has put an earlier state back. Cost: O(n log n) for n changes that are kept.
  /// - Parameters:
  ///   - differing: the keys whose value in the list differs from the present one.
  ///   - list: the value of a key in the list.
  ///   - present: the value of a key in the store.
  func isEarlierState(
    _ differing: Set<Key>, _ list: (Key) -> Value?, present: (Key) -> Value?, now: Instant = .now
  ) -> Bool {
    guard differing.allSatisfy({ undoes($0, list($0), now: now) }) else { return false }
    // Moments just before changes.
    let moments = Set(entries.values.joined().map(\.time)).sorted()
    let numbers = Dictionary(uniqueKeysWithValues: zip(moments, 0...))
    // How many keys more have, at each moment than at the one before, the value of the list.
    var steps = Array(repeating: 0, count: moments.count + 1)
    for (key, history) in entries {
      let value = list(key)
      var first = 0
      for before in history {
        let next = (numbers[before.time] ?? 0) + 1
        if before.value == value {
          steps[first] += 1
          steps[next] -= 1
        }
        first = next
      }
      // After its last change, a key has its present value.
      if present(key) == value { steps[first] += 1 }
    }
    var count = 0
    return steps.dropLast().contains { step in
      count += step
      return count == entries.count
    }
  }

  /// Forgets a key whose value another program has changed.
  mutating func forget(_ key: Key) { bytes -= entries.removeValue(forKey: key)?.bytes ?? 0 }

  /// Forgets the keys that were not changed in the last ten seconds.
  mutating func forget(now: Instant = .now) {
    entries = entries.filter { $0.value.last?.isRecent(now) == true }
    bytes = entries.values.reduce(0) { $0 + $1.bytes }
    limit = max(1024, entries.count * 2)
  }

  /// Milliseconds for which the values are kept.
  static let duration: Int64 = 10_000

  /// When everything that is kept will be too old; nil if nothing is kept.
  var deadline: Instant? {
    entries.values.compactMap(\.last?.time).max()?.advanced(milliseconds: Self.duration)
  }

  /// Forgets the keys with the largest values until at most half of the allowed bytes is kept.
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
    now.milliseconds(after: time) < RecentChanges.duration
  }
}

extension [RecentChanges.Before] {
  fileprivate var bytes: Int { reduce(0) { $0 + ($1.value?.approximateSize ?? 0) } }
}
