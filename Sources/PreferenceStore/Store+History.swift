import Glibc
import PreferenceHistory
import PreferenceModel
import PropertyList
import SystemCalls

/// Writes the history of a store.
struct Historian {
  private var writer: HistoryWriter?
  /// The settings that counted last.
  private(set) var settings = HistorySettings.unknown
  /// Changes when values were removed from the files; readers then read all of them again.
  private(set) var edition = UInt64.random(in: 1..<1 << 62)
  private var hasFailed = false
  private let log: @Sendable (LogLine) -> Void
  /// The lists as they were last read or written; nil: there is no history.
  let seen: SeenLists?
  /// `State.appearances` when the lists were last compared with those; nil: they never were.
  var compared: Int?

  /// Milliseconds after which a history that could not be written is tried again.
  private static let patience: Int64 = 10_000

  /// Whether there is a history.
  var hasHistory: Bool { writer != nil }

  /// The number of the last change that is in the history.
  var lastNumber: UInt64 { writer?.lastNumber ?? 0 }

  /// Changes up to this time are in the history.
  var lastTime: Timestamp { writer?.lastTime ?? Timestamp(nanoseconds: .max) }

  /// - Parameter directory: where the history lies; nil: there is none.
  init(_ directory: HistoryDirectory?, _ log: @escaping @Sendable (LogLine) -> Void) {
    self.log = log
    guard let directory else {
      seen = nil
      return
    }
    do throws(SystemError) {
      writer = try HistoryWriter(directory)
      seen = SeenLists(directory)
    } catch {
      seen = nil
      log("the history cannot be read, so changes are not kept in it: \(error)")
    }
  }

  /// Writes the changes that the queue had, behind those that others have made in lists while there
  /// was no owner; and the lists as they were noted, when the history has both.
  /// - Returns: false where they could not be written, and must be put back.
  mutating func write(
    _ changes: [HistoryQueue.Change], after gap: String?, _ looks: [SeenLists.Look],
    _ settings: HistorySettings
  ) -> Bool {
    self.settings = settings
    var last = lastTime
    let differences = settings.isOff ? [] : seen?.differences(looks, settings) ?? []
    let unseen = differences.map { record in
      last = max(last, min(record.time, .now))
      return HistoryRecord(record.items, time: last, source: record.source)
    }
    let own = HistoryRecord.compacted(changes.compactMap { record($0) })
    guard append(unseen + own, after: gap) else { return false }
    if !settings.isOff { seen?.write(looks, settings) }
    return true
  }

  private mutating func append(_ records: [HistoryRecord], after gap: String?) -> Bool {
    do throws(SystemError) {
      if settings.isOff {
        edition = .random(in: 1..<1 << 62)
        try seen?.removeAll()
        try writer?.removeAll()
      } else if try writer?.append(records, after: gap) == true {
        // Nothing depends on it: it is tried again with the next file.
        do {
          try writer?.prune(bytes: settings.megabytes << 20, days: settings.days, now: .now)
        } catch {}
      }
      hasFailed = false
      for record in records { logManaged(record) }
      return true
    } catch {
      if !hasFailed { log("the history cannot be written; it is tried again: \(error)") }
      hasFailed = true
      return false
    }
  }

  /// Logs changes of managed keys: who forces something on users is asked on the machine, not in
  /// one user's history. Every owner sees what other programs change in managed lists, so only
  /// root's logs that.
  private func logManaged(_ record: HistoryRecord) {
    let isOwn = ![.list, .profile, .once].contains(record.source.via)
    guard isOwn || geteuid() == 0 else { return }
    for item in record.items where item.location.place.isManaged {
      let change = item.recordedKey.text
      let (before, after) = (item.before.text.prefix(200), item.after.text.prefix(200))
      let source = "\(record.source.text), user \(record.source.user)"
      log(.notice("\(change): \(before) -> \(after) (\(source))"))
    }
  }

  /// Makes what was written survive a loss of power.
  mutating func synchronize() {
    do throws(SystemError) {
      try writer?.synchronize()
    } catch {
      if !hasFailed { log("the history may not survive a loss of power: \(error)") }
      hasFailed = true
    }
  }

  /// Removes the values of keys from the history.
  mutating func forget(_ domain: DomainName, _ key: Key?) throws(SystemError) -> Int {
    edition = .random(in: 1..<1 << 62)
    try seen?.forget(domain)
    return try writer?.forget(domain, key) ?? 0
  }

  /// When a failed write is tried again.
  var nextTry: Instant { Instant.now.advanced(milliseconds: Self.patience) }

  /// The record of a change; nil where it has changed nothing.
  private func record(_ change: HistoryQueue.Change) -> HistoryRecord? {
    let items = change.items.compactMap { item -> HistoryRecord.Item? in
      let isKept = settings.keeps(item.key.key, of: item.key.location.domain)
      let (before, after) = (recorded(item.before, isKept), recorded(item.after, isKept))
      if before == after, before.isKnown { return nil }
      return HistoryRecord.Item(item.key.location, item.key.key, from: before, to: after)
    }
    return items.isEmpty
      ? nil
      : HistoryRecord(items, time: change.time, source: change.source, count: change.count)
  }

