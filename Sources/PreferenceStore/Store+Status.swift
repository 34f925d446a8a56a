import PreferenceModel
import PropertyList

extension Store {
  /// What `status.json` says of the store: its directories, how many lists are in memory, which of
  /// them lack changes or cannot be read, the size of the journal, and the profiles without what
  /// they set. Cost: O(lists in memory); waits for a disk where profiles have not been read.
  public var status: ValueDictionary {
    let (domains, unreadable, journal, version) = state.withLock { state in
      (state.domains.all, state.unreadable, state.journal?.byteCount ?? 0, state.version)
    }
    let unsaved = domains.filter { $0.list.unsavedSince != nil }.map(\.location)
    let failed = domains.compactMap { location, domain in domain.failure.map { (location, $0) } }
    let added = state.withLock { state in
      state.additions.flatMap { place, additions in
        additions.settings.unreadable.map { (Location(place, $0.key), $0.value) }
      }
    }
    let failures = Dictionary(failed) { $1 }.merging(unreadable.mapValues(\.error)) { $1 }
      .merging(added) { $1 }
    let profiles = profileReports.map { report in
      Value.dictionary(
        ValueDictionary(report.filter { !["forced", "joined", "once"].contains($0.key) }))
    }
    return [
      "profiles": .array(profiles),
      "store": .string(layout.userDirectory),
      "state directory": .string(layout.stateDirectory),
      "machine directory": .string(layout.systemDirectory),
      "lists in memory": .integer(WideInteger(UInt64(domains.count))),
      "unsaved": .array(unsaved.map { "\($0)" }.sorted().map { .string($0) }),
      "journal bytes": .integer(WideInteger(UInt64(journal))),
      "history": .dictionary(historyStatus),
      "last change": .integer(WideInteger(version)),
      "failures": .dictionary(
        ValueDictionary(
          failures.map { location, error in
            (Key("\(location)"), Value.string("\(layout.path(location)): \(error)"))
          })),
    ]
  }
}
