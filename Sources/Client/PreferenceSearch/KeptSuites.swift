import PreferenceModel
import PropertyList

extension SearchEngine {
  /// The suites that are kept for the domain, first added first. Entries that are not names, the
  /// domain itself and the global domain are left out; of a name that occurs twice, the last one
  /// counts. The first persistent place that has an array under the key decides: a file that has
  /// just been made is an empty string until its text is written. A list that cannot be read is
  /// passed over, so that other domains do not fail with it. Throws if the owner of the store does
  /// not answer. Cost: a look-up in each persistent place.
  public func keptSuites(of domain: DomainName) throws(EngineError) -> [DomainName] {
    let key = KeptSuites.key(of: domain)
    for place in try countingPlaces(of: KeptSuites.domain, in: KeptSuites.domain) {
      do throws(EngineError) {
        let location = Location(place, KeptSuites.domain)
        let value = try find(key, at: location, for: domain)?.value
        if let names = KeptSuites.names(in: value, of: domain) { return names }
      } catch  where error.reason == .ownerGone || error.reason == .system(.timedOut) {
        throw error
      } catch {
        continue
      }
    }
    return []
  }

  /// The intents that keep these suites for the domain, and no others; none if nothing is kept and
  /// nothing is to be kept. A name that the domain cannot have as a suite is left out.
  public func intents(
    keeping suites: [DomainName], for domain: DomainName
  ) throws(EngineError) -> [Intent] {
    let (key, names) = (KeptSuites.key(of: domain), KeptSuites.names(suites.map(\.string), domain))
    guard names.isEmpty else {
      return [.set(key, KeptSuites.domain, .array(names.map { .string($0.string) }), .unknown)]
    }
    return try resolve(key, in: KeptSuites.domain) == nil ? [] : [.remove(key, KeptSuites.domain)]
  }
}

/// The suites that are kept for domains, for all programs. They are preferences of the domain
/// `prefsfs`, so that an administrator can force them. The key `Suites.<domain>` is an array of
/// names, first added first.
public enum KeptSuites {
  /// The domain of this program's own settings.
  public static let domain = DomainName.settings
  private static let prefix = "Suites."

  /// The key that keeps the suites of the domain.
  package static func key(of domain: DomainName) -> Key { Key(prefix + domain.string) }

  /// The domain whose suites the key keeps; nil for other keys.
  package static func domain(of key: Key) -> DomainName? {
    let name = key.string
    return name.hasPrefix(prefix) ? DomainName(String(name.dropFirst(prefix.count))) : nil
  }

  /// The domain whose suites the edit changes; nil for other edits.
  package static func domain(of item: Changeset.Item) -> DomainName? {
    item.location.domain == domain ? item.edit.key.flatMap { domain(of: $0) } : nil
  }

  /// The names of suites in a kept value; nil where it is no array.
  package static func names(in value: Value?, of domain: DomainName) -> [DomainName]? {
    guard let all = value?.strings else { return nil }
    return names(all, domain)
  }

  /// The names of suites that the domain can have, each once.
  package static func names(_ names: [String], _ domain: DomainName) -> [DomainName] {
    var found: [DomainName] = []
    for name in names.map({ DomainName($0) }) where name.canNameList {
      if name == domain || name == .global { continue }
      found.removeAll { $0 == name }
      found.append(name)
    }
    return found
  }
}
