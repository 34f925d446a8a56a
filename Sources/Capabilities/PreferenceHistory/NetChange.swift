import PreferenceModel
import PropertyList

/// What selected changes have made of a key, taken together.
package struct NetChange: Sendable {
  package let key: RecordedKey
  /// What was there before the first of them.
  package let before: RecordedValue
  /// What the last of them has left.
  package fileprivate(set) var after: RecordedValue
  /// The number of the last other change since the first of them; nil if there is none.
  package fileprivate(set) var other: UInt64?
  /// The number of an other change that is between two of them; nil if none is.
  package fileprivate(set) var between: UInt64?

  /// The numbers of the changes that have become one, where the filter names one of them that is not
  /// the last: what it alone did is not kept. It is nil if none were joined.
  package fileprivate(set) var merged: ClosedRange<UInt64>?

  /// Whether a profile has made one of them: its values are in no list.
  package fileprivate(set) var isOfProfile = false

  /// Whether the key is different afterwards, or may be.
  package var isDifference: Bool { before != after || !after.isKnown }

  /// Returns the changes of each key, in the order in which the keys were first changed.
  package static func all(_ history: HistoryContents, _ filter: HistoryFilter) -> [NetChange] {
    var all: [NetChange] = []
    var known: [RecordedKey: Int] = [:]
    // A number inside of a merged change of one key may be that of a change of another key.
    let exact = history.records.first { $0.number == filter.number }?.number
    for record in history.records {
      let isMeant = exact.map { record.number == $0 } ?? filter.contains(record)
      for item in record.items {
        let key = item.recordedKey
        if isMeant, filter.contains(key) {
          let index = known[key] ?? all.count
          if index < all.count {
            all[index].after = item.after
            all[index].between = all[index].other
          } else {
            known[key] = index
            var change = NetChange(key: key, before: item.before, after: item.after)
            if let number = filter.number, number < record.number {
              change.merged = min(record.first, number)...record.number
            }
            all.append(change)
          }
          if record.source.via == .profile { all[index].isOfProfile = true }
        } else if let index = known[key] {
          all[index].other = record.number
        }
      }
    }
    return all
  }
}
