import PreferenceModel
import PreferenceSearch
import PropertyList
import SystemCalls

/// Each domain of the user's place as two documents: `<domain>.plist` in XML, and `<domain>.json`,
/// in which dates are ISO text and data is base64. A key without one of these endings is unknown.
///
/// Setting a document replaces the domain in one transaction; keys whose values stay keep their
/// text and mode. Removing a document removes the domain. A value that is not a dictionary is
/// EINVAL.
///
/// Threads: any. Cost: reading a document copies every value of its domain.
struct DocumentContents: SeparateContents {
  let search: SearchEngine

  /// The domain that a key names, and whether as JSON; nil if no list can have the name.
  private static func domain(_ key: Key) -> (domain: DomainName, isJSON: Bool)? {
    let name = key.string
    for (ending, isJSON) in [(".plist", false), (".json", true)] where name.hasSuffix(ending) {
      let domain = DomainName(String(name.dropLast(ending.count)))
      return domain.canNameList ? (domain, isJSON) : nil
    }
    return nil
  }

  /// The keys of both documents of a domain.
  private static func keys(of domain: DomainName) -> [Key] {
    [Key(domain.string + ".plist"), Key(domain.string + ".json")]
  }

  func keys() throws(EngineError) -> Set<Key> {
    Set(try search.places.domains(in: .user).flatMap(Self.keys))
  }

  func whole(
    _ key: Key
  ) throws(EngineError) -> (value: Value, text: [UInt8], modified: Timestamp)? {
    guard let (domain, isJSON) = Self.domain(key) else { return nil }
    let location = Location(.user, domain)
    guard let modified = try search.modified(location) else { return nil }
    var values: ValueDictionary = [:]
    for key in try search.storedKeys(at: location).sorted() {
      values[key] = try search.find(key, at: location, for: domain)?.value
    }
    let value = Value.dictionary(values)
    // A document that XML cannot hold (a string with NUL) is shown as JSON.
    let text = isJSON ? nil : try? Document.write(value, as: .xml)
    return (value, text ?? ValueText.canonical(value, style: .json), modified)
  }

  func intents(
    toSet key: Key, _ value: Value?, isComputed: Bool
  ) throws(EngineError) -> [Intent] {
    guard let (domain, _) = Self.domain(key) else {
      throw EngineError(
        .invalidDomain, "\(key): the name of a document is a domain with .plist or .json behind it")
    }
    let location = Location(.user, domain)
    switch value {
    case nil: return [.edit(location, .removeDomain)]
    case .dictionary(let values):
      return isComputed ? try changes(to: values, at: location) : [.replace(location, values)]
    default:
      throw EngineError(
        .system(.invalidArgument), domain: domain, "a domain is a dictionary of its keys")
    }
  }

  /// The intents that make these the values of the domain, for a document that was computed from
  /// the present one: keys that somebody else makes meanwhile stay, and a key that somebody else
  /// changes meanwhile refuses the change.
  private func changes(
    to values: ValueDictionary, at location: Location
  ) throws(EngineError) -> [Intent] {
    var intents: [Intent] = []
    for key in Set(try search.storedKeys(at: location)).union(values.keys) {
      let old = try search.find(key, at: location, for: location.domain)?.value
      if old == values[key] { continue }
      let edit = values[key].map { Edit.set(key, $0, .unknown) } ?? .remove(key)
      intents += [.expect(key, location, old), .edit(location, edit)]
    }
    return intents
  }

  func changes(by item: Changeset.Item) -> [Key: KeyEvent.Kind] {
    guard item.location.place == .user else { return [:] }
    let kinds = Self.keys(of: item.location.domain).map { ($0, item.edit.kindOfDomain) }
    return Dictionary(uniqueKeysWithValues: kinds)
  }

  func domainsNeeded(for key: Key?) -> [DomainName] {
    key.flatMap { Self.domain($0) }.map { [$0.domain] } ?? []
  }
}
