import PreferenceModel
import PropertyList
import Synchronization
import SystemCalls

/// The search list: persistent places, wherever they are, and the volatile places of this process.
///
/// Promises: those of `Engine`. Two engines over one store, in one process or in several, differ in
/// their arguments and registered defaults only.
///
/// Threads: any. Locks: those of the volatile places, of `observers` and `readers`, each for one look, and
/// a reader's inside of `readers`; none is held while the persistent places are asked or an
/// observer is called.
public final class SearchEngine: Engine {
  let places: any PersistentPlaces
  let arguments: ArgumentPlace
  let registered = RegisteredPlace()
  /// Who is told of registrations; of changes the persistent places tell.
  private let observers = Mutex<[@Sendable (Notice) -> Void]>([])
  /// Those that were asked for; they keep the engine, not the engine them.
  private let readers = Mutex<[DomainName: WeakReader]>([:])

  private struct WeakReader: Sendable {
    weak let reader: DomainReader?
  }

  /// An engine over the places.
  /// - Parameter arguments: the argument domain, as `ArgumentDomain.parse` gives it.
  public init(places: any PersistentPlaces, arguments: [Key: Value] = [:]) {
    self.places = places
    self.arguments = ArgumentPlace(values: arguments, since: .now)
    places.observe(except: nil) { [weak self] notice in self?.forget(notice) }
  }

  public func register(_ defaults: [Key: Value], for domain: DomainName) {
    let location = Location(.registered, domain)
    let items = registered.register(defaults, for: domain).map { key in
      Changeset.Item(location, .set(key, defaults[key] ?? "", .unknown))
    }
    guard !items.isEmpty else { return }
    readers.withLock { readers in
      for key in defaults.keys { readers[domain]?.reader?.forget(key) }
    }
    let notice = Notice(changeset: Changeset(items, time: .now), author: nil)
    for observer in observers.withLock({ $0 }) { observer(notice) }
  }
}

// MARK: - Readers

extension SearchEngine {
  /// A reader of the domain: one for all who ask, as long as somebody has it.
  public func reader(of domain: DomainName) -> DomainReader {
    readers.withLock { readers in
      if let known = readers[domain]?.reader { return known }
      let reader = DomainReader(domain, self)
      readers[domain] = WeakReader(reader: reader)
      return reader
    }
  }

  /// What changed is looked up again.
  private func forget(_ notice: Notice) {
    readers.withLock { readers in
      guard !readers.isEmpty else { return }
      for item in notice.changeset.items {
        let domain = item.location.domain
        let concerned =
          domain == .global ? Array(readers.values) : readers[domain].map { [$0] } ?? []
        for reader in concerned.compactMap(\.reader) {
          if let key = item.edit.key { reader.forget(key) } else { reader.forget() }
        }
      }
    }
  }
}

// MARK: - Looking up

extension SearchEngine {
  public func resolve(_ key: Key, in domain: DomainName) throws(EngineError) -> Resolution? {
    for location in SearchList.locations(for: domain) {
      if let found = try find(key, at: location, for: domain) {
        return Resolution(found, location: location)
      }
    }
    return nil
  }

  /// A list of the global domain that cannot be read (its owner has logged it) is an error of the
  /// global domain; the others go on without it.
  private func find(
    _ key: Key, at location: Location, for domain: DomainName
  ) throws(EngineError) -> StoredValue? {
    switch location.place {
    case .arguments: return arguments.find(key)
    case .registered: return registered.find(key, in: location.domain)
    case .managed, .host, .user, .anyUser: break
    }
    do {
      return try places.find(key, at: location)
    } catch
      where error.reason == .unreadable && location.domain != domain
      && location.place != .managed
    {
      return nil
    }
  }

  public func domains() throws(EngineError) -> Set<DomainName> {
    var found: Set<DomainName> = [.global]
    for place in SearchList.persistentPlaces { found.formUnion(try places.domains(in: place)) }
    return found
  }

