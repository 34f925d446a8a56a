import PreferenceModel
import PropertyList

// The values of a whole domain, as programs read them.

extension SearchEngine {
  /// The key that lists the languages: a change of it may change values of other keys.
  package static var languagesKey: Key { Languages.key }

  /// Returns the values that programs read of the domain, from all rows of the search list. Throws
  /// where a look-up of one of the keys does. Cost: a look-up of each key.
  /// - Parameter withGlobal: whether keys count that only rows of the global domain, or languages,
  ///   have.
  package func effectiveValues(
    of domain: DomainName, withGlobal: Bool = false
  ) throws(EngineError) -> ValueDictionary {
    var keys = try keys(of: domain).union(suiteKeys(of: domain))
    if try !isLocked(domain) { keys.formUnion(arguments.keys(of: .global)) }
    let defaults = schema(of: domain)?.keys.lazy.filter { $0.fallback != nil }.map(\.name)
    if let defaults { keys.formUnion(defaults) }
    if withGlobal { keys.formUnion(try inheritedKeys(of: domain)) }
    var values: ValueDictionary = [:]
    for key in keys.sorted() { values[key] = try resolve(key, in: domain)?.value }
    return values
  }

  /// Returns the key's value in `effectiveValues(of:)`; nil if it is not in there. Cost: a look-up;
  /// one in each row for a key that the global domain forces.
  package func effectiveValue(
    of key: Key, in domain: DomainName
  ) throws(EngineError) -> Value? {
    guard let found = try resolve(key, in: domain) else { return nil }
    if isOwn(found.location, of: domain) { return found.value }
    for location in try ownLocations(of: domain)
    where try find(key, at: location, for: domain) != nil { return found.value }
    return nil
  }

  /// Whether a location of the search list is not one that every domain has.
  private func isOwn(_ location: Location, of domain: DomainName) -> Bool {
    domain == .global || location.domain != .global || location.place == .arguments
  }

  /// The locations of the domain's search list that are its own, and its suites'.
  package func ownLocations(of domain: DomainName) throws(EngineError) -> [Location] {
    let all =
      SearchList.forced(domain) + SearchList.stored(domain, suites: try allSuites(of: domain))
      + SearchList.registered(domain) + (usesSchemas ? SearchList.schemas(domain) : [])
    return try domainLocks().counting(all, in: domain).filter { isOwn($0, of: domain) }
  }
}
