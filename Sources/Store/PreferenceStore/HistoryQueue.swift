import PreferenceHistory
import PreferenceModel
import PropertyList
import SystemCalls

/// The changes that took effect and that the history does not have yet, in their order.
///
/// They are references to values, so that a change costs no copy of them. Long texts are not held:
/// who holds one that grows by splices has its next splice copy it.
///
/// Threads: under the lock of the store's state.
struct HistoryQueue {
  /// What was, or is, at a key.
  enum QueuedValue: Sendable {
    case none
    case stored(StoredValue)
    case large(size: Int)
    case notKnown
    /// What the location has when the queue is taken.
    case present
  }

  /// A key that a change has set or removed.
  struct Item: Sendable {
    let key: RecordedKey
    let before: QueuedValue
    var after: QueuedValue

    /// The same without values, but for those of which it is known that there is none.
    var withoutValues: Item {
      let without = { (held: QueuedValue) -> QueuedValue in
        if case .none = held { .none } else { .notKnown }
      }
      return Item(key: key, before: without(before), after: without(after))
    }

    /// About how many bytes it takes.
    fileprivate var size: Int { Self.least + Self.size(before) + Self.size(after) }

    /// The bytes of an item without values.
    fileprivate static let least = 128

    private static func size(_ held: QueuedValue) -> Int {
      if case .stored(let stored) = held {
        stored.approximateSize + (stored.metadata.text?.count ?? 0)
      } else {
        0
      }
    }
  }

  struct Change: Sendable {
    var time: Timestamp
    /// The time of the first change that it stands for.
    fileprivate(set) var start: Timestamp
    let source: ChangeSource
    var items: [Item]
    /// How many changes it stands for.
    var count = 1
    /// Whether it is as large as a whole list, and counts apart: it is kept as it is.
    fileprivate(set) var isLarge = false
  }

  /// Whether the store has a history; without one nothing is ever kept.
  var hasHistory = false { didSet { isOn = hasHistory } }
  /// Whether changes are kept.
  private(set) var isOn = false
  private(set) var changes: [Change] = []
  /// Where the replayed changes are, by their times. Each transaction has another time.
  private var replayed: [Timestamp: Int] = [:]
  /// Where the last change of each key in the queue is.
  private var last: [RecordedKey: (change: Int, item: Int)] = [:]
  /// Bytes of the changes that are not large, and of those that are, which have so many keys.
  private var size = 0
  private var large = (size: 0, keys: 0)
  /// When the queue is to be taken; nil if it is empty.
  private(set) var due: Instant?
  /// Why changes before those of the queue are missing; nil if none are.
  var gap: String?
  /// Changes of the journal up to this time are in the history.
  var known = Timestamp(nanoseconds: .max)
  /// What keys had when the queue was last taken, if only splices have changed them since: the
  /// change of a splice does not say what was there before.
  private var spliced: [RecordedKey: QueuedValue] = [:]

  /// The bytes that the queue may have; beyond that changes of a key by one source become one.
  private static let most = 4 << 20
  /// Bytes from which on a change is large, and that all large ones may have. A list that goes as a
  /// whole had as much in memory a moment ago; so it is written at once.
  private static let (leastLarge, mostLarge) = (1 << 20, 24 << 20)
  /// The most texts that `spliced` keeps.
  private static let mostSpliced = 32
  /// Milliseconds for which a change waits for others.
  private static let patience: Int64 = 1000
  /// Milliseconds after which the queue is taken because a list was read for the first time: a
  /// program that reads many lists is not slowed down by it.
  private static let readingPatience: Int64 = 10_000

  /// Has the queue taken though no change was added to it.
  /// - Parameter hasRead: whether lists were only read; then it may wait longer.
  mutating func wake(hasRead: Bool = false) {
    if isOn { bringForward(within: hasRead ? Self.readingPatience : Self.patience) }
  }

  private mutating func bringForward(within milliseconds: Int64) {
    let end = Instant.now.advanced(milliseconds: milliseconds)
    due = due.map { min($0, end) } ?? end
  }

  /// Adds what a replayed transaction has changed in one list, whose changes come in their order. A
  /// transaction of several lists, which are read one after the other, becomes one change, if the
  /// queue is not taken in between.
  mutating func addReplayed(
    _ items: [Changeset.Item], _ source: ChangeSource, _ time: Timestamp
  ) {
    if !items.isEmpty { add(Changeset(items), source, time, isReplayed: true) }
  }

  /// Adds a change that took effect. Cost: O(its items), whatever the size of the values.
  mutating func add(
    _ change: Changeset, _ source: ChangeSource, _ time: Timestamp, isReplayed: Bool = false
  ) {
    // The settings may say that changes are kept again.
    if hasHistory, !isOn, change.concerns(.settings) { isOn = true }
    guard isOn else { return }
    var items: [Item] = []
    items.reserveCapacity(change.items.count)
    let removed = change.removedKeys
    for item in change.items where item.location.place.hasPreferences {
      if case .removeDomain = item.edit {
        addRemoval(item, except: removed[item.location] ?? [], to: &items)
      } else {
        add(item, source, time, to: &items)
      }
    }
    add(items, source, time, isReplayed: isReplayed)
  }

