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
  /// The lists as they were last read or written; nil if there is no history.
  let seen: SeenLists?
  /// `StoreState.Directories.appearances` when the lists were last compared with those; nil if they
  /// never were.
  var compared: Int?

  /// Milliseconds after which a history that could not be written is tried again.
  private static let patience: Int64 = 10_000

  var hasHistory: Bool { writer != nil }

  /// The number of the last change that is in the history.
  var lastNumber: UInt64 { writer?.lastNumber ?? 0 }

  /// Changes up to this time are in the history.
  var lastTime: Timestamp { writer?.lastTime ?? Timestamp(nanoseconds: .max) }

  /// - Parameter directory: where the history lies; nil if there is none.
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
    let hidden = hiddenValues(of: change)
    let items = change.items.compactMap { item -> HistoryRecord.Item? in
      let before = recorded(item.before, item.key, hidden)
      let after = recorded(item.after, item.key, hidden)
      if before == after, before.isKnown { return nil }
      return HistoryRecord.Item(item.key.location, item.key.key, from: before, to: after)
    }
    return items.isEmpty
      ? nil
      : HistoryRecord(items, time: change.time, source: change.source, count: change.count)
  }

  /// The values of a change of which nothing is kept, as binary lists: a key that gets one of them
  /// under another name, by a renaming, has it as its secret.
  private func hiddenValues(of change: HistoryQueue.Change) -> Set<[UInt8]> {
    guard change.items.count > 1 else { return [] }
    var hidden: Set<[UInt8]> = []
    for item in change.items {
      for case .stored(let stored) in [item.before, item.after]
      where stored.value.isMeaningful
        && settings.hides(stored.value, of: item.key.key, in: item.key.location.domain)
      {
        hidden.insert(Document.binary(stored.value))
      }
    }
    return hidden
  }

  private func recorded(
    _ held: HistoryQueue.QueuedValue, _ key: RecordedKey, _ hidden: Set<[UInt8]>
  ) -> RecordedValue {
    let domain = key.location.domain
    switch held {
    case .none: return .none
    case .stored(let stored):
      let value = settings.recorded(stored, of: key.key, in: domain)
      if case .list(let bytes, _) = value, hidden.contains(bytes) { return .notKept }
      return value
    case .large(let size):
      return settings.keeps(key.key, of: domain) ? .large(size: size) : .notKept
    case .notKnown, .present: return .notKept
    }
  }
}

extension Value {
  /// Whether two keys hardly have the value by accident.
  fileprivate var isMeaningful: Bool {
    switch self {
    case .string(let text): !text.isEmpty
    case .data(let bytes): !bytes.isEmpty
    case .array(let items): !items.isEmpty
    case .dictionary(let items): !items.isEmpty
    case .boolean, .integer, .real, .single, .date, .uid: false
    }
  }
}
