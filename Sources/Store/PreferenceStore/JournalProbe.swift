/// Gives the journal's readers any bytes, and says whether they keep their promises (for fuzzers).
package enum JournalProbe {
  /// Whether the record in a payload is written as bytes that read as the same record. True where
  /// the payload is no record.
  package static func readsBack(payload: [UInt8]) -> Bool {
    guard let record = JournalRecord(decoding: payload[...]) else { return true }
    return JournalRecord(decoding: record.encoded()[...]) == record
  }

  /// Replays the records of a file: whether each comes once, in the order of their numbers.
  package static func replay(file: [UInt8]) -> Bool {
    let entries = Journal.entries(ofFile: file)
    var state = StoreState()
    state.replay(entries)
    return zip(entries, entries.dropFirst()).allSatisfy { $0.sequence < $1.sequence }
  }
}
