import PreferenceModel
import PropertyList
import Synchronization
import SystemCalls

/// The history of a store as it was at one moment, the oldest change first.
package struct HistoryContents: Sendable {
  /// Changes, and gaps between them.
  package private(set) var entries: [HistoryDirectory.Entry] = []
  /// Whether nothing is kept, by the settings.
  package fileprivate(set) var isOff = false
  /// The owner's number for the files, which changes when values were removed from them.
  package fileprivate(set) var edition: Value?

  /// A history with these changes and gaps.
  package init(_ entries: [HistoryDirectory.Entry] = []) { append(entries) }

  /// The changes, without the gaps.
  package var records: some Sequence<HistoryRecord> {
    entries.lazy.compactMap { entry in
      if case .change(let record) = entry { record } else { nil }
    }
  }

  /// The number of the last change; 0 if there is none.
  package private(set) var lastNumber: UInt64 = 0

  fileprivate mutating func append(_ more: [HistoryDirectory.Entry]) {
    entries += more
    for case .change(let record) in more { lastNumber = max(lastNumber, record.number) }
  }
}

/// Reads the history of a store, repeatedly: what was read stays in memory.
///
/// Threads: any. A call waits for the owner of the store and for a disk, and for other calls that
/// do.
package final class HistoryReader: Sendable {
  private struct Known {
    var contents = HistoryContents()
    var hasRead = false
  }

  private let owner: any ReportService
  private let known = Mutex(Known())

  /// Creates a reader that has read nothing.
  package init(_ owner: any ReportService) { self.owner = owner }

  /// Returns the history, with every change whose call had returned when this one began. Cost: one
  /// question to the owner; the first time O(the history), 64 MiB at most, and later O(what was
  /// added).
  package func read() throws(EngineError) -> HistoryContents {
    try known.withLock { known throws(EngineError) in
      guard case .dictionary(let report) = try owner.report(.history),
        case .string(let path)? = report["Directory"]
      else {
        throw EngineError(
          .system(.invalidArgument), "the running prefsd is older and keeps no history")
      }
      let edition = report["Edition"]
      if edition == nil || edition != known.contents.edition { known = Known() }
      let last = known.contents.lastNumber
      if !known.hasRead || report["Last"] != .integer(WideInteger(last)) {
        let more = try EngineError.wrapping { () throws(SystemError) in
          try HistoryDirectory(path).entries(after: last)
        }
        known.contents.append(more)
      }
      known.contents.isOff = report["Off"] == true
      (known.contents.edition, known.hasRead) = (edition, true)
      return known.contents
    }
  }
}
