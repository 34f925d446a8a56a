import PreferenceModel
import PropertyList
import SystemCalls

// Look-ups.

extension SearchEngine {
  /// The locations that are asked for a key of the domain, in order: suites and languages among
  /// them.
  package func locations(for domain: DomainName) throws(EngineError) -> [Location] {
    let path = try path(of: domain)
    let languages = try languageTable(of: domain).languages.map { Location(.language($0), .global) }
    return path.forced + (path.isLocked ? [] : [Location(.arguments, .global)])
      + path.lists.dropFirst(path.forced.count) + languages + path.registered
      + (usesSchemas ? SearchList.schemas(domain) : [])
  }

  /// What programs read for a key of a domain if the place lacks it: the value of the first location
  /// that follows the place in the search list; of the user's places only if it is one. Cost: a
  /// look-up for each location.
  package func value(
    of key: Key, in domain: DomainName, behind place: Place
  ) throws(EngineError) -> Value? {
    let own = Location(place, domain)
    for location in try locations(for: domain).drop(while: { $0 != own }).dropFirst()
    where place.isOwn || !location.place.isOwn {
      if let found = try find(key, at: location, for: domain) { return found.value }
    }
    return nil
  }

  public var generation: UInt64? {
    // In this order: places that are fresh have notified this engine of every change.
    places.isFresh ? changes.load(ordering: .acquiring) : nil
  }

  public func resolve(_ key: Key, in domain: DomainName) throws(EngineError) -> Resolution? {
    try look(for: key, in: domain, withLanguages: key != Languages.key)
  }

  /// Returns the first hit of the search list; nil where no place holds the key.
  /// - Parameter withLanguages: whether the languages are asked, before the registered defaults.
  private func look(
    for key: Key, in domain: DomainName, withLanguages: Bool
  ) throws(EngineError) -> Resolution? {
    let path = try path(of: domain)
    if !path.isLocked, let argument = arguments.find(key, in: .global) {
      if let found = try find(key, in: path.forced, for: domain) { return found }
      return Resolution(argument, location: Location(.arguments, .global))
    }
    if let found = try find(key, in: path.lists, for: domain) { return path.shown(found) }
    if withLanguages, let found = try languageTable(of: domain).find(key) {
      return path.shown(found)
    }
    for location in path.registered {
      if let found = registered.find(key, in: location.domain) {
        return path.shown(Resolution(found, location: location))
      }
    }
    // Not `map`: a reference to the method would allocate memory.
    guard let found = fallback(of: key, in: domain) else { return nil }
    return path.shown(found)
  }

  /// The locations of the domain's search list, which are made again only for another domain than
  /// the last time, or after a change of suites or locks.
  private func path(of domain: DomainName) throws(EngineError) -> SearchPath {
    let (last, changes) = suites.withLock { ($0.lastPath, $0.changes) }
    if let last, last.domain == domain, places.isFresh { return last }
    let path = SearchPath(domain, try allSuites(of: domain), try domainLocks())
    // A change since the look-up began may concern it.
    suites.withLock { if $0.changes == changes { $0.lastPath = path } }
    return path
  }

  /// The key's value in the first of these lists that has it. The places are asked once for all of
  /// them, unless a list cannot be read.
  private func find(
    _ key: Key, in locations: [Location], for domain: DomainName
  ) throws(EngineError) -> Resolution? {
    if lists?.hasFindings != true {
      do throws(EngineError) {
        let found = try places.findFirst(key, in: locations)
        return found.map { Resolution($0.stored, location: $0.location) }
      } catch  where error.reason == .unreadable || error.reason == .system(.inputOutput) {
        // A list that comes later in the order must not hide an earlier one.
      }
    }
    for location in locations {
      guard let found = try find(key, at: location, for: domain) else { continue }
      return Resolution(found, location: location)
    }
    return nil
  }

  /// The values of the domain's languages, in one table.
  func languageTable(of domain: DomainName) throws(EngineError) -> Languages.Table {
    guard usesLanguages else { return .none }
    return try languages.table(of: domain, isFresh: places.isFresh) { () throws(EngineError) in
      try look(for: Languages.key, in: domain, withLanguages: false)?.value
    }
  }

  /// The languages of the domain's `AppleLanguages` that have values, the one that wins first.
  /// Throws where `AppleLanguages` cannot be read.
  public func languages(of domain: DomainName) throws(EngineError) -> [String] {
    try languageTable(of: domain).languages
  }

  /// The values of a language; empty if there are none, and for now if its files do not answer
  /// within 1 s. Waits for the disk where the language has not been read.
  public func languageValues(of language: String) -> ValueDictionary {
    languages.values(of: language)
  }

  /// The key's value at a location of the search list for `domain`.
  ///
  /// A list of the global domain or of a suite that cannot be read is an error of that domain,
  /// which the store's owner has logged: this domain goes on without it. A managed list is an error
  /// of every domain that needs it, because it may force the key.
  package func find(
    _ key: Key, at location: Location, for domain: DomainName
  ) throws(EngineError) -> StoredValue? {
    switch location.place {
    case .arguments: return arguments.find(key, in: .global)
    case .registered: return registered.find(key, in: location.domain)
    case .language(let name):
      return languages.values(of: name)[key].map {
        StoredValue($0, Metadata(text: nil, modified: Timestamp(nanoseconds: 0)))
      }
    case .schema: return schemaEntry(of: location.domain)?.fallback(of: key)
    default: break
    }
    do throws(EngineError) {
      if let finding = lists?.finding(location) {
        if let error = finding.error { throw error }
        return nil
      }
      return try places.find(key, at: location)
    } catch  where Self.isPassedOver(error, at: location, for: domain) {
      return nil
    }
  }

