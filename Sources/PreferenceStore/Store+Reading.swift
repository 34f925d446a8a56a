import Glibc
import PreferenceModel
import PropertyList
import Synchronization
import SystemCalls

extension Store {
  /// A key's value, text and modification time in one location: from a fragment, its list, or a
  /// profile, in this order. Cost: a few hash look-ups; the first use of the location reads its list
  /// and additions.
  public func find(
    _ key: Key, at location: Location
  ) throws(EngineError) -> StoredValue? {
    while true {
      let finding = try state.withLock { state throws(EngineError) in
        // On a line of its own: in the call, it would cost a copy of the state.
        let number = state.domains.number(of: location.domain)
        return try state.find(key, location, ofDomain: number)
      }
      switch consume finding {
      case .value(let stored): return stored
      case .nothing: return nil
      case .unread: try load(location)
      }
    }
  }

  /// A key's value in the first of the locations that has it, as they are at one moment. Cost: a
  /// hash look-up in each list that is not empty, and a hash for each domain that was not among the
  /// last two; the first use of a location reads its list and additions.
  public func findFirst(
    _ key: Key, in locations: [Location]
  ) throws(EngineError) -> LocatedValue? {
    while true {
      let unread: Location
      switch try state.withLock({ state throws(EngineError) in try state.find(key, locations) }) {
      case .value(let found): return found
      case .nothing: return nil
      case .unread(let location): unread = location
      }
      try load(unread)
    }
  }

  /// Whether the domain has the key in one of the places, as far as their lists are in memory and
  /// could be read. Cost: as `findFirst`; no list is read.
  public func holds(_ key: Key, of domain: DomainName, in places: ArraySlice<Place>) -> Bool {
    state.withLock { state in
      let number = state.domains.number(of: domain)
      return places.contains { place in
        guard state.domains.isReadable(place, ofDomain: number) else { return false }
        let finding = try? state.find(key, Location(place, domain), ofDomain: number)
        if case .value? = finding { return true }
        return false
      }
    }
  }

  /// A number that the location's keys do not exceed. Cost: O(1); the first use of the location
  /// reads its list.
  public func mostKeys(at location: Location) throws(EngineError) -> Int {
    let listed = try read(location) { $0.mostKeys }
    guard location.place.hasAdditions else { return listed }
    return try state.withLock { state throws(EngineError) in
      try state.requireReadableAdditions(location)
      return listed + state.added(location).count
    }
  }

  /// The location as it is at this moment, with what is added to its list; later changes are not in
  /// the result.
  public func snapshot(of location: Location) throws(EngineError) -> DomainSnapshot {
    let listed = try read(location) { $0 }
    guard location.place.hasAdditions else { return listed }
    return try state.withLock { state throws(EngineError) in
      try state.requireReadableAdditions(location)
      return listed.with(additions: state.added(location))
    }
  }

  /// The location as it is at this moment, and the number of the last change of the store by then.
  public func versionedSnapshot(
    of location: Location
  ) throws(EngineError) -> (domain: DomainSnapshot, version: UInt64) {
    while true {
      _ = try snapshot(of: location)
      let found = state.withLock { state in
        state.shown(location).map { ($0, state.version) }
      }
      if let found { return found }
    }
  }

  /// The locations as they are at one moment, and the number of the last change of the store by
  /// then.
  public func versionedSnapshots(
    of locations: [Location]
  ) throws(EngineError) -> (domains: [DomainSnapshot], version: UInt64) {
    while true {
      for location in locations { _ = try snapshot(of: location) }
      let found = state.withLock { state -> ([DomainSnapshot], UInt64)? in
        let all = locations.compactMap { state.shown($0) }
        return all.count == locations.count ? (all, state.version) : nil
      }
      if let found { return found }
    }
  }

  /// Forgets the values that keys had before changes, and what requests did, once they are more than
  /// ten seconds old.
  /// - Returns: when there is more to forget; nil: not before the next change.
  public func forgetOld(_ now: Instant) -> Instant? {
    state.withLock { state in
      let requests = state.requests.forgetOld(now, most: 10_000)
      if let due = state.forgetAt, due <= now {
        state.forgetAt = state.domains.forgetRecent(now)
      }
      return [requests, state.forgetAt].compactMap { $0 }.min()
    }
  }

  /// The number of the last change. Cost: a load.
  public var version: UInt64 { changeNumber.value }

  /// Calls the body with the location under the lock, without a copy; loads the location first
  /// where that is needed.
  func read<Result>(
    _ location: Location, _ body: (borrowing DomainSnapshot) -> Result
  ) throws(EngineError) -> Result {
    while true {
      let found: Result? = try state.withLock { state throws(EngineError) in
        guard let domain = state.domains[location] else { return nil }
        if let failure = domain.failure, failure.reason == .unreadable { throw failure }
        return body(domain.snapshot)
      }
      if let found { return found }
      try load(location)
    }
  }

