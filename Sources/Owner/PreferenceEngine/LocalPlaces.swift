import Glibc
import PreferenceEffects
import PreferenceModel
import PreferenceSchemas
import PreferenceStore
import PropertyList
import StoreAccess
import Synchronization
import SystemCalls

/// The persistent places in the process that owns their store.
///
/// Promises: those of `PersistentPlaces`. Lists are rewritten by the writer's thread, coalesced;
/// `close` ends it when every list is saved, or cannot be.
///
/// Threads: any. Locks: `applying` is held for one transaction, so that an intent's place is still
/// right when it is committed; a list that the transaction needs and that nobody has read is read
/// meanwhile, so callers that must not wait have it read before. `notifying` is held while
/// observers are called; the two are never held together. The locks of the store, of `observers`,
/// of `cloud` and of the settlements are held for a look, inside one of these or alone; that of the
/// store also while a record is appended to the journal.
///
/// Observers are called in the order in which the store made the changes. A call that changes
/// something returns after its observers were called, by its own thread or by the one that held
/// `notifying` before it.
public final class LocalPlaces: PersistentPlaces, ReportService {
  /// The store of these places, from which the server reads and in which it notes its answers. Only
  /// these places change it.
  public let store: Store
  let applying = Mutex(())
  private let notifying = Mutex(())
  private let observers = ObserverList()
  /// What changes wait for: the mounts.
  public let settlements: Settlements
  private let clients = Atomic<Int>(0)
  private let closing = Atomic<Bool>(false)
  /// The version of the last change that the observers were notified of.
  private let notified: Atomic<UInt64>
  let writer: Writer

  /// What the cloud's settings say, and how much is in the cloud.
  let cloud = Mutex(CloudRules())

  /// Sets the values that configuration profiles set once.
  let onceSetter: OnceSetter

  let schemas = SchemaTable()
  /// The keys that were logged because a program has set what the schema does not allow, and until
  /// when they are not logged again.
  let unfit = Mutex<[String: Instant]>([:])
  /// The keys that two writers change in turns.
  let turns = Mutex(Turns())
  let log: @Sendable (LogLine) -> Void

  /// The places of a store, which belongs to this object from then on. Starts the writer's thread.
  /// Waits, 1 s at most, to learn which managed directories are users'.
  /// - Parameters:
  ///   - writeback: seconds from the first unsaved change of a list to its rewrite.
  ///   - mountNote: the file that the mounts are noted in, for the next owner; nil means none.
  ///   - readersNote: that of an owner before which only read; nil if there was none.
  ///   - isFirstAfterLogin: whether no process has owned the store since the user logged in: then
  ///     values without a time stamp are set once more.
  public init(
    store: Store, writeback: Double = 1, mountNote: String? = nil,
    readersNote: String? = nil, isFirstAfterLogin: Bool = false,
    log: @escaping @Sendable (LogLine) -> Void
  ) throws(EngineError) {
    (self.store, self.log) = (store, log)
    notified = Atomic(store.lists.version)
    onceSetter = OnceSetter(isFirstAfterLogin: isFirstAfterLogin, log: log)
    let wakeup = try EngineError.wrapping { () throws(SystemError) in try Wakeup() }
    settlements = Settlements(
      note: mountNote, ofReader: readersNote, changed: { wakeup.signal() }, log: log)
    writer = Writer(
      store: store, wakeup: wakeup, interval: writeback, settlements: settlements, log: log)
    store.lists.learnUsers()
    try EngineError.wrapping { () throws(SystemError) in
      try writer.start { [weak self] in
        self?.notifyObservers()
        self?.applyOnceSettings()
      }
    }
  }

  /// Saves every list and ends the writer's thread. Changes that could not be saved stay in the
  /// journal, and the log says so. Call it once, when nothing uses the places any more.
  public func close() {
    closing.store(true, ordering: .releasing)
    writer.stop()
  }

  /// Whether the places are about to end, so that nothing more may be set on its own.
  package var isClosing: Bool { closing.load(ordering: .acquiring) }

  public var isReadOnly: Bool { store.isReadOnly }

  /// The directories that this process has under the store's names. Cost: a lock; no disk is asked.
  public var identity: StoreIdentity { writer.identity }

  /// Notes how many clients are connected. The server calls it.
  public func noteClients(_ count: Int) { clients.store(count, ordering: .relaxed) }

  public var isFresh: Bool { notified.load(ordering: .acquiring) >= store.lists.version }

  /// The number of the last change.
  public var version: UInt64 { store.lists.version }

  /// Returns when every change that was applied before is on the disk: fsync(2).
  public func makeDurable() throws(EngineError) {
    if let obstacle = store.savingObstacle(nil) { throw obstacle }
    try store.journal.synchronize()
  }

  /// Saves the location (nil means all locations) without waiting. The writer's thread calls the
  /// body, with the error or nil.
  public func save(_ location: Location?, _ body: @escaping @Sendable (EngineError?) -> Void) {
    writer.save(location, body)
  }
}

// MARK: - Reading

extension LocalPlaces {
  public func find(_ key: Key, at location: Location) throws(EngineError) -> StoredValue? {
    try store.lists.find(key, at: location)
  }

  public func findFirst(
    _ key: Key, in locations: [Location]
  ) throws(EngineError) -> LocatedValue? {
    try store.lists.findFirst(key, in: locations)
  }

  public func load(_ location: Location) throws(EngineError) {
    // Any look-up reads the list.
    _ = try store.lists.find("", at: location)
  }