  /// Whether the error of a list is none of `domain`, which goes on without it: see `find`.
  private static func isPassedOver(
    _ error: EngineError, at location: Location, for domain: DomainName
  ) -> Bool {
    error.reason == .unreadable && location.domain != domain && !location.place.isForced
  }

  /// The keys of a domain in one place. A list that hangs is an error and is not waited for.
  package func storedKeys(at location: Location) throws(EngineError) -> [Key] {
    guard let finding = lists?.finding(location) else { return try places.keys(at: location) }
    if let error = finding.error { throw error }
    return []
  }

  /// When a domain last changed in one place; nil where the place does not have it. A list that
  /// hangs is an error and is not waited for.
  package func modified(_ location: Location) throws(EngineError) -> Timestamp? {
    guard let finding = lists?.finding(location) else { return try places.modified(location) }
    if finding.modified == nil, let error = finding.error { throw error }
    return finding.modified
  }

  public func domains() throws(EngineError) -> Set<DomainName> {
    var found: Set<DomainName> = [.global]
    for place in SearchList.persistentPlaces { found.formUnion(try places.domains(in: place)) }
    return found
  }

  public func hasDomain(_ domain: DomainName) throws(EngineError) -> Bool {
    try hasStoredDomain(domain) || hasDefaults(domain)
  }

  /// Whether the domain has defaults: of its schema, or registered ones.
  private func hasDefaults(_ domain: DomainName) -> Bool {
    schema(of: domain)?.hasFallbacks == true || registered.modified(domain) != nil
  }

  public func isUnmade(_ domain: DomainName) -> Bool {
    hasDefaults(domain) && (try? hasStoredDomain(domain)) == false
  }

  private func hasStoredDomain(_ domain: DomainName) throws(EngineError) -> Bool {
    guard lists != nil, domain != .global else { return try places.hasDomain(domain) }
    for place in SearchList.persistentPlaces
    where try modified(Location(place, domain)) != nil { return true }
    return false
  }

  /// A list that hangs is not waited for.
  public func load(_ domain: DomainName) {
    if places.isLoaded(domain, in: SearchList.persistentPlaces) { return }
    for location in SearchList.persistentPlaces.map({ Location($0, domain) })
    where lists?.finding(location) == nil {
      do { try places.load(location) } catch { continue }
    }
  }

  public func keys(of domain: DomainName) throws(EngineError) -> Set<Key> {
    var found = Set(registered.keys(of: domain))
    for place in try countingPlaces(of: domain, in: domain) {
      let keys = try storedKeys(at: Location(place, domain))
      // A set that is made of all of them has room for them from the beginning.
      if found.isEmpty { found = Set(keys) } else { found.formUnion(keys) }
    }
    return found
  }

  public func hasManyKeys(_ domain: DomainName) -> Bool {
    let most = SearchList.persistentPlaces.reduce(0) { sum, place in
      sum + mostKeys(at: Location(place, domain))
    }
    return most > manyKeys
  }

  /// A number that the keys of a location in memory do not exceed; 0 for others.
  func mostKeys(at location: Location) -> Int {
    guard places.isLoaded(location) else { return 0 }
    return (try? places.mostKeys(at: location)) ?? 0
  }

  public func inheritedKeys(of domain: DomainName) throws(EngineError) -> Set<Key> {
    var found = Set(registered.keys(of: .global))
    if try !isLocked(domain) { found.formUnion(arguments.keys(of: .global)) }
    for place in try countingPlaces(of: .global, in: domain) {
      found.formUnion(try keys(at: Location(place, .global), inheritedBy: domain))
    }
    found.formUnion(try suiteKeys(of: domain))
    found.formUnion(try languageTable(of: domain).keys)
    for location in SearchList.schemas(domain) {
      guard let schema = schema(of: location.domain), schema.isAuthoritative else { continue }
      found.formUnion(schema.keys.lazy.filter { $0.fallback != nil }.map(\.name))
    }
    return found
  }

  /// Every key that the search list of the domain finds: its own, its suites' and the inherited
  /// ones.
  public func allKeys(of domain: DomainName) throws(EngineError) -> Set<Key> {
    try keys(of: domain).union(inheritedKeys(of: domain))
  }

  /// The keys that the domain gets from its suites.
  func suiteKeys(of domain: DomainName) throws(EngineError) -> Set<Key> {
    var found: Set<Key> = []
    for suite in suites(of: domain) {
      for place in try countingPlaces(of: suite, in: domain) where place.isOwn {
        found.formUnion(try keys(at: Location(place, suite), inheritedBy: domain))
      }
    }
    return found
  }

  /// The keys of a location that the domain inherits from. None where that list cannot be read: as
  /// for `find`, that is an error of the other domain alone, unless the place is a managed one.
  private func keys(
    at location: Location, inheritedBy domain: DomainName
  ) throws(EngineError) -> [Key] {
    do throws(EngineError) {
      return try storedKeys(at: location)
    } catch  where Self.isPassedOver(error, at: location, for: domain) {
      return []
    }
  }

  public func modified(_ domain: DomainName) throws(EngineError) -> Timestamp? {
    var latest: Timestamp?
    for place in SearchList.persistentPlaces {
      guard let time = try modified(Location(place, domain)) else { continue }
      latest = max(latest ?? time, time)
    }
    return latest
  }
}
