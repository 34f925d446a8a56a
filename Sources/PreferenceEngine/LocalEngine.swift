import PreferenceModel
import PreferenceStore
import PropertyList
import Synchronization
import SystemCalls

/// The engine in the process that owns the store.
///
/// Promises: those of `Engine`. Lists are rewritten by the writer's thread, coalesced; `close`
/// ends it with everything saved.
///
/// Threads: any. Locks, in their order: `applying` (one transaction at a time, so that an
/// intent's place is still right when it is committed), the store's, `observers`. Observers are
/// called under `applying`, so that all see the changes in one order.
public final class LocalEngine: Engine {
  private let store: Store
  private let sources: [Place: any PlaceSource]
  private let registered = RegisteredPlace()
  private let applying = Mutex(())
  private let observers = Mutex<[@Sendable (Notice) -> Void]>([])
  private let writer: Writer

  /// An engine over a store, which nobody else uses from now on.
  /// - Parameters:
  ///   - arguments: the argument domain, as `ArgumentDomain.parse` gives it.
  ///   - writeback: seconds from the first unsaved change of a list to its rewrite.
  public init(
    store: Store, arguments: [Key: Value] = [:], writeback: Double = 1,
    log: @escaping @Sendable (String) -> Void
  ) throws(EngineError) {
    self.store = store
    var sources: [Place: any PlaceSource] = [
      .arguments: ArgumentPlace(values: arguments, since: .now), .registered: registered,
    ]
    for place in SearchList.persistentPlaces {
      sources[place] = StoredPlace(place: place, store: store)
    }
    self.sources = sources
    do {
      writer = try Writer(store: store, interval: writeback, log: log)
    } catch {
      throw EngineError(error)
    }
    try EngineError.wrapping { () throws(SystemError) in
      try writer.start { [weak self] outside in self?.announce(outside, author: nil) }
    }
  }

  /// Saves every list and ends the writer. What could not be saved stays in the journal and is
  /// logged. Call it once, when nothing uses the engine any more.
  public func close() { writer.stop() }

  public var isReadOnly: Bool { store.isReadOnly }

  public func space() -> StoreSpace { store.space() }

  public func synchronize() throws(EngineError) { try store.synchronize() }

  public func observe(_ observer: @escaping @Sendable (Notice) -> Void) {
    observers.withLock { $0.append(observer) }
  }

  public func register(_ defaults: [Key: Value], for domain: DomainName) {
    let location = Location(.registered, domain)
    let items = registered.register(defaults, for: domain).map { key in
      Changeset.Item(location, .set(key, defaults[key] ?? "", .unknown))
    }
    announce(Changeset(items, time: .now), author: nil)
  }

  private func announce(_ changeset: Changeset, author: Author?) {
    guard !changeset.isEmpty else { return }
    let notice = Notice(changeset: changeset, author: author)
    for observer in observers.withLock({ $0 }) { observer(notice) }
  }
}

// MARK: - Looking up

extension LocalEngine {
  public func resolve(_ key: Key, in domain: DomainName) throws(EngineError) -> Resolution? {
    for location in SearchList.locations(for: domain) {
      if let found = try find(key, at: location, for: domain) {
        return Resolution(
          value: found.value, text: found.text, modified: found.modified, location: location)
      }
    }
    return nil
  }

  /// A list of the global domain that cannot be read (the store has logged it) is an error of the
  /// global domain; the others go on without it.
  private func find(
    _ key: Key, at location: Location, for domain: DomainName
  ) throws(EngineError) -> (value: Value, text: [UInt8]?, modified: Timestamp)? {
    do {
      return try sources[location.place]?.find(key, in: location.domain)
    } catch
      where error.reason == .unreadable && location.domain != domain
      && location.place != .managed
    {
      return nil
    }
  }

  public func domains() throws(EngineError) -> Set<DomainName> {
    var found: Set<DomainName> = [.global]
    for place in SearchList.persistentPlaces { found.formUnion(try store.domains(in: place)) }
    return found
  }

  public func hasDomain(_ domain: DomainName) throws(EngineError) -> Bool {
    if domain == .global { return true }
    for place in SearchList.persistentPlaces
    where try store.exists(Location(place, domain)) { return true }
    return false
  }

  public func keys(of domain: DomainName) throws(EngineError) -> Set<Key> {
    var found: Set<Key> = []
    for place in SearchList.ownPlaces {
      if let keys = try sources[place]?.keys(of: domain) { found.formUnion(keys) }
    }
    return found
  }

  public func inheritedKeys() throws(EngineError) -> Set<Key> {
    var found = Set(try sources[.arguments]?.keys(of: .global) ?? [])
    for place in SearchList.persistentPlaces {
      if let keys = try sources[place]?.keys(of: .global) { found.formUnion(keys) }
    }
    return found
  }