  /// Adds the removal of a domain: that of each of its keys, but for those that the change removes
  /// by themselves.
  private func addRemoval(
    _ item: Changeset.Item, except removed: Set<Key>, to items: inout [Item]
  ) {
    guard case .domain(let snapshot) = item.before else { return }
    for key in snapshot.keys where !removed.contains(key) {
      let before = snapshot.entry(key).map { held($0) } ?? .notKnown
      items.append(Item(key: RecordedKey(key, at: item.location), before: before, after: .none))
    }
  }

  private mutating func add(
    _ item: Changeset.Item, _ source: ChangeSource, _ time: Timestamp, to items: inout [Item]
  ) {
    let location = item.location
    switch item.edit {
    case .set(let key, let value, let written):
      var text: [UInt8]?
      if case .exact(let bytes) = written { text = bytes }
      let after = held(
        StoredValue(value, Metadata(text: text, modified: Timestamp(nanoseconds: 0))))
      let key = RecordedKey(key, at: location)
      spliced[key] = nil
      if complete(key, source, after, time) { return }
      items.append(Item(key: key, before: held(item.before), after: after))
    case .remove(let key):
      let key = RecordedKey(key, at: location)
      spliced[key] = nil
      items.append(Item(key: key, before: held(item.before), after: .none))
    case .splice(let key, _):
      // Until the queue is taken, the splices of one source are one change.
      let key = RecordedKey(key, at: location)
      if let known = last[key], changes[known.change].source == source,
        case .present = changes[known.change].items[known.item].after
      {
        // By the time the next owner tells which changes of the journal the history lacks.
        changes[known.change].time = time
        return
      }
      if complete(key, source, .present, time) { return }
      var before = held(item.before)
      if case .notKnown = before, last[key] == nil, let known = spliced[key] { before = known }
      items.append(Item(key: key, before: before, after: .present))
    case .describe, .createDomain, .removeDomain: break
    }
  }

  /// Makes the first text of a key that its creator has just made part of that change: `echo` makes
  /// a file first, which is an empty string, and then writes to it.
  /// - Returns: whether it is one.
  private mutating func complete(
    _ key: RecordedKey, _ source: ChangeSource, _ text: QueuedValue, _ time: Timestamp
  ) -> Bool {
    guard let (change, item) = last[key], changes[change].source == source else { return false }
    let known = changes[change].items[item]
    guard case (.none, .stored(let stored)) = (known.before, known.after), stored.byteCount == 0
    else { return false }
    changes[change].items[item].after = text
    changes[change].time = time
    size += changes[change].items[item].size - known.size
    return true
  }

  private func held(_ before: Changeset.Before) -> QueuedValue {
    switch before {
    case .nothing: .none
    case .value(let stored): held(stored)
    case .something, .domain: .notKnown
    }
  }

  private func held(_ stored: StoredValue) -> QueuedValue {
    let count = stored.approximateSize
    return count > RecordedValue.largest ? .large(size: stored.byteCount ?? count) : .stored(stored)
  }

  /// Adds items of one change, as it is to be recorded.
  /// - Parameter count: how many changes it stands for.
  private mutating func add(
    _ items: [Item], _ source: ChangeSource, _ time: Timestamp, count: Int = 1,
    isReplayed: Bool = false
  ) {
    if items.isEmpty { return }
    let position = isReplayed ? replayed[time] ?? changes.count : changes.count
    if isReplayed { replayed[time] = position }
    let isNew = position == changes.count
    if isNew {
      changes.append(Change(time: time, start: time, source: source, items: [], count: count))
    }
    var change = changes[position]
    let earlier = change.items.count
    change.items.reserveCapacity(earlier + items.count)
    last.reserveCapacity(last.count + items.count)
    var added = 0
    for item in items {
      let known = last.updateValue((position, change.items.count), forKey: item.key)
      if let known, known.change == position {
        // A transaction may change a key twice.
        change.items[known.item].after = item.after
        last[item.key] = known
        continue
      }
      end(known, with: item.before)
      change.items.append(item)
      added += item.size
    }
    if isNew { change.isLarge = added > Self.leastLarge }
    if change.isLarge {
      large = (large.size + added, large.keys + change.items.count - earlier)
    } else {
      size += added
    }
    changes[position] = change
    bringForward(within: change.isLarge ? 0 : Self.patience)
    if large.size > Self.mostLarge { return drop() }
    if size > Self.most { shrink() }
  }

  private mutating func clear() {
    (changes, replayed, last, size, large) = ([], [:], [:], 0, (0, 0))
  }

