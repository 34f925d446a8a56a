import PreferenceModel
import SystemCalls

// Which domains and lists there are.

extension Lists {
  /// Whether the location's domain exists: it has a list, or something adds keys to it. Cost: one
  /// stat(2) where the list is not loaded. Reads the list where it has replayed changes, and the
  /// additions of the place where that has not been done.
  public func exists(_ location: Location) throws(EngineError) -> Bool {
    if location.place.hasAdditions {
      loadAdditions(of: location.place)
      let isAdded = try state.withLock { state throws(EngineError) in
        let settings = state.additions.all[location.place]?.settings
        if let error = settings?.unreadable[location.domain] { throw error }
        return !state.additions.added(location).isEmpty
      }
      if isAdded { return true }
    }
    return try listModified(location) != nil
  }

  /// When the location last changed; nil where it does not exist. Cost: as `exists`.
  public func modified(_ location: Location) throws(EngineError) -> Timestamp? {
    let listed = try listModified(location)
    guard location.place.hasAdditions else { return listed }
    loadAdditions(of: location.place)
    let (times, isUnreadable) = state.withLock { state in
      let settings = state.additions.all[location.place]?.settings
      return (
        state.additions.added(location).values.map(\.modified),
        settings?.unreadable[location.domain] != nil
      )
    }
    // What cannot be read is there.
    return (times + [listed].compactMap { $0 }).max() ?? (isUnreadable ? .now : nil)
  }

  /// When the location's list last changed, without what is added; nil where there is no list.
  func listModified(_ location: Location) throws(EngineError) -> Timestamp? {
    guard location.domain.canNameList else { return nil }
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
      // A directory, a pipe or a link to itself of that name counts: it is a list that cannot be
      // read.
      guard layout.hasLists(location.place) else { return nil }
      let file = ListFile(layout, location)
      do throws(SystemError) {
        if let status = try file.status() { return Timestamp(status.st_mtim) }
        return location.place == .schema ? machineSchemas.modified(of: location.domain) : nil
      } catch  where error.errno == .linkLoop {
        return try Files.linkStatus(file.path).map { Timestamp($0.st_mtim) }
      }
    }
  }

  /// Whether the location's list has been read.
  public func isLoaded(_ location: Location) -> Bool {
    isLoaded(location.domain, in: [location.place])
  }

  /// Whether the domain's lists have been read in each of the places. Cost: one lock.
  public func isLoaded(_ domain: DomainName, in places: [Place]) -> Bool {
    state.withLock { $0.domains.has(domain, in: places) }
  }

  /// Why the last rewrite, or the last look at the list, failed; nil if it did not, or the list has
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
    if place == .schema { found.formUnion(machineSchemas.domains) }
    state.withLock { state in
      let added = state.additions.all[place]?.settings
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
      // A schema that is no list is among the machine's, or was found by its id.
      state.domains.forEach(in: place) { location, list in
        guard place != .schema || list.identity != nil else { return }
        if list.snapshot.exists || !state.additions.added(location).isEmpty {
          found.insert(location.domain)
        } else if added?.unreadable[location.domain] == nil {
          found.remove(location.domain)
        }
      }
    }
    return found
  }

  /// Forgets the values that keys had before changes, and what requests did, once they are more than
  /// ten seconds old.
  /// - Returns: when there is more to forget; nil if not before the next change.
  public func forgetOld(_ now: Instant) -> Instant? {
    state.withLock { state in
      let requests = state.requests.forgetOld(now, most: 10_000)
      if let due = state.forgetAt, due <= now {
        state.forgetAt = state.domains.forgetRecent(now)
      }
      return [requests, state.forgetAt].compactMap { $0 }.min()
    }
  }
}
