import PreferenceHistory
import PreferenceModel
import PropertyList

/// What selected changes have made of a key, taken together.
struct NetChange {
  let location: Location
  let key: Key
  /// What was there before the first of them.
  let before: RecordedValue
  /// What the last of them has left.
  fileprivate(set) var after: RecordedValue
  /// The number of the last other change since the first of them; nil: there is none.
  fileprivate(set) var other: UInt64?
  /// The number of an other change that is between two of them; nil: none is.
  fileprivate(set) var between: UInt64?

  /// Returns the changes of each key, in the order in which the keys were first changed.
  /// - Parameter records: the whole history, the oldest change first.
  static func all(_ records: [HistoryRecord], _ selection: HistorySelection) -> [NetChange] {
    var all: [NetChange] = []
    var known: [RecordedKey: Int] = [:]
    for record in records {
      let isMeant = selection.contains(record)
      for item in record.items {
        let key = item.recordedKey
        if isMeant, selection.contains(item) {
          if let index = known[key] {
            all[index].after = item.after
            all[index].between = all[index].other
          } else {
            known[key] = all.count
            all.append(
              NetChange(
                location: item.location, key: item.key, before: item.before, after: item.after))
          }
        } else if let index = known[key] {
          all[index].other = record.number
        }
      }
    }
    return all
  }
}