  /// Ends a row of splices: what they have made is what the next change has found.
  private mutating func end(_ position: (change: Int, item: Int)?, with value: QueuedValue) {
    guard let (change, item) = position, case .present = changes[change].items[item].after else {
      return
    }
    changes[change].items[item].after = value
  }

  /// Makes the changes of a key by one source one change; if that does not suffice, forgets all
  /// values, and if there are too many keys, drops the changes.
  private mutating func shrink() {
    // So many keys have no room, even without their values.
    if (last.count - large.keys) * Item.least > Self.most / 2 { return drop() }
    let (all, kept, times) = (changes, large, replayed)
    clear()
    large = kept
    for change in all {
      if change.isLarge {
        for (number, item) in change.items.enumerated() { last[item.key] = (changes.count, number) }
        changes.append(change)
        continue
      }
      var items: [Item] = []
      var merged: Set<Int> = []
      for item in change.items {
        if let earlier = merge(item, of: change) {
          merged.insert(earlier)
        } else {
          last[item.key] = (changes.count, items.count)
          items.append(item)
          size += item.size
        }
      }
      // Once, however many of its keys the earlier change has.
      for earlier in merged { changes[earlier].count += change.count }
      if !items.isEmpty {
        changes.append(
          Change(
            time: change.time, start: change.start, source: change.source, items: items,
            count: change.count))
      }
    }
    for (index, change) in changes.enumerated() where times[change.start] != nil {
      replayed[change.start] = index
    }
    guard size > Self.most / 2 else { return }
    size = 0
    for change in changes.indices where !changes[change].isLarge {
      for item in changes[change].items.indices {
        changes[change].items[item] = changes[change].items[item].withoutValues
        size += changes[change].items[item].size
      }
    }
    if size > Self.most / 2 { drop() }
  }

  private mutating func drop() {
    clear()
    gap = "there were more changes at once than are kept"
  }

  /// Makes an item part of the last change of its key, if that is of the same source.
  /// - Returns: where that change is; nil if it is of another source, or there is none.
  private mutating func merge(_ item: Item, of change: Change) -> Int? {
    guard let known = last[item.key], changes[known.change].source == change.source,
      !changes[known.change].isLarge
    else { return nil }
    size -= changes[known.change].items[known.item].size
    changes[known.change].items[known.item].after = item.after
    changes[known.change].time = change.time
    size += changes[known.change].items[known.item].size
    return known.change
  }

  /// Takes everything out.
  /// - Parameter present: what a location has for a key.
  mutating func removeAll(
    _ present: (Location, Key) -> StoredValue?
  ) -> (changes: [Change], gap: String?) {
    if spliced.count > Self.mostSpliced { spliced = [:] }
    for (key, position) in last {
      guard case .present = changes[position.change].items[position.item].after else { continue }
      let value = present(key.location, key.key).map { copy($0) } ?? .none
      changes[position.change].items[position.item].after = value
      spliced[key] = value
    }
    defer {
      clear()
      (due, gap) = (nil, nil)
    }
    return (replayed.isEmpty ? changes : changes.sorted { $0.start < $1.start }, gap)
  }

  /// What is kept of a value that splices may have made: a copy, unless it is large.
  private func copy(_ stored: StoredValue) -> QueuedValue {
    if let count = stored.byteCount, count > RecordedValue.largest { return .large(size: count) }
    return .stored(
      StoredValue(stored.value, Metadata(text: stored.text, modified: stored.modified)))
  }

  /// Keeps nothing until the settings change. What was known of texts is not true then.
  mutating func turnOff() { (isOn, spliced) = (false, [:]) }

  /// Forgets the values of a domain's keys, or of one key.
  mutating func forget(_ domain: DomainName, _ key: Key?) {
    spliced = [:]
    for change in changes.indices {
      for (index, item) in changes[change].items.enumerated()
      where item.key.location.domain == domain && key.map({ $0 == item.key.key }) ?? true {
        changes[change].items[index] = item.withoutValues
      }
    }
  }

  /// Puts back what could not be written, before what has come since.
  mutating func putBack(_ taken: [Change], gap: String?, until due: Instant) {
    let later = changes
    clear()
    self.gap = gap ?? self.gap
    for change in taken + later {
      add(change.items, change.source, change.time, count: change.count)
    }
    self.due = due
  }
}

extension Changeset {
  /// The keys that the change removes by themselves, where it also removes a domain as a whole: as
  /// `defaults delete` does, which may have 100,000 of them.
  fileprivate var removedKeys: [Location: Set<Key>] {
    var removed: [Location: Set<Key>] = [:]
    guard items.contains(where: { $0.edit == .removeDomain }) else { return removed }
    for item in items {
      guard let key = item.edit.key else { continue }
      if case .remove = item.edit {
        removed[item.location, default: []].insert(key)
      } else {
        removed[item.location]?.remove(key)
      }
    }
    return removed
  }
}