  public func modified(_ domain: DomainName) throws(EngineError) -> Timestamp? {
    var latest: Timestamp?
    for place in SearchList.persistentPlaces {
      guard let time = try store.modified(Location(place, domain)) else { continue }
      latest = max(latest ?? time, time)
    }
    return latest
  }
}

// MARK: - Changing

extension LocalEngine {
  public func apply(_ intents: [Intent], by author: Author) throws(EngineError) -> Changeset {
    try applying.withLock { _ throws(EngineError) in
      var items: [Changeset.Item] = []
      for intent in intents { items += try self.items(for: intent) }
      let (changeset, isFirstUnsaved) = try store.commit(items)
      if isFirstUnsaved { writer.wake() }
      announce(changeset, author: author)
      return changeset
    }
  }

  private func items(for intent: Intent) throws(EngineError) -> [Changeset.Item] {
    switch intent {
    case .set(let key, let domain, let value, let text):
      let place = try writePlace(of: key, in: domain)
      return [Changeset.Item(Location(place, domain), .set(key, value, text))]
    case .remove(let key, let domain):
      let place = try writePlace(of: key, in: domain)
      let location = Location(place, domain)
      if try store.find(key, at: location) == nil { try refuseRemoval(key, in: domain) }
      return [Changeset.Item(location, .remove(key))]
    case .createDomain(let domain):
      guard try !hasDomain(domain) else {
        throw EngineError(.domainExists, domain: domain, "there is such a domain")
      }
      return [Changeset.Item(Location(.user, domain), .createDomain)]
    case .removeDomain(let domain):
      guard try keys(of: domain).isEmpty else {
        throw EngineError(.domainNotEmpty, domain: domain, "remove its keys first")
      }
      return try ownItems(of: domain).map { Changeset.Item($0, .removeDomain) }
    case .renameDomain(let old, let new): return try rename(old, to: new)
    }
  }

  /// Where a write of the key goes: the host's list if the key stands there, else the user's.
  /// Only the places before them are asked, so that a damaged list elsewhere stops no write.
  private func writePlace(of key: Key, in domain: DomainName) throws(EngineError) -> Place {
    for location in [Location(.managed, domain), Location(.managed, .global)]
    where try sources[.managed]?.find(key, in: location.domain) != nil {
      throw EngineError(
        .forced, domain: domain, key: key, "the administrator has set it (a managed list)")
    }
    if try sources[.arguments]?.find(key, in: .global) != nil {
      throw EngineError(
        .argument, domain: domain, key: key, "an argument of the mount (-\(key)) sets it")
    }
    return try sources[.host]?.find(key, in: domain) != nil ? .host : .user
  }

  private func refuseRemoval(_ key: Key, in domain: DomainName) throws(EngineError) -> Never {
    guard let found = try resolve(key, in: domain) else {
      throw EngineError(.noSuchKey, domain: domain, key: key, "there is no such key")
    }
    throw EngineError(
      .heldElsewhere, domain: domain, key: key,
      "it comes from \(found.location.source(seenFrom: domain)), which a removal does not reach")
  }

  /// The user's own locations of a domain that has no others.
  private func ownItems(of domain: DomainName) throws(EngineError) -> [Location] {
    guard domain != .global else {
      throw EngineError(.heldElsewhere, domain: domain, "the global domain is always there")
    }
    for place in [Place.managed, .anyUser] where try store.exists(Location(place, domain)) {
      throw EngineError(
        .heldElsewhere, domain: domain, "the place \(place.rawValue) has the domain too")
    }
    var own: [Location] = []
    for place in [Place.user, .host] where try store.exists(Location(place, domain)) {
      own.append(Location(place, domain))
    }
    guard !own.isEmpty else {
      throw EngineError(.noSuchDomain, domain: domain, "there is no such domain")
    }
    return own
  }

  private func rename(
    _ old: DomainName, to new: DomainName
  ) throws(EngineError) -> [Changeset.Item] {
    if try hasDomain(new) {
      guard try keys(of: new).isEmpty else {
        throw EngineError(.domainNotEmpty, domain: new, "it has keys; remove them first")
      }
      _ = try ownItems(of: new)
    }
    var items: [Changeset.Item] = []
    for location in try ownItems(of: old) {
      let target = Location(location.place, new)
      let snapshot = try store.snapshot(of: location)
      items.append(Changeset.Item(target, .createDomain))
      for key in snapshot.keys {
        guard let value = snapshot[key] else { continue }
        let text: WrittenText = snapshot.text(of: key).map { .exact($0) } ?? .canonical
        items.append(Changeset.Item(target, .set(key, value, text)))
      }
      items.append(Changeset.Item(location, .removeDomain))
    }
    return items
  }
}
