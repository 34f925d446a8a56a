import PreferenceModel
import PropertyList

extension SearchEngine {
  /// The suites that are kept for the domain, first added first.
  public func keptSuites(of domain: DomainName) -> [DomainName] {
    KeptSuites.find(of: domain) { key, location in
      ((try? find(key, at: location, for: KeptSuites.domain)) ?? nil)?.value
    }
  }

  /// The intents that keep these suites for the domain, and no others. A name that the domain cannot
  /// have as a suite is left out.
  public func intents(
    keeping suites: [DomainName], for domain: DomainName
  ) throws(EngineError) -> [Intent] {
    let names = KeptSuites.names(suites.map(\.string), domain)
    return try KeptSuites.intents(keeping: names, of: domain, self)
  }
}

/// The suites that are kept for domains: preferences of the domain `prefsfs`, so that an
/// administrator can force them. The key `Suites.<domain>` is an array of names, first added first.
enum KeptSuites {
  /// The domain of this program's own settings.
  static let domain: DomainName = "prefsfs"
  private static let prefix = "Suites."

  /// The key that keeps the suites of the domain.
  static func key(of domain: DomainName) -> Key { Key(prefix + domain.string) }

  /// The domain whose suites the key keeps; nil for other keys.
  static func domain(of key: Key) -> DomainName? {
    let name = key.string
    return name.hasPrefix(prefix) ? DomainName(String(name.dropFirst(prefix.count))) : nil
  }

  /// The domain whose suites the edit changes; nil for other edits.
  static func domain(of item: Changeset.Item) -> DomainName? {
    item.location.domain == domain ? item.edit.key.flatMap { domain(of: $0) } : nil
  }

  /// The suites of a domain. Entries that are no names, the domain itself and the global domain are
  /// left out; of a name that occurs twice the last one counts.
  /// - Parameter look: returns the value of the key at the location.
  static func find(
    of domain: DomainName, _ look: (Key, Location) -> Value?
  ) -> [DomainName] {
    let key = key(of: domain)
    for place in SearchList.persistentPlaces {
      guard let value = look(key, Location(place, self.domain)) else { continue }
      guard case .array(let items) = value else { return [] }
      return names(
        items.compactMap { if case .string(let name) = $0 { name } else { nil } }, domain)
    }
    return []
  }

  /// The intents that keep these suites for the domain, and no others.
  static func intents(
    keeping names: [DomainName], of domain: DomainName, _ search: SearchEngine
  ) throws(EngineError) -> [Intent] {
    let key = key(of: domain)
    guard names.isEmpty else {
      return [.set(key, self.domain, .array(names.map { .string($0.string) }), .unknown)]
    }
    return try search.resolve(key, in: self.domain) == nil ? [] : [.remove(key, self.domain)]
  }

  /// The names of suites that the domain can have, each once.
  static func names(_ names: [String], _ domain: DomainName) -> [DomainName] {
    var found: [DomainName] = []
    for name in names.map({ DomainName($0) }) where name.canNameList {
      if name == domain || name == .global { continue }
      found.removeAll { $0 == name }
      found.append(name)
    }
    return found
  }
}
