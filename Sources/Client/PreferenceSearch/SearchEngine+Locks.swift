import PreferenceModel
import PropertyList

// Domains that the administrator has locked.

extension SearchEngine {
  /// Whether the domain is locked, as `DomainLocks` says. Throws where a list that may say so cannot
  /// be read. Cost: a lock while the setting does not change; else a look-up.
  public func isLocked(_ domain: DomainName) throws(EngineError) -> Bool {
    try domainLocks().contain(domain)
  }

  /// The domains that are locked.
  func domainLocks() throws(EngineError) -> DomainLocks {
    let (known, changes) = suites.withLock { ($0.locks, $0.changes) }
    if let known, places.isFresh { return known }
    let found = try foundLocks()
    // A change since the look-up began may concern them.
    suites.withLock { if $0.changes == changes { $0.locks = found } }
    return found
  }

  private func foundLocks() throws(EngineError) -> DomainLocks {
    guard let lists, lists.hasFindings else { return try places.domainLocks() }
    for location in DomainLocks.locations {
      guard let value = try find(DomainLocks.key, at: location, for: .settings)?.value else {
        continue
      }
      return DomainLocks(value)
    }
    return .none
  }

  /// Whether the locks are known, so that a look-up asks no place for them.
  var knowsLocks: Bool { suites.withLock { $0.locks != nil } }

  /// Whether the domain is locked, as far as that is known without asking a place.
  func isKnownLocked(_ domain: DomainName) -> Bool {
    suites.withLock { $0.locks?.contain(domain) == true }
  }

  /// The places that are kept in lists and whose keys of the domain `source` count in the domain.
  func countingPlaces(
    of source: DomainName, in domain: DomainName
  ) throws(EngineError) -> [Place] {
    let locations = SearchList.persistentPlaces.map { Location($0, source) }
    return try domainLocks().counting(locations, in: domain).map(\.place)
  }
}

extension SearchPath {
  /// The value as the domain shows it: in a locked one it cannot be written.
  func shown(_ found: Resolution) -> Resolution {
    guard isLocked, !found.isReadOnly else { return found }
    return Resolution(found.stored, location: found.location, isReadOnly: true)
  }
}

extension Changeset {
  /// Whether other domains may be locked after the change.
  var concernsLocks: Bool {
    concernsAllSuites
      || items.contains {
        $0.location.domain == .settings && $0.location.place.isForced
          && $0.edit.key == DomainLocks.key
      }
  }
}
