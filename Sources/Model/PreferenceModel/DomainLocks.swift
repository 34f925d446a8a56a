import PropertyList

/// The domains that the administrator has locked: nothing of the user's counts in them, and the user
/// cannot change them. The key `Locked` of the domain `prefsfs`, an array of domains in which `*`
/// stands for any text, says it where it is forced, and nowhere else.
///
/// The domain of the declarations is never locked: what it has are this program's own notes.
public struct DomainLocks: Equatable, Sendable {
  /// The key of the setting.
  public static let key: Key = "Locked"

  /// The locations that may have the setting; the first that has it counts.
  public static let locations = Place.forced.map { Location($0, .settings) }

  private let patterns: [String]

  /// No domain is locked.
  public static let none = DomainLocks(nil)

  /// Reads the setting. What is not a text is left out.
  public init(_ value: Value?) {
    patterns =
      switch value {
      case .array(let items)?: items.compactMap(\.string)
      case .string(let pattern)?: [pattern]
      default: []
      }
  }

  /// Whether the domain is locked. Cost: nothing where none is; else the length of the patterns.
  public func contain(_ domain: DomainName) -> Bool {
    guard !patterns.isEmpty, domain != .declared else { return false }
    return patterns.contains { KeyPatterns.matches(domain.string, $0) }
  }

  /// The locations of these that count in the domain: in a locked one, and of a locked one, none of
  /// the user's.
  public func counting(_ locations: [Location], in domain: DomainName) -> [Location] {
    if patterns.isEmpty { return locations }
    let isLocked = contain(domain)
    return locations.filter { !$0.place.isOwn || !isLocked && !contain($0.domain) }
  }

  /// Throws `.forced` where the intent would change something of the user's in a locked domain.
  func refuse(_ intent: Intent) throws(EngineError) {
    if patterns.isEmpty { return }
    guard intent.mayChangeOwn, let domain = intent.domains.first(where: contain) else { return }
    throw EngineError(
      .forced, domain: domain,
      "the administrator has locked the domain (\(Self.key) of \(DomainName.settings))")
  }
}

extension Intent {
  /// Whether the intent may change something of the user's. Cost: no memory is allocated.
  package var mayChangeOwn: Bool {
    switch self {
    case .set, .describe, .splice, .remove, .setOwn, .removeOwn, .createDomain, .removeDomain,
      .renameDomain:
      true
    case .at(let place, let intent):
      switch intent {
      case .at, .edit, .replace, .expect, .expectUnchanged, .judged: intent.mayChangeOwn
      default: place.isOwn
      }
    case .edit(let location, _), .replace(let location, _): location.place.isOwn
    case .expect, .expectUnchanged, .judged: false
    }
  }
}

extension StoredPlaces {
  /// The locations of these that count in the domain (`DomainLocks`), in an order that stays.
  package func counting(
    _ locations: [Location], in domain: DomainName
  ) throws(EngineError) -> [Location] {
    try domainLocks().counting(locations, in: domain)
  }
}
