import Glibc
import PreferenceModel
import PropertyList
import SystemCalls

/// Which changes of the history are meant: the filters of `prefs history` and `prefs undo`.
package struct HistoryFilter: Equatable, Sendable {
  /// The only domain, and the only key; nil means all.
  package var domain: DomainName?
  package var key: Key?
  /// The only change; nil means all.
  package var number: UInt64?
  package var since, until: HistoryMoment?
  /// The path or name of a program, or a unit; nil means all.
  package var by: String?
  /// The only unit, apart from changes of which it is not known who has made them; nil means all.
  package var unit: String?
  package var via: ChangeSource.Via?
  /// The only place; nil means all.
  package var place: Place?
  /// Whether keys that hold a program's state, and are no settings, are meant too.
  package var isAll = false
  /// Keys that hold a program's state because they change all the time: `HistoryContents.busyKeys`.
  package var busy: Set<RecordedKey> = []
  /// Whether the changes are to be taken back. What an undo by the user of this process cannot do
  /// is left out, unless the filter names it: declarations, what a profile gives or gave, and lists
  /// that the user cannot write.
  package var isUndo = false

  /// Every change of a setting.
  package init() {}

  /// The same changes, with those of keys that hold a program's state.
  package var withState: HistoryFilter {
    var filter = self
    filter.isAll = true
    return filter
  }

  /// Whether the change is meant, apart from its keys.
  package func contains(_ record: HistoryRecord) -> Bool {
    if let number { return (min(record.first, record.number)...record.number).contains(number) }
    if let since, !since.isReached(by: record) { return false }
    if let until, !until.includes(record) { return false }
    if let via {
      if record.source.via != via { return false }
    } else if isUndo, record.source.via == .profile {
      return false
    }
    if let unit, !record.source.program.isEmpty, record.source.unit != unit { return false }
    guard let by else { return true }
    let program = record.source.program
    return by == program || by == record.source.unit
      || program.split(separator: "/").last.map(String.init) == by
  }

  /// Whether the key is meant.
  package func contains(_ changed: RecordedKey) -> Bool {
    if let domain, changed.location.domain != domain { return false }
    if let place, changed.location.place != place { return false }
    if isUndo, isBeyond(changed) { return false }
    if let key { return changed.key == key }
    if isAll || number != nil { return true }
    // Who names a domain of state means what it has.
    if domain == nil, Self.isOfState(changed.location.domain) { return false }
    return !Self.isState(changed) && !busy.contains(changed)
  }

  /// Whether all keys of the domain hold a program's state, by its name: a component of it is
  /// `state` or `history` (`org.xfce.mousepad.state.window`).
  static func isOfState(_ domain: DomainName) -> Bool {
    domain.string.split(separator: ".").contains { $0 == "state" || $0 == "history" }
  }

  /// Whether an undo leaves the key, unless the filter names it.
  private func isBeyond(_ changed: RecordedKey) -> Bool {
    if changed.location.domain == .declared { return domain == nil }
    guard changed.location.place.isMachineWide, place == nil, number == nil else { return false }
    return geteuid() != 0 || changed.location.place == .vendor
  }

  /// Whether the key holds a program's state; so do those that this project keeps for itself.
  package static func isState(_ changed: RecordedKey) -> Bool {
    changed.isNote || changed.location.domain == .declared || isState(changed.key)
  }

  /// Whether the key holds a program's state, by its name: where its windows were, and when it last
  /// looked for something.
  static func isState(_ key: Key) -> Bool {
    let name = key.string
    return name.hasPrefix("NSWindow Frame ") || name.hasPrefix("NSSplitView")
      || name.hasPrefix("NSNav") || name.hasPrefix("NSToolbar") || name.contains("Geometry")
      || name.contains("LastCheckTime")
  }
}

extension HistoryContents {
  /// How many changes of keys the filter would have, if it had those that hold a program's state.
  package func leftOut(by filter: HistoryFilter) -> Int {
    guard !filter.isAll else { return 0 }
    let all = filter.withState
    return records.reduce(0) { count, record in
      guard filter.contains(record) else { return count }
      return record.items.reduce(count) {
        all.contains($1.recordedKey) && !filter.contains($1.recordedKey) ? $0 + 1 : $0
      }
    }
  }

  /// The keys that change all the time, so that they hold a program's state: for a day at least,
  /// and more than 20 times a day on average. Cost: O(changes).
  package func busyKeys() -> Set<RecordedKey> {
    var all: [RecordedKey: (count: Int, first: Timestamp, last: Timestamp)] = [:]
    for record in records {
      for item in record.items {
        var known = all[item.recordedKey] ?? (0, record.time, record.time)
        known.count += min(record.count, 1 << 32)
        known.last = record.time
        all[item.recordedKey] = known
      }
    }
    return Set(
      all.filter { _, known in
        let days = known.last.nanoseconds(after: known.first) / HistoryMoment.day
        return days >= 1 && Int64(known.count) / (days + 1) > 20
      }.keys)
  }
}
