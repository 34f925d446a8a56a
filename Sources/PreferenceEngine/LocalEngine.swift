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
  let store: Store
  let sources: [Place: any PlaceSource]
  let registered = RegisteredPlace()
  let applying = Mutex(())
  let observers = Mutex<[Observer]>([])
  let writer: Writer

  /// Who is told of changes, but of those that he made.
  struct Observer: Sendable {
    var author: Author?
    var tell: @Sendable (Notice) -> Void
  }

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

  public func observe(
    except author: Author?, _ observer: @escaping @Sendable (Notice) -> Void
  ) {
    observers.withLock { $0.append(Observer(author: author, tell: observer)) }
  }

  public func register(_ defaults: [Key: Value], for domain: DomainName) {
    let location = Location(.registered, domain)
    let items = registered.register(defaults, for: domain).map { key in
      Changeset.Item(location, .set(key, defaults[key] ?? "", .unknown))
    }
    tell(Changeset(items, time: .now), author: nil) { [] }
  }

  func announce(_ change: TracedChangeset, author: Author?) {
    tell(change.changeset, author: author) { events(of: change) }
  }

  /// What became of the keys is looked up only where somebody listens: the only mount of a store
  /// does not, to its own writes.
  private func tell(_ changeset: Changeset, author: Author?, _ events: () -> [KeyEvent]) {
    guard !changeset.isEmpty else { return }
    let listeners = observers.withLock { observers in
      observers.filter { author == nil || $0.author != author }
    }
    guard !listeners.isEmpty else { return }
    let notice = Notice(changeset: changeset, events: events(), author: author)
    for listener in listeners { listener.tell(notice) }
  }
}

// MARK: - What became of keys

extension LocalEngine {
  /// A change in a place is seen in the domain unless a place before it has the key too; a key that
  /// a place behind it has does not come or go.
  private func events(of change: TracedChangeset) -> [KeyEvent] {
    zip(change.changeset.items, change.hadKey).compactMap { item, hadKey in
      let (key, isThere): (Key, Bool)
      switch item.edit {
      case .set(let name, _, _): (key, isThere) = (name, true)
      case .remove(let name): (key, isThere) = (name, false)
      case .describe, .createDomain, .removeDomain: return nil
      }
      let (place, domain) = (item.location.place, item.location.domain)
      guard let index = SearchList.ownPlaces.firstIndex(of: place),
        !has(key, domain, SearchList.ownPlaces[..<index])
      else { return nil }
      if hadKey == isThere { return isThere ? KeyEvent(domain, key, .changed) : nil }
      if has(key, domain, SearchList.ownPlaces[(index + 1)...]) {
        return KeyEvent(domain, key, .changed)
      }
      return KeyEvent(domain, key, isThere ? .created : .removed)
    }
  }

  private func has(_ key: Key, _ domain: DomainName, _ places: ArraySlice<Place>) -> Bool {
    places.contains { place in (try? sources[place]?.find(key, in: domain)) != nil }
  }
}

// MARK: - Looking up

extension LocalEngine {
  public func resolve(_ key: Key, in domain: DomainName) throws(EngineError) -> Resolution? {
    for location in SearchList.locations(for: domain) {
      if let found = try find(key, at: location, for: domain) {
        return Resolution(found, location: location)
      }
    }
    return nil
  }

  /// A list of the global domain that cannot be read (the store has logged it) is an error of the
  /// global domain; the others go on without it.
  func find(
    _ key: Key, at location: Location, for domain: DomainName
  ) throws(EngineError) -> StoredValue? {
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
