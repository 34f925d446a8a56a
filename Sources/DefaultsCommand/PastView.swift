import PreferenceHistory
import PreferenceModel
import PropertyList

/// The values of a domain as they were at a moment: the present ones, with the later changes of the
/// history taken back.
struct PastView {
  private let view: DomainView
  /// The changes after the moment, the latest first.
  private let later: [HistoryRecord]

  /// - Parameter moment: a time, or a change: then the state is the one that it has left.
  init(_ target: Target, at moment: HistorySelection.Moment) throws(EngineError) {
    view = try DomainView(target)
    var selection = HistorySelection()
    selection.since = moment.next
    later = try HistoryView(view.store).records.filter { selection.contains($0) }.reversed()
  }

  /// Returns the values of the domain: those of the first of its places that had each key. Throws
  /// ENODATA for a value that the history has not kept.
  func contents() throws(EngineError) -> ValueDictionary {
    var contents: ValueDictionary = [:]
    for location in view.target.locations.reversed() {
      var values = try view.store.places.snapshots(of: [location]).first?.values ?? [:]
      var lost: Set<Key> = []
      for item in later.flatMap(\.items) where item.location == location {
        values[item.key] = item.before.value
        if item.before.isKnown { lost.remove(item.key) } else { lost.insert(item.key) }
      }
      if let key = lost.min() {
        throw EngineError(
          .system(.noData), domain: location.domain, key: key,
          "the history has not kept the value of then")
      }
      contents = contents.merging(values)
    }
    return contents
  }
}
