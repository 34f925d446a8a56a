import PreferenceHistory
import PreferenceModel
import PropertyList

/// The values of a domain as they were at a moment: the present ones, with the later changes of the
/// history taken back.
struct PastView {
  private let view: DomainView
  /// The changes after the moment, the latest first.
  private let later: [HistoryRecord]
  private let moment: HistorySelection.Moment

  /// Throws ENODATA for a moment before the oldest change that is kept, and for one after which
  /// changes are missing.
  /// - Parameter moment: a time, or a change: then the state is the one that it has left.
  init(_ target: Target, at moment: HistorySelection.Moment) throws(EngineError) {
    (view, self.moment) = (try DomainView(target), moment)
    var selection = HistorySelection()
    selection.since = moment.next
    let history = try HistoryView(view.store)
    later = history.records.filter { selection.contains($0) }.reversed()
    let last = history.entries.lastIndex {
      if case .change(let record) = $0 { !selection.contains(record) } else { false }
    }
    let isMissing = history.entries[(last ?? 0)...].contains {
      if case .gap = $0 { true } else { false }
    }
    if last == nil || isMissing {
      throw EngineError(
        .system(.noData), domain: target.domain, "the history does not have that moment")
    }
  }

  /// Returns the values of the domain: those of the first of its places that had each key; and the
  /// keys of which the history has not kept the value of then, which are left out.
  func contents() throws(EngineError) -> (values: ValueDictionary, lost: Set<Key>) {
    var contents: ValueDictionary = [:]
    var lost: Set<Key> = []
    for location in view.target.locations.reversed() {
      var values = try view.store.places.snapshots(of: [location]).first?.values ?? [:]
      var unknown: Set<Key> = []
      for record in later {
        for item in record.items where item.location == location {
          values[item.key] = item.before.value
          // One record may stand for changes before and after the moment.
          if item.before.isKnown, !isWithin(record) {
            unknown.remove(item.key)
          } else {
            unknown.insert(item.key)
          }
        }
      }
      lost.subtract(values.keys.filter { !unknown.contains($0) })
      lost.formUnion(unknown)
      contents = contents.merging(values)
    }
    for key in lost { contents[key] = nil }
    return (contents, lost)
  }

  /// Returns the value of a key; nil if there was none. Throws ENODATA for one that was not kept.
  func find(_ key: Key) throws(EngineError) -> Value? {
    let (values, lost) = try contents()
    guard !lost.contains(key) else {
      throw EngineError(
        .system(.noData), domain: view.target.domain, key: key,
        "the history has not kept the value of then")
    }
    return values[key]
  }

  private func isWithin(_ record: HistoryRecord) -> Bool {
    guard case .number(let number) = moment else { return false }
    return record.first <= number && number < record.number
  }
}
