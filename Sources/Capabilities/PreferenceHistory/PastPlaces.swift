import PreferenceModel
import PropertyList
import Synchronization
import SystemCalls

/// The persistent places of a store as they were at a moment of its history: the present ones, with
/// the later changes taken back. Every change is refused.
///
/// Promises: once a location has been asked for, it stays as it was at the moment, whatever is
/// changed in the present. A key whose value of then the history has not kept is among the keys,
/// and throws ENODATA where its value is asked for.
///
/// A location's present values are read first and the history after them: so the history has every
/// change that the values have.
///
/// Threads: any. The first call for a location waits for the owner of the store and for a disk; one
/// lock, which is not held meanwhile.
package final class PastPlaces: PersistentPlaces {
  /// The number of the change whose state this is.
  package let number: UInt64
  private let present: any PersistentPlaces
  private let reader: HistoryReader

  /// A location as it was then.
  private struct Past: Sendable {
    var snapshot: LocationSnapshot
    /// The keys whose values are not known.
    var lost: Set<Key> = []
  }

  private struct State {
    var later: LaterChanges
    var locations: [Location: Past] = [:]
    var domains: [Place: Set<DomainName>] = [:]
  }

  private let state: Mutex<State>

  /// The state that a change has left.
  /// - Parameters:
  ///   - number: the change: see `HistoryContents.number(at:)`.
  ///   - present: the places as they are.
  ///   - reader: reads the history of the same store.
  package init(
    after number: UInt64, _ present: any PersistentPlaces, _ reader: HistoryReader
  ) throws(EngineError) {
    (self.number, self.present, self.reader) = (number, present, reader)
    state = Mutex(State(later: LaterChanges(try reader.read(), after: number)))
  }

  /// Takes the later changes from the history as it is now. Throws ENODATA where it does not have
  /// the moment any more.
  private func update() throws(EngineError) {
    let history = try reader.read()
    if state.withLock({ $0.later.isOf(history) }) { return }
    guard history.number(at: .number(number)) != nil else {
      throw EngineError(.system(.noData), "the history no longer goes back to that moment")
    }
    let later = LaterChanges(history, after: number)
    state.withLock { if $0.later.last <= later.last { $0.later = later } }
  }

  /// The most lists that the owner is asked for in one message: they may be large.
  private static let mostAtOnce = 16

  /// Keeps the locations as they were. Cost: two questions to the owner for each 16 that are not
  /// known yet.
  private func load(_ locations: [Location]) throws(EngineError) {
    var missing = state.withLock { state in locations.filter { state.locations[$0] == nil } }[...]
    while !missing.isEmpty {
      let part = Array(missing.prefix(Self.mostAtOnce))
      missing = missing.dropFirst(part.count)
      let now = try present.snapshots(of: part)
      try update()
      state.withLock { state in
        for (location, now) in zip(part, now) where state.locations[location] == nil {
          let changes = state.later[location]
          state.locations[location] = changes.map { Self.past(now, $0) } ?? Past(snapshot: now)
        }
      }
    }
  }

  /// The location as it was.
  private func past(_ location: Location) throws(EngineError) -> Past {
    if let known = state.withLock({ $0.locations[location] }) { return known }
    try load([location])
    return state.withLock { $0.locations[location] } ?? Past(snapshot: LocationSnapshot())
  }

  /// A domain with changes taken back.
  private static func past(_ now: LocationSnapshot, _ changes: LaterChanges.Keys) -> Past {
    var past = Past(snapshot: now.with(additions: now.additions.filter { changes[$0.key] == nil }))
    for (key, then) in changes {
      let text: [UInt8]?
      if case .list(_, let written) = then.value { text = written } else { text = nil }
      var value = then.value.value
      if !then.value.isKnown || value == nil && then.value != .none {
        past.lost.insert(key)
        value = .string("")
      }
      let edit: Edit =
        value.map { .set(key, $0, text.map { .exact($0) } ?? .canonical) } ?? .remove(key)
      past.snapshot.apply(edit, time: then.modified)
    }
    let keys = past.snapshot.keys
    past.snapshot.exists = !keys.isEmpty
    past.snapshot.lastModified =
      keys.compactMap { past.snapshot.entry($0)?.modified }.max() ?? Timestamp(nanoseconds: 0)
    return past
  }

  // MARK: - Reading

  package func find(_ key: Key, at location: Location) throws(EngineError) -> StoredValue? {
    let past = try past(location)
    guard !past.lost.contains(key) else {
      throw EngineError(
        .system(.noData), domain: location.domain, key: key,
        "the history has not kept the value of then")
    }
    return past.snapshot.entry(key)
  }

  package func keys(at location: Location) throws(EngineError) -> [Key] {
    try past(location).snapshot.keys
  }

  package func exists(_ location: Location) throws(EngineError) -> Bool {
    try domains(in: location.place).contains(location.domain)
  }

  package func modified(_ location: Location) throws(EngineError) -> Timestamp? {
    let snapshot = try past(location).snapshot
    return snapshot.exists ? snapshot.lastModified : nil
  }

  package func snapshots(of locations: [Location]) throws(EngineError) -> [LocationSnapshot] {
    try load(locations)
    var all: [LocationSnapshot] = []
    for location in locations { all.append(try past(location).snapshot) }
    return all
  }

  /// The keys of a location whose values of then are not known.
  package func lostKeys(at location: Location) throws(EngineError) -> Set<Key> {
    try past(location).lost
  }

  package func domains(in place: Place) throws(EngineError) -> Set<DomainName> {
    if let known = state.withLock({ $0.domains[place] }) { return known }
    var found = try present.domains(in: place)
    try update()
    let changed = state.withLock { $0.later.locations(in: place) }
    try load(changed)
    for location in changed {
      if try past(location).snapshot.exists {
        found.insert(location.domain)
      } else {
        found.remove(location.domain)
      }
    }
    return state.withLock { state in
      state.domains[place] = found
      return found
    }
  }

  package func isLoaded(_ location: Location) -> Bool {
    state.withLock { $0.locations[location] != nil }
  }

  package var isFresh: Bool { true }

  // MARK: - Changes

  package var isReadOnly: Bool { true }

  package func apply(_ intents: [Intent], by author: Author) throws(EngineError) -> Changeset {
    throw EngineError(.system(.readOnlyFileSystem), "the past cannot be changed")
  }

  /// Nothing changes.
  package func observe(
    except author: Author?, _ observer: @escaping @Sendable (Notice) -> Void
  ) {}
}