  public func hasDomain(_ domain: DomainName) throws(EngineError) -> Bool {
    try places.hasDomain(domain)
  }

  public func keys(of domain: DomainName) throws(EngineError) -> Set<Key> {
    var found = Set(registered.keys(of: domain))
    for place in SearchList.persistentPlaces {
      found.formUnion(try places.keys(at: Location(place, domain)))
    }
    return found
  }

  public func inheritedKeys() throws(EngineError) -> Set<Key> {
    var found = Set(arguments.values.keys)
    for place in SearchList.persistentPlaces {
      found.formUnion(try places.keys(at: Location(place, .global)))
    }
    return found
  }

  public func modified(_ domain: DomainName) throws(EngineError) -> Timestamp? {
    var latest: Timestamp?
    for place in SearchList.persistentPlaces {
      guard let time = try places.modified(Location(place, domain)) else { continue }
      latest = max(latest ?? time, time)
    }
    return latest
  }
}

// MARK: - Changes

extension SearchEngine {
  public func apply(_ intents: [Intent], by author: Author) throws(EngineError) -> Changeset {
    for intent in intents { try refuseForVolatile(intent) }
    do {
      return try places.apply(intents, by: author)
    } catch  where error.reason == .noSuchKey {
      guard let domain = error.domain, let key = error.key,
        registered.find(key, in: domain) != nil
      else { throw error }
      throw EngineError(
        .heldElsewhere, domain: domain, key: key,
        "it is a registered default, which a removal does not reach")
    }
  }

  /// What arguments and registered defaults stand in the way of; a managed list stands before them,
  /// and its refusal is the owner's.
  private func refuseForVolatile(_ intent: Intent) throws(EngineError) {
    switch intent {
    case .set(let key, let domain, _, _), .describe(let key, let domain, _),
      .remove(let key, let domain):
      guard arguments.find(key) != nil else { return }
      for location in [Location(.managed, domain), Location(.managed, .global)]
      where try places.find(key, at: location) != nil { return }
      throw EngineError(
        .argument, domain: domain, key: key, "an argument of the mount (-\(key)) sets it")
    case .removeDomain(let domain):
      guard registered.keys(of: domain).isEmpty else {
        throw EngineError(.domainNotEmpty, domain: domain, "it has registered defaults")
      }
    case .renameDomain(_, let new):
      guard registered.keys(of: new).isEmpty else {
        throw EngineError(.domainNotEmpty, domain: new, "it has registered defaults")
      }
    case .createDomain: break
    }
  }

  public func observe(
    except author: Author?, _ observer: @escaping @Sendable (Notice) -> Void
  ) {
    observers.withLock { $0.append(observer) }
    places.observe(except: author) { [registered] notice in
      observer(notice.seen(beside: registered))
    }
  }

  public func makeDurable() throws(EngineError) { try places.makeDurable() }

  public func synchronize() throws(EngineError) { try places.synchronize() }

  public func addMount(_ author: Author) { places.addMount(author) }

  public func settle(
    _ settlement: Settlement, through version: UInt64, by author: Author
  ) {
    places.settle(settlement, through: version, by: author)
  }

  public func whenSettled(
    _ settlement: Settlement, through version: UInt64, except author: Author,
    _ body: @escaping @Sendable () -> Void
  ) {
    places.whenSettled(settlement, through: version, except: author, body)
  }

  public func isAnswering(within milliseconds: Int64) -> Bool {
    places.isAnswering(within: milliseconds)
  }

  public func space() -> StoreSpace { places.space() }

  public var isReadOnly: Bool { places.isReadOnly }

  public var isShared: Bool { places.isShared }
}

extension Notice {
  /// A key that is registered does not come or go with its stored value: it changes.
  fileprivate func seen(beside registered: RegisteredPlace) -> Notice {
    let events = events.map { event in
      registered.find(event.key, in: event.domain) == nil
        ? event : KeyEvent(event.domain, event.key, .changed)
    }
    return Notice(changeset: changeset, events: events, author: author, origin: origin)
  }
}
