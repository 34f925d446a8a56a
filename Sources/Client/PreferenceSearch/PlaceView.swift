import PreferenceModel
import PreferenceSchemas
import PropertyList
import SystemCalls

/// Shows and changes one place alone, without a search.
///
/// Promises: those of `Engine`, for the domains of that place. Changes go to the persistent places
/// of the search engine, so they are journaled, coalesced and announced like any other. Registered
/// defaults are those of this process, and end with it. Arguments are keys of the global domain; a
/// change of them throws `.argument`. What a configuration profile sets is shown with the place's
/// lists; a change of it throws `.forced`.
///
/// Threads: any; it has no lock of its own.
final class PlaceView: Engine {
  private let place: Place
  fileprivate let search: SearchEngine

  init(_ place: Place, _ search: SearchEngine) { (self.place, self.search) = (place, search) }

  /// The place, if it is kept by this process alone.
  private var volatile: VolatilePlace? {
    switch place {
    case .registered: search.registered
    case .arguments: search.arguments
    default: nil
    }
  }

  // MARK: - Reading

  func domains() throws(EngineError) -> Set<DomainName> {
    if let volatile { return volatile.domains }
    return try search.places.domains(in: place)
  }

  /// The global domain always exists, so that its keys can be set.
  func hasDomain(_ domain: DomainName) throws(EngineError) -> Bool {
    if domain == .global { return true }
    return try modified(domain) != nil
  }

  func keys(of domain: DomainName) throws(EngineError) -> Set<Key> {
    if let volatile { return Set(volatile.keys(of: domain)) }
    return Set(try search.storedKeys(at: Location(place, domain)))
  }

  func hasManyKeys(_ domain: DomainName) -> Bool {
    volatile == nil && search.mostKeys(at: Location(place, domain)) > manyKeys
  }

  func load(_ domain: DomainName) {
    guard volatile == nil, search.lists?.finding(Location(place, domain)) == nil else { return }
    do { try search.places.load(Location(place, domain)) } catch { return }
  }

  func modified(_ domain: DomainName) throws(EngineError) -> Timestamp? {
    if let volatile { return volatile.modified(domain) }
    return try search.modified(Location(place, domain))
  }

  func resolve(_ key: Key, in domain: DomainName) throws(EngineError) -> Resolution? {
    let location = Location(place, domain)
    guard let stored = try search.find(key, at: location, for: domain) else { return nil }
    var isReadOnly = place == .arguments || stored.metadata.setter != nil
    if place.isOwn, try search.isLocked(domain) { isReadOnly = true }
    return Resolution(stored, location: location, isReadOnly: isReadOnly)
  }

  func reaches(_ location: Location, of domain: DomainName) -> Bool {
    location == Location(place, domain) && place != .arguments
  }

  var placeOfNew: Place { place }

  func domainsNeeded(for key: Key?, in domain: DomainName) -> [DomainName] {
    // The schema of a domain, which judges registered defaults too, is read with its lists.
    if place.isOwn, !search.knowsLocks { return [domain, KeptSuites.domain] }
    return volatile == nil || place == .registered && search.usesSchemas ? [domain] : []
  }

  // MARK: - Changes

  func notice(of changeset: Changeset) -> Notice {
    var here = changeset
    here.items.removeAll { $0.location.place != place }
    here.invalidated = here.invalidated.filter { $0.place == place }
    return Notice(changeset: here, events: here.items.compactMap(\.event), author: nil)
  }

  func apply(_ intents: [Intent], by author: Author) throws(EngineError) -> Changeset {
    let here = intents.map { intent -> Intent in
      switch intent {
      case .judged: intent
      case .at(_, let intent): .at(place, intent)
      default: .at(place, intent)
      }
    }
    switch place {
    case .arguments:
      throw EngineError(
        .argument, domain: nil, "the arguments of the mount are fixed while it is mounted")
    case .registered: return try search.changeRegistered(here, by: author)
    default:
      try search.lists?.refuse(here)
      return try search.places.apply(here, by: author)
    }
  }

  func observe(except author: Author?, _ observer: @escaping @Sendable (Notice) -> Void) {
    search.observe(except: author, observer)
  }

  var isReadOnly: Bool { search.isReadOnly }
}

extension SearchEngine {
  /// Returns an engine that shows and changes one place alone.
  package func engine(of place: Place) -> any Engine { PlaceView(place, self) }

  /// Carries out intents that name the place of the registered defaults. Observers other than the
  /// author are notified. Throws where the rules, or schemas after `.judged`, refuse an intent;
  /// nothing is changed then.
  /// Threads: one caller at a time, because the rules read what the edits then change.
  func changeRegistered(
    _ intents: [Intent], by author: Author
  ) throws(EngineError) -> Changeset {
    let rules = ChangeRules(registered)
    var items: [Changeset.Item] = []
    var judging: PatternBudget?
    for intent in intents {
      let edits = try rules.items(for: intent)
      if intent == .judged { judging = judging ?? PatternBudget() }
      if let judging { try judge(edits, within: judging) }
      items += edits
    }
    var changeset = Changeset(time: .now)
    for item in items {
      let change = registered.apply([item.edit], to: item.location.domain)
      changeset.items += change.items
      changeset.time = change.time
    }
    notify(changeset, by: author)
    return changeset
  }

  private func judge(
    _ items: [Changeset.Item], within budget: PatternBudget
  ) throws(EngineError) {
    for item in items {
      guard let key = item.edit.key else { continue }
      try schema(of: item.location.domain)?.judge(item, within: budget) { () throws(EngineError) in
        registered.find(key, in: item.location.domain)
      }
    }
  }
}

/// Lets `ChangeRules` read the place. Other places have nothing.
extension VolatilePlace: StoredPlaces {
  func find(_ key: Key, at location: Location) throws(EngineError) -> StoredValue? {
    location.place == place ? find(key, in: location.domain) : nil
  }

  func keys(at location: Location) throws(EngineError) -> [Key] {
    location.place == place ? keys(of: location.domain) : []
  }

  func exists(_ location: Location) throws(EngineError) -> Bool {
    location.place == place && modified(location.domain) != nil
  }
}

// MARK: - Schemas

extension PlaceView {
  func newKind(of key: Key, in domain: DomainName) -> (kind: Kind, isCertain: Bool)? {
    search.newKind(of: key, in: domain)
  }

  func summary(of key: Key, in domain: DomainName) -> String? {
    search.summary(of: key, in: domain)
  }
}
