import PreferenceModel
import PreferenceStore
import PropertyList
import Synchronization
import SystemCalls

/// The persistent places in the process that owns their store.
///
/// Promises: those of `PersistentPlaces`. Lists are rewritten by the writer's thread, coalesced;
/// `close` ends it with everything saved.
///
/// Threads: any. Locks, in their order: `applying` (one transaction at a time, so that an
/// intent's place is still right when it is committed), `announcing`, the store's, `observers`,
/// the settlements'. Observers are called under `announcing`, in the order in which the store made
/// the changes; whoever made one returns after its observers were called, by himself or by the
/// thread that held the lock before him.
public final class LocalPlaces: PersistentPlaces {
  let store: Store
  let applying = Mutex(())
  private let announcing = Mutex(())
  private let observers = Mutex<[Observer]>([])
  private let settlements: Settlements
  private let clients = Atomic<Int>(0)
  let writer: Writer

  /// Who is told of changes, but of those that he made.
  struct Observer: Sendable {
    var author: Author?
    var tell: @Sendable (Notice) -> Void
  }

  /// The places of a store, which nobody else uses from now on.
  /// - Parameter writeback: seconds from the first unsaved change of a list to its rewrite.
  public init(
    store: Store, writeback: Double = 1, log: @escaping @Sendable (String) -> Void
  ) throws(EngineError) {
    self.store = store
    settlements = Settlements(log: log)
    do {
      writer = try Writer(store: store, interval: writeback, settlements: settlements, log: log)
    } catch {
      throw EngineError(error)
    }
    try EngineError.wrapping { () throws(SystemError) in
      try writer.start { [weak self] in self?.announce() }
    }
  }

  /// Saves every list and ends the writer. What could not be saved stays in the journal and is
  /// logged. Call it once, when nothing uses the places any more.
  public func close() { writer.stop() }

  public var isReadOnly: Bool { store.isReadOnly }

  public var isShared: Bool { clients.load(ordering: .relaxed) > 0 }

  /// How many clients there are; whoever serves them says so.
  public func noteClients(_ count: Int) { clients.store(count, ordering: .relaxed) }

  public func space() -> StoreSpace { store.space() }

  public func isAnswering(within milliseconds: Int64) -> Bool { true }

  /// Who makes a change returns after the observers were called.
  public var isFresh: Bool { true }

  /// The number of the last change.
  public var version: UInt64 { store.version }

  public func makeDurable() throws(EngineError) { try store.synchronize() }

  public func synchronize() throws(EngineError) {
    try store.synchronize()
    try awaitMounts(through: store.version)
  }

  public func save(_ location: Location) throws(EngineError) {
    let answer = Monitor<EngineError??>(nil)
    save(location) { failure in answer.change { $0 = .some(failure) } }
    if let failure = answer.wait(for: { $0 }), let failure { throw failure }
  }

  /// The same without waiting: the body is called by the writer's thread.
  public func save(_ location: Location, _ body: @escaping @Sendable (EngineError?) -> Void) {
    writer.save(location, body)
  }

  public func awaitMounts(through version: UInt64) throws(EngineError) {
    guard settlements.hasMounts else { return }
    let bell = try EngineError.wrapping { () throws(SystemError) in try Wakeup() }
    whenSettled(.entries, through: version, except: Author(number: 0)) { bell.ring() }
    bell.wait(until: Instant.now.advanced(milliseconds: 2 * Settlements.patience))
  }
}

// MARK: - Reading

extension LocalPlaces {
  public func find(_ key: Key, at location: Location) throws(EngineError) -> StoredValue? {
    try store.find(key, at: location)
  }

  /// Whether the location can be read without waiting for a disk.
  public func isLoaded(_ location: Location) -> Bool { store.isLoaded(location) }

  public func keys(at location: Location) throws(EngineError) -> [Key] {
    try store.snapshot(of: location).keys
  }

  public func exists(_ location: Location) throws(EngineError) -> Bool {
    try store.exists(location)
  }

  public func modified(_ location: Location) throws(EngineError) -> Timestamp? {
    try store.modified(location)
  }

  public func domains(in place: Place) throws(EngineError) -> Set<DomainName> {
    try store.domains(in: place)
  }

  public func snapshots(of locations: [Location]) throws(EngineError) -> [DomainSnapshot] {
    try store.versionedSnapshots(of: locations).domains
  }

  /// The same, and the version that they have.
  public func versionedSnapshots(
    of locations: [Location]
  ) throws(EngineError) -> (domains: [DomainSnapshot], version: UInt64) {
    try store.versionedSnapshots(of: locations)
  }

  /// The whole of a location, and the version that it has.
  public func snapshot(
    of location: Location
  ) throws(EngineError) -> (domain: DomainSnapshot, version: UInt64) {
    try store.versionedSnapshot(of: location)
  }
}

// MARK: - Observers

extension LocalPlaces {
  public func observe(
    except author: Author?, _ observer: @escaping @Sendable (Notice) -> Void
  ) {
    observers.withLock { $0.append(Observer(author: author, tell: observer)) }
  }

  /// Tells observers of what the store has changed since the last time.
  func announce() {
    announcing.withLock { _ in
      while let publication = store.takePublication() { tell(publication) }
    }
  }

  /// What became of the keys is looked up where somebody listens, who is not the author.
  private func tell(_ publication: Publication) {
    let author = publication.author
    let listeners = observers.withLock { observers in
      observers.filter { author == nil || $0.author != author }
    }
    guard !listeners.isEmpty else { return }
    settlements.tell(publication.changeset.version, except: author)
    let notice = Notice(
      changeset: publication.changeset, events: events(of: publication), author: author,
      origin: publication.origin)
    for listener in listeners { listener.tell(notice) }
  }

  public func addMount(_ author: Author) { settlements.add(author, at: store.version) }

  /// The mount is gone: nobody waits for it.
  public func removeMount(_ author: Author) { settlements.remove(author) }

  public func settle(
    _ settlement: Settlement, through version: UInt64, by author: Author
  ) {
    settlements.settle(settlement, through: version, by: author)
  }

  public func whenSettled(
    _ settlement: Settlement, through version: UInt64, except author: Author,
    _ body: @escaping @Sendable () -> Void
  ) {
    if settlements.wait(settlement, version, except: author, body) { writer.wake() }
  }
}

// MARK: - What became of keys

extension LocalPlaces {
  /// A change in a place is seen in the domain unless a place before it has the key too; a key that
  /// a place behind it has does not come or go.
  private func events(of publication: Publication) -> [KeyEvent] {
    zip(publication.changeset.items, publication.hadKey).compactMap { item, hadKey in
      let (key, isThere): (Key, Bool)
      switch item.edit {
      case .set(let name, _, _), .splice(let name, _): (key, isThere) = (name, true)
      case .remove(let name): (key, isThere) = (name, false)
      case .describe, .createDomain, .removeDomain: return nil
      }
      let places = SearchList.persistentPlaces
      let domain = item.location.domain
      guard let index = places.firstIndex(of: item.location.place),
        !has(key, domain, places[..<index])
      else { return nil }
      if hadKey == isThere { return isThere ? KeyEvent(domain, key, .changed) : nil }
      if has(key, domain, places[(index + 1)...]) { return KeyEvent(domain, key, .changed) }
      return KeyEvent(domain, key, isThere ? .created : .removed)
    }
  }

  private func has(_ key: Key, _ domain: DomainName, _ places: ArraySlice<Place>) -> Bool {
    places.contains { place in (try? store.find(key, at: Location(place, domain))) != nil }
  }
}
