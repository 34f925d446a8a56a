/// The journal's readers for fuzzers: any bytes, and whether what was read keeps its promises.
package enum JournalProbe {
  /// Whether a payload that is read is written as one that reads the same.
  package static func readsBack(payload: [UInt8]) -> Bool {
    guard let record = JournalRecord(decoding: payload[...]) else { return true }
    return JournalRecord(decoding: record.encoded()[...]) == record
  }

  /// Whether the records of a file are replayed in their order, each once, into some state.
  package static func replay(file: [UInt8]) -> Bool {
    let entries = Journal.entries(ofFile: file)
    var state = Store.State()
    Store.replay(entries, into: &state)
    return zip(entries, entries.dropFirst()).allSatisfy { $0.sequence < $1.sequence }
  }
}