  /// Whether the location's domain exists: it has a list, or something adds keys to it. Cost: one
  /// stat(2) where the list is not loaded. Reads the list where it has replayed changes, and the
  /// additions of the place where that has not been done.
  public func exists(_ location: Location) throws(EngineError) -> Bool {
    if location.place.hasAdditions {
      loadAdditions(of: location.place)
      let isAdded = try state.withLock { state throws(EngineError) in
        try state.requireReadableAdditions(location)
        return !state.added(location).isEmpty
      }
      if isAdded { return true }
    }
    let known = state.withLock { state in
      state.pending[location] != nil ? nil : state.domains[location]?.snapshot.exists
    }
    if let known { return known }
    if state.withLock({ $0.pending[location] != nil }) {
      return try read(location) { $0.exists }
    }
    guard StoreLayout.isValid(location.domain) else { return false }
    return try modificationTime(location) != nil
  }

  /// When the location last changed; nil where it does not exist. Cost: as `exists`.
  public func modified(_ location: Location) throws(EngineError) -> Timestamp? {
    let listed = try listModified(location)
    guard location.place.hasAdditions else { return listed }
    loadAdditions(of: location.place)
    let times = state.withLock { $0.added(location).values.map(\.modified) }
    return (times + [listed].compactMap { $0 }).max()
  }

  /// When the location's list last changed, without what is added; nil where there is no list.
  func listModified(_ location: Location) throws(EngineError) -> Timestamp? {
    guard StoreLayout.isValid(location.domain) else { return nil }
    if state.withLock({ $0.pending[location] != nil }) {
      return try read(location) { $0.exists ? $0.lastModified : nil }
    }
    let known = state.withLock { state in
      state.domains[location].map { $0.snapshot.exists ? $0.snapshot.lastModified : nil }
    }
    if let known { return known }
    return try modificationTime(location)
  }

  private func modificationTime(_ location: Location) throws(EngineError) -> Timestamp? {
    try EngineError.wrapping(location.domain) { () throws(SystemError) in
      // A directory or a pipe of that name counts: it is a list that cannot be read.
      guard layout.hasLists(location.place) else { return nil }
      return try Files.status(layout.path(location)).map { Timestamp($0.st_mtim) }
    }
  }

  /// Whether the location's list has been read.
  public func isLoaded(_ location: Location) -> Bool {
    isLoaded(location.domain, in: [location.place])
  }

  /// Whether the domain's lists have been read in each of the places. Cost: one lock.
  public func isLoaded(_ domain: DomainName, in places: [Place]) -> Bool {
    state.withLock { state in
      let number = state.domains.number(of: domain)
      return places.allSatisfy { state.domains.contains($0, ofDomain: number) }
    }
  }

  /// Why the last rewrite, or the last look at the list, failed; nil: it did not, or the list has
  /// never been read.
  public func failure(at location: Location) -> EngineError? {
    state.withLock { state in
      if let known = state.domains[location] { return known.failure }
      return state.pending[location] == nil ? nil : state.unreadable[location]?.error
    }
  }

  /// The locations whose lists have been read.
  public var loadedLocations: [Location] { state.withLock { $0.domains.locations } }

  /// The domains that exist in a persistent place, those of profiles and fragments included. Cost: a
  /// listing of its directory; the first time, its additions are read.
  public func domains(in place: Place) throws(EngineError) -> Set<DomainName> {
    var found = try EngineError.wrapping { () throws(SystemError) in
      try layout.domains(in: place)
    }
    if place.hasAdditions { loadAdditions(of: place) }
    state.withLock { state in
      let added = state.additions[place]?.settings
      // A domain that cannot be read is there, and says why.
      if let added { found.formUnion(Array(added.values.keys) + Array(added.unreadable.keys)) }
      // No list is read for this: the replayed edits say whether there will be one.
      for (location, edits) in state.pending where location.place == place {
        for pending in edits {
          switch pending.edit {
          case .set, .createDomain: found.insert(location.domain)
          case .removeDomain: found.remove(location.domain)
          case .remove, .describe, .splice: break
          }
        }
      }
      for (location, domain) in state.domains.all where location.place == place {
        if domain.snapshot.exists || !state.added(location).isEmpty {
          found.insert(location.domain)
        } else if added?.unreadable[location.domain] == nil {
          found.remove(location.domain)
        }
      }
    }
    return found
  }
}

extension Store.State {
  /// What is known of a key in several locations.
  fileprivate enum Finding {
    /// The list of this location must be read first.
    case unread(Location)
    case nothing
    case value(LocatedValue)
  }

  fileprivate mutating func find(
    _ key: Key, _ locations: [Location]
  ) throws(EngineError) -> Finding {
    for location in locations {
      let number = domains.number(of: location.domain)
      switch try find(key, location, ofDomain: number) {
      case .unread: return .unread(location)
      case .value(let stored): return .value(LocatedValue(stored, location))
      case .nothing: continue
      }
    }
    return .nothing
  }

  /// What is known of a key in one location: from a fragment, its list, or a profile, in this order.
  /// Inlined, because the result is large: to copy it once more takes a twentieth of a look-up.
  /// - Parameter number: of the location's domain in the table.
  @inline(__always)
  fileprivate func find(
    _ key: Key, _ location: Location, ofDomain number: Int?
  ) throws(EngineError) -> DomainTable.Finding {
    let finding = try domains.find(key, at: location.place, ofDomain: number)
    guard hasAdditions, location.place.hasAdditions else { return finding }
    if case .unread = finding { return finding }
    try requireReadableAdditions(location)
    guard let added = added(location)[key] else { return finding }
    if case .value = finding, !added.metadata.isOfFile { return finding }
    return .value(added)
  }
}