  private func recorded(_ held: HistoryQueue.Held, _ isKept: Bool) -> RecordedValue {
    switch held {
    case .none: .none
    case .stored(let stored): isKept ? RecordedValue(stored) : .notKept
    case .large(let size): isKept ? .large(size: size) : .notKept
    case .notKnown, .present: .notKept
    }
  }
}

extension Store {
  /// When `recordHistory` is to be called; nil: not before the next change.
  public var historyDeadline: Instant? { state.withLock { $0.history.due } }

  /// Appends the changes to the history that it lacks. It never refuses a change: what cannot be
  /// written stays in memory, within bounds, and is tried again. Waits for a disk. Threads: any.
  /// - Parameter durably: whether they must survive a loss of power.
  public func recordHistory(durably: Bool = false) {
    if isReadOnly { return }
    historian.withLock { historian in
      // Both at once: a change of the queue may be of a list that was noted before.
      let (looks, changes, gap) = state.withLock { state in
        let (changes, gap) = state.takeHistory()
        return (seen?.removeLooks() ?? [], changes, gap)
      }
      if !changes.isEmpty || gap != nil || !looks.isEmpty {
        // Asked when the changes are taken, so that settings which came before them count.
        let settings = historySettings ?? historian.settings
        let isWritten = historian.write(changes, after: gap, looks, settings)
        if !isWritten { seen?.putBack(looks) }
        state.withLock { state in
          if settings.isOff { state.history.turnOff() }
          if !isWritten { state.history.putBack(changes, gap: gap, until: historian.nextTry) }
        }
      }
      if durably { historian.synchronize() }
    }
  }

  /// The settings of the history that count: the first of the persistent places that has them; nil
  /// where a list cannot be read. May read lists.
  private var historySettings: HistorySettings? {
    do throws(EngineError) {
      return HistorySettings(
        try findFirst(HistorySettings.key, in: HistorySettings.locations)?.stored.value)
    } catch {
      return nil
    }
  }

  /// Removes the values of a domain's keys, or of one key, from the history, durably. The journal
  /// and the list keep the present value.
  /// - Returns: the number of records that had one, as an integer.
  public func forgetHistory(of domain: DomainName, _ key: Key?) throws(EngineError) -> Value {
    guard historian.withLock({ $0.hasHistory }) else {
      throw EngineError(
        .system(.notSupported), domain: domain, key: key,
        "the history cannot be read, so nothing was removed from it; prefsd's log says why")
    }
    recordHistory()
    let count = try EngineError.wrapping(domain) { () throws(SystemError) in
      try historian.withLock { historian throws(SystemError) in
        state.withLock { $0.history.forget(domain, key) }
        return try historian.forget(domain, key)
      }
    }
    return .integer(WideInteger(UInt64(clamping: count)))
  }

  /// What `status.json` says of the history. Reads its files.
  var historyStatus: ValueDictionary {
    let isOn = state.withLock { $0.history.isOn }
    var status: ValueDictionary = ["off": .boolean(!isOn)]
    guard let summary = try? layout.history.summary() else { return status }
    status["bytes"] = .integer(WideInteger(UInt64(clamping: summary.bytes)))
    status["gaps"] = .integer(WideInteger(UInt64(clamping: summary.gaps)))
    for (name, time) in [("since", summary.since), ("until", summary.until)] {
      if let time { status[Key(name)] = .date(AbsoluteTime(time)) }
    }
    return status
  }

  /// What people and programs can be told of the history: where it lies.
  public func historyReport() -> Value {
    compareLists()
    recordHistory()
    let isOn = state.withLock { $0.history.isOn }
    let (last, edition) = historian.withLock { ($0.lastNumber, $0.edition) }
    return [
      "Directory": .string(layout.history.path), "Off": .boolean(!isOn),
      "Last": .integer(WideInteger(last)), "Edition": .integer(WideInteger(edition)),
    ]
  }
}

extension Store {
  /// Reads the lists that other programs have changed while there was no owner, or since, and that
  /// are not in memory. Cost: two stat(2) for each list, where one may have changed.
  private func compareLists() {
    let appearances = state.withLock { $0.appearances }
    guard historian.withLock({ $0.compared != appearances }) else { return }
    for location in seen?.changedLocations(layout.path) ?? []
    where state.withLock({ $0.domains[location] == nil }) {
      // One that cannot be read is logged, and compared when it can be.
      do { try load(location) } catch {}
    }
    historian.withLock { $0.compared = appearances }
  }

  /// Notes a list as it was read or written, for the next owner.
  func noteLook(
    _ location: Location, _ values: ListValues, _ identity: FileIdentity?, isFirst: Bool,
    _ state: inout State
  ) {
    guard let seen, state.history.isOn, location.place != .schema else { return }
    let look = SeenLists.Look(
      location: location, values: values, identity: identity, isFirst: isFirst)
    if seen.note(look) { state.history.wake() }
  }
}

extension Store.State {
  /// Takes the changes out that the history lacks.
  fileprivate mutating func takeHistory() -> (changes: [HistoryQueue.Change], gap: String?) {
    var queue = HistoryQueue()
    swap(&queue, &history)
    defer { swap(&queue, &history) }
    return queue.removeAll { domains[$0]?.snapshot.entry($1) }
  }
}

extension StoreLayout {
  /// Where the history of the store lies.
  var history: HistoryDirectory { HistoryDirectory(stateDirectory + "/history") }
}