/// What keys had before the changes that are later than a moment.
private struct LaterChanges {
  /// What a key had at the moment, and when that had been set.
  struct Then {
    let value: RecordedValue
    let modified: Timestamp
  }

  typealias Keys = [Key: Then]

  /// The number of the last change that is taken back, and the edition that has it.
  let last: UInt64
  private let edition: Value?
  private var keys: [Location: Keys] = [:]

  /// Cost: O(changes).
  init(_ history: HistoryContents, after number: UInt64) {
    (last, edition) = (history.lastNumber, history.edition)
    var found: [RecordedKey: (value: RecordedValue, modified: Timestamp?)] = [:]
    var oldest: Timestamp?
    // Backwards: what counts of a key is the first change after the moment, and the last before it.
    for entry in history.entries.reversed() {
      guard case .change(let record) = entry else { continue }
      oldest = record.time
      for item in record.items {
        if record.number > number {
          // A record may stand for changes before and after the moment.
          let isWithin = record.first <= number
          found[item.recordedKey] = (isWithin ? .notKept : item.before, nil)
        } else if let known = found[item.recordedKey], known.modified == nil {
          found[item.recordedKey]?.modified = record.time
        }
      }
    }
    for (key, then) in found {
      let modified = then.modified ?? oldest ?? Timestamp(nanoseconds: 0)
      keys[key.location, default: [:]][key.key] = Then(value: then.value, modified: modified)
    }
  }

  /// Whether these are the changes of that history.
  func isOf(_ history: HistoryContents) -> Bool {
    last == history.lastNumber && edition == history.edition
  }

  subscript(location: Location) -> Keys? { keys[location] }

  func locations(in place: Place) -> [Location] { keys.keys.filter { $0.place == place } }
}

extension HistoryContents {
  /// The same as `number(at:)`. Throws ENODATA where the history does not have that moment.
  package func requireNumber(at moment: HistoryMoment) throws(EngineError) -> UInt64 {
    if let number = number(at: moment) { return number }
    throw EngineError(.system(.noData), "the history does not have the moment \(moment.text)")
  }

  /// The number of the last change by a moment: the present with every later change taken back is
  /// the state of then. It is nil if the history does not have that moment. It is in the future, or
  /// before the oldest change, or changes after it are missing. Any moment of the day of the oldest
  /// change counts as after it, or as right before it, unless changes before it are missing. A
  /// change with an earlier time than the one before it was made under a wrong clock, and counts as
  /// made just after that.
  package func number(at moment: HistoryMoment, now: Timestamp = .now) -> UInt64? {
    var number: UInt64?
    var oldest: HistoryRecord?
    var isAfterGap = false
    var clock = OrderedClock(now: now)
    for entry in entries {
      switch entry {
      case .gap: (number, oldest, isAfterGap) = (nil, nil, true)
      case .change(var record):
        record.time = clock.time(of: record)
        oldest = oldest ?? record
        if moment.includes(record) {
          number = record.number
        } else if case .number(let wanted) = moment, record.first <= wanted {
          // The record stands for several changes.
          number = wanted
        }
      }
    }
    switch moment {
    case .time(let time):
      // Times are printed without fractions, so that the present one means its whole second.
      guard time <= now.endOfSecond else { return nil }
      if let oldest, number == nil, !isAfterGap, time >= oldest.time.beginningOfDay {
        return oldest.first.previous
      }
      return number
    case .number(let wanted):
      guard wanted <= lastNumber else { return nil }
      return number == nil && wanted != oldest?.first.previous ? nil : wanted
    }
  }

  /// The days on which something was changed, as `2026-11-21`, each with the number of the last
  /// change before it (`number(at:)`). Cost: O(changes).
  package var dayNumbers: [String: UInt64] {
    var days: [String: UInt64] = [:]
    var (day, previous): (Timestamp?, UInt64?)
    var isAfterGap = false
    var clock = OrderedClock(now: .now)
    for entry in entries {
      guard case .change(var record) = entry else {
        // Days before a gap are no moments, nor is the beginning of its own.
        (days, day, previous, isAfterGap) = ([:], nil, nil, true)
        continue
      }
      record.time = clock.time(of: record)
      if record.time.beginningOfDay != day {
        day = record.time.beginningOfDay
        let name = String(record.time.text.prefix(10))
        if days[name] == nil, !isAfterGap { days[name] = previous ?? record.first.previous }
        isAfterGap = false
      }
      previous = record.number
    }
    return days
  }
}

/// Gives changes, in their order, times that do not go back. A time in the future is not believed:
/// those after it have their own.
private struct OrderedClock {
  let now: Timestamp
  private var latest = Timestamp(nanoseconds: .min)

  init(now: Timestamp) { self.now = now }

  mutating func time(of record: HistoryRecord) -> Timestamp {
    let time = max(record.time, latest)
    if time <= now { latest = time }
    return time
  }
}

extension UInt64 {
  /// The number before; 0 has none.
  fileprivate var previous: UInt64 { self == 0 ? 0 : self - 1 }
}
