import PreferenceModel
import PropertyList
import Synchronization
import SystemCalls

/// Persistent places that are kept in memory only, with the rules of the stored ones: for tests of
/// programs that use preferences.
///
/// Threads: any. Locks: `applying` (one transaction at a time; its observers are called under it),
/// then `state`, held briefly.
public final class MemoryPlaces: PersistentPlaces, DurabilityService {
  private struct State {
    var domains: [Location: LocationSnapshot] = [:]
    var version: UInt64 = 0
    var searches = 0
  }

  private let applying = Mutex(())
  private let state = Mutex(State())
  private let observers = ObserverList()
  /// The error that every change throws, and each call that makes changes durable; nil if changes
  /// are carried out.
  private let refusal: EngineError?

  /// Creates empty places.
  /// - Parameter refusal: the error that every change and every synchronization throws; nil if
  ///   changes are carried out.
  public init(refusing refusal: EngineError? = nil) { self.refusal = refusal }

  /// How often a key was looked for so far, by readers and by the rules of changes. A test counts
  /// with it what a request costs.
  public var searches: Int { state.withLock { $0.searches } }

  public func find(_ key: Key, at location: Location) throws(EngineError) -> StoredValue? {
    try findFirst(key, in: [location])?.stored
  }

  public func findFirst(
    _ key: Key, in locations: [Location]
  ) throws(EngineError) -> LocatedValue? {
    state.withLock { $0.searches += 1 }
    return stored(key, in: locations)
  }

  private func stored(_ key: Key, in locations: [Location]) -> LocatedValue? {
    state.withLock { state in
      for location in locations {
        if let stored = state.domains[location]?.entry(key) {
          return LocatedValue(stored, location)
        }
      }
      return nil
    }
  }

  /// Not counted in `searches`.
  public func domainLocks() throws(EngineError) -> DomainLocks {
    DomainLocks(stored(DomainLocks.key, in: DomainLocks.locations)?.stored.value)
  }

  public func keys(at location: Location) throws(EngineError) -> [Key] {
    state.withLock { $0.domains[location]?.keys ?? [] }
  }

  public func isLoaded(_ location: Location) -> Bool { true }

  public func snapshots(of locations: [Location]) throws(EngineError) -> [LocationSnapshot] {
    state.withLock { state in locations.map { state.domains[$0] ?? LocationSnapshot() } }
  }

  public func exists(_ location: Location) throws(EngineError) -> Bool {
    state.withLock { $0.domains[location]?.exists ?? false }
  }

  public func modified(_ location: Location) throws(EngineError) -> Timestamp? {
    state.withLock { state in
      state.domains[location].flatMap { $0.exists ? $0.lastModified : nil }
    }
  }

  public func domains(in place: Place) throws(EngineError) -> Set<DomainName> {
    let all = state.withLock { $0.domains }
    return Set(all.filter { $0.key.place == place && $0.value.exists }.map(\.key.domain))
  }

  public func apply(_ intents: [Intent], by author: Author) throws(EngineError) -> Changeset {
    if let refusal { throw refusal.about(intents) }
    return try applying.withLock { _ throws(EngineError) in
      let rules = ChangeRules(self)
      try rules.requireUnlocked(intents)
      var items: [Changeset.Item] = []
      for intent in intents { items += try rules.items(for: intent) }
      let changeset = commit(items)
      if !changeset.isEmpty { observers.notify(Notice(changeset: changeset, author: author)) }
      return changeset
    }
  }

  /// Applies the edits and numbers the change.
  /// - Returns: the edits that change something.
  private func commit(_ items: [Changeset.Item]) -> Changeset {
    state.withLock { state in
      var changeset = Changeset(time: .now)
      for item in items {
        var domain = state.domains[item.location] ?? LocationSnapshot()
        guard let item = Changeset.Item(item.edit, on: domain, item.location) else { continue }
        domain.apply(item.edit, time: changeset.time)
        state.domains[item.location] = domain
        changeset.items.append(item)
      }
      if !changeset.isEmpty {
        state.version += 1
        changeset.version = state.version
      }
      return changeset
    }
  }

  public func observe(
    except author: Author?, _ observer: @escaping @Sendable (Notice) -> Void
  ) {
    observers.add(except: author, observer)
  }

  // There is no disk and no mount to wait for. Where every change is refused, none is durable.

  public func makeDurable() throws(EngineError) { if let refusal { throw refusal } }
  public func synchronize() throws(EngineError) { try makeDurable() }
  public func save(_ location: Location) throws(EngineError) { try makeDurable() }

  public var isReadOnly: Bool { refusal != nil }
  public var isFresh: Bool { true }
}
