import PropertyList
import SystemCalls

extension LocationSnapshot.Base {
  /// Makes the time that most keys share the one of keys without metadata, and drops the metadata
  /// that says no more. The keys of an imported list share one; their times then cost neither
  /// memory nor bytes of the metadata file. Cost: O(metadata); O(keys) where the time changes.
  package mutating func shareTime() {
    let plain = values.count - metadata.count
    if let time = mostFrequentTime, time != modified,
      metadata.values.count(where: { $0.isNothing(but: time) }) > plain
    {
      for key in values.keys where metadata[key] == nil {
        metadata[key] = Metadata(text: nil, modified: modified)
      }
      modified = time
    }
    let time = modified
    if metadata.values.contains(where: { $0.isNothing(but: time) }) {
      metadata = metadata.filter { !$0.value.isNothing(but: time) }
    }
  }

  /// The time of more than half of the metadata, if there is one; else any of the times
  /// (Boyer and Moore's majority vote).
  private var mostFrequentTime: Timestamp? {
    var candidate: Timestamp?
    var votes = 0
    for one in metadata.values where one.isNothing(but: one.modified) {
      if votes == 0 { candidate = one.modified }
      votes += one.modified == candidate ? 1 : -1
    }
    return candidate
  }
}

extension Metadata {
  /// Whether it says nothing but that time.
  fileprivate func isNothing(but time: Timestamp) -> Bool {
    modified == time && text == nil && mode == nil && setter == nil && changed == nil
  }
}