  /// Reads each list before it looks at the next, so that a list that hangs makes only those behind
  /// it wait. Of a domain that no place has, each list is looked for once, and nothing is kept.
  public func loadLists(_ load: ListLoad) -> [Location: ListFinding] {
    var findings: [Location: ListFinding] = [:]
    var isThere = load.evenIfAbsent
    var absent: [Location] = []
    let mark = store.lists.appearances
    for location in load.locations {
      if isThere, store.lists.keepNothing(at: location, since: mark) { continue }
      if !isThere {
        isThere = !store.lists.isAbsent(location)
        if !isThere { absent.append(location) }
      }
      if isThere { findings[location] = read(location) }
    }
    for location in absent where isThere {
      _ = store.lists.keepNothing(at: location, since: mark, isAbsent: true)
      findings[location] = read(location)
    }
    // After the lists were read: most places of a domain have none, and need no look at the disk.
    for location in load.changing where location.place == .user || !isPrepared(location) {
      prepare(location)
    }
    return findings
  }

  /// A place whose directory cannot be listed, or where no list can be made, leaves its loads to be
  /// carried out one by one, which finds out why.
  public func loadAbsent(_ loads: [ListLoad]) -> [Int] {
    guard loads.contains(where: \.evenIfAbsent) else { return Array(loads.indices) }
    let lists = store.lists
    let mark = lists.appearances
    let names = lists.names(in: Set(loads.lazy.flatMap(\.locations).map(\.place)))
    let isAbsent = loads.map { load in
      load.evenIfAbsent
        && load.locations.allSatisfy { location in
          names.lack(location)
            && (lists.isLoaded(location)
              || lists.keepNothing(at: location, since: mark, isAbsent: true))
        }
    }
    let changing = zip(loads, isAbsent).lazy.filter(\.1).flatMap(\.0.changing)
    let failed = store.prepare(absent: changing.filter { $0.place == .user || !isPrepared($0) })
    return loads.indices.filter { index in
      !isAbsent[index] || loads[index].changing.contains { failed.contains($0.place) }
    }
  }

  /// Whether the location's list has been read, so that a look-up waits for no disk.
  public func isLoaded(_ location: Location) -> Bool { store.lists.isLoaded(location) }

  public func isLoaded(_ domain: DomainName, in places: [Place]) -> Bool {
    store.lists.isLoaded(domain, in: places)
  }

  public func isPrepared(_ location: Location) -> Bool { store.isPrepared(location) }

  public func prepare(_ location: Location) { store.prepare(location) }

  public func keys(at location: Location) throws(EngineError) -> [Key] {
    try store.lists.snapshot(of: location).keys
  }

  public func exists(_ location: Location) throws(EngineError) -> Bool {
    try store.lists.exists(location)
  }

  public func isMade(_ location: Location) throws(EngineError) -> Bool {
    try store.lists.snapshot(of: location).made != nil
  }

  public func modified(_ location: Location) throws(EngineError) -> Timestamp? {
    try store.lists.modified(location)
  }

  public func domains(in place: Place) throws(EngineError) -> Set<DomainName> {
    try store.lists.domains(in: place)
  }

  public func snapshots(of locations: [Location]) throws(EngineError) -> [LocationSnapshot] {
    try store.lists.versionedSnapshots(of: locations).domains
  }
}

// MARK: - Reports

extension LocalPlaces {
  public func report(_ report: OwnerReport) throws(EngineError) -> Value {
    switch report {
    case .status:
      var status = store.status
      status["clients"] = .integer(WideInteger(UInt64(clients.load(ordering: .relaxed))))
      status["in turns"] = .array(turns.withLock { $0.quarrels.map(\.report) })
      status["owner"] = .integer(WideInteger(UInt64(getpid())))
      return .dictionary(status)
    case .history: return store.history.report()
    case .forget(let domain, let key):
      let count = try store.history.forget(of: domain, key)
      // The history's settings: what mounts show of the past is made anew.
      store.lists.invalidate(Location(.user, .settings))
      notifyObservers()
      return count
    case .profiles: return .array(store.lists.profileReports.map { .dictionary($0) })
    case .effects:
      return .array(try EffectReport.values(self, store.layout).map { .dictionary($0) })
    case .fragments: return .array(store.lists.fragmentReports.map { .dictionary($0) })
    case .check(let bytes): return .dictionary(store.lists.check(profile: bytes) ?? [:])
    }
  }
}

// MARK: - Observers

extension LocalPlaces {
  public func observe(
    except author: Author?, _ observer: @escaping @Sendable (Notice) -> Void
  ) {
    observers.add(except: author, observer)
  }

  /// Notifies observers of the changes that the store has made since the last call.
  func notifyObservers() {
    notifying.withLock { _ in
      while let notice = store.lists.removeNextNotice() {
        schemas.forget(notice.changeset)
        notify(of: notice)
        notified.store(notice.changeset.version, ordering: .releasing)
      }
    }
  }

  /// Notifies the observers of one change. Its key events are only computed if there is an observer
  /// other than the author.
  private func notify(of notice: PendingNotice) {
    let author = notice.author
    guard !observers.isEmpty(for: author) else { return }
    settlements.expect(notice.changeset.version, except: author)
    // A list that nobody has read is not read for the events, under `notifying`: nobody can have
    // seen a key in it, because a mount reads all lists of a domain that it shows.
    let events = notice.changeset.events { store.lists.holds($0, of: $1, in: $2) }
    observers.notify(
      Notice(changeset: notice.changeset, events: events, author: author, origin: notice.origin))
  }
}
