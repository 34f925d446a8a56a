import PreferenceModel
import PreferenceProtocol
import PropertyList
import StoreAccess
import Synchronization
import SystemCalls

/// The persistent places of a store that another process owns.
///
/// Promises: those of `PersistentPlaces`. A location is loaded when it is first read, and kept up
/// to date by the owner's notices; of domains that nobody has asked for here there are none, unless
/// `hearsAll`. A read compares the version of the last change that was published here with that of
/// the last one that the owner tells this client, in shared memory; if they are equal, it makes no
/// system call.
/// Otherwise it waits for the notices that are missing, 200 ms at most: if the owner is stopped,
/// reads go on from what is known. `apply` returns when the change is published here too.
///
/// When the owner is gone, reads of locations that are loaded go on, and everything else throws
/// `.ownerGone`. These places never find another owner: connect anew.
///
/// Threads: any. Observers are called in the order of the changes, by the thread that receives the
/// notices. They must not read these places, which would wait 200 ms for the very notice. Locks:
/// the link's, and those of the replica, `observers` and `OwnChanges`, which are taken under the
/// link's `stream` when a notice is received, and no other lock is taken under them.
public final class RemotePlaces: PersistentPlaces, DurabilityService, ReportService {
  private let link: Link
  private let replica = Replica()
  let gauge: Gauge
  private let inbox: Inbox
  public let isReadOnly: Bool
  /// Whether the owner is asked for each key.
  private let isBrief: Bool
  /// Whether this process has mounts: their changes are answered in two steps.
  private let hasMounts = Atomic<Bool>(false)
  /// Until when a change of a location is known to wait for no disk.
  private let prepared = Mutex<[Location: Instant]>([:])
  /// Why the owner only reads, and no other one could do more; nil: it does more, or one could.
  private let obstacle: Obstacle
  /// The last version that a read waited for in vain. Reads do not wait for it again.
  private let missed = Atomic<UInt64>(0)

  /// Milliseconds until a change that is not answered fails with ETIMEDOUT.
  public static let patience: Int64 = 5000
  /// Milliseconds that a read waits for notices that are missing.
  static let readPatience: Int64 = 200

  /// Receives the owner's notices: publishes the change and notifies the observers.
  private final class Inbox: Sendable {
    let observers = ObserverList()
    let changes = OwnChanges()
    let settlements = OwnSettlements()
    let client: UInt64
    private let replica: Replica
    private let gauge: Gauge

    init(client: UInt64, _ replica: Replica, _ gauge: Gauge) {
      (self.client, self.replica, self.gauge) = (client, replica, gauge)
    }

    func receive(_ message: Message) {
      switch message {
      case .notice(var notice):
        replica.apply(&notice.changeset)
        changes.note(&notice, client: client)
        observers.notify(notice)
        gauge.pass(notice.changeset.version)
      case .settled(let version): settlements.noteSettled(through: version)
      default: break
      }
    }
  }

  /// Connects to the owner. Returns nil if no process listens, or if it does not answer before the
  /// deadline. Throws the owner's refusal, e.g. of another version of the messages.
  /// - Parameters:
  ///   - client: the random number that identifies this client in all its connections.
  ///   - identity: the directories of the store, as this process sees them.
  ///   - isBrief: whether the owner is asked for each key, and a location is loaded only for all of
  ///     its keys.
  ///   - hearsAll: see `Member.Manner`.
  ///   - obstacle: says why no owner could change something. It is asked if this one only reads.
  ///   - first: a request that is made as soon as these places exist. It is sent with the greeting,
  ///     unless it is long; the call that makes it finds it sent.
  ///   - startsThread: whether a thread receives what comes between two calls.
  ///   - ended: is called once, when the owner is gone.
  public init?(
    connectingTo path: String, client: UInt64, _ identity: StoreIdentity, isBrief: Bool,
    hearsAll: Bool = false, obstacle: @escaping @Sendable () -> EngineError? = { nil },
    first: Request? = nil, startsThread: Bool = true, until deadline: Instant,
    ended: @escaping @Sendable () -> Void
  ) throws(EngineError) {
    let early = Link.Early(first)
    let greeting = try Greeting(
      path, client: client, first: early?.frame ?? [], identity, hearsAll: hearsAll,
      until: deadline)
    guard let greeting else { return nil }
    isReadOnly = greeting.isReadOnly
    self.obstacle = Obstacle(greeting.isReadOnly ? obstacle : nil)
    self.isBrief = isBrief
    gauge = Gauge(greeting.number, version: greeting.version)
    let inbox = Inbox(client: client, replica, gauge)
    self.inbox = inbox
    link = Link(
      greeting.socket, rest: greeting.rest, early: early, received: { inbox.receive($0) }
    ) {
      inbox.settlements.noteSettled(through: .max)
      ended()
    }
    if startsThread { try EngineError.wrapping { () throws(SystemError) in try link.start() } }
  }

  /// Has the receiver hear when there is something to receive, for `receiveNotices`. Where that is
  /// not possible, a thread receives it.
  func receiveNotices(by receiver: DescriptorSet) {
    if !link.receive(by: receiver) { try? link.start() }
  }

  /// Receives what has come, without waiting, unless another thread does.
  func receiveNotices() -> Bool { link.receiveIfFree() }

  /// Ends the connection.
  public func close() { link.stop() }

  /// Whether the owner is gone.
  public var hasEnded: Bool { link.hasEnded }

  /// Receives what the owner sent before it ended.
  func receiveRest() {
    link.receiveRest(until: Instant.now.advanced(milliseconds: Self.readPatience))
  }

  /// Whether the process that owned the store has ended. `hasEnded` says so later: once its files
  /// are closed and what it sent was received. Cost: two loads.
  var isOrphaned: Bool { !gauge.hasOwner }

  public var version: UInt64 { gauge.known }

  /// Every location that is loaded, as it was published here last.
  public var loaded: [Location: LocationSnapshot] { replica.loaded }
}

// MARK: - Reading

extension RemotePlaces {
  public var isFresh: Bool { gauge.isFresh }

  /// Waits until every change that the owner has made so far is published here, 200 ms at most.
  /// Cost if no change is missing: two loads.
  @inline(__always)
  private func validate() {
    if !gauge.hasAll { catchUp(with: gauge.present) }
  }

  private func catchUp(with version: UInt64) {
    guard version > missed.load(ordering: .relaxed) else { return }
    let deadline = Instant.now.advanced(milliseconds: Self.readPatience)
    link.receive(until: deadline) { _ in gauge.known >= version ? true : nil }
    if gauge.known < version { missed.store(version, ordering: .relaxed) }
  }

  /// Reads a location, and loads it first if necessary.
  private func read<Result>(
    _ location: Location, _ body: (borrowing LocationSnapshot) -> Result
  ) throws(EngineError) -> Result {
    validate()
    for _ in 0..<Self.mostLoads {
      if let found = replica.read(location, body) { return found }
      try fetch(location)
    }
    throw EngineError(
      .system(.timedOut), domain: location.domain, "the list changes faster than it can be read")
  }

  /// How often a read loads a location that is invalidated at once, because its list becomes
  /// unreadable, or readable again.
  private static let mostLoads = 20

  private static let unexpected = EngineError(
    .system(.invalidArgument), "the owner of the store sent an unexpected answer")

  /// When a request that is made now fails with ETIMEDOUT.
  static var deadline: Instant { Instant.now.advanced(milliseconds: patience) }

  private func fetch(_ location: Location) throws(EngineError) {
    replica.beginLoading(location)
    var contents: (LocationSnapshot.Contents, version: UInt64)?
    defer { replica.endLoading(location, contents) }
    guard case .snapshot(let found, let version) = try call(.load(location)) else {
      throw Self.unexpected
    }
    contents = (found, version)
  }

  /// Asks the owner for something to read. Throws ETIMEDOUT after 200 ms if the owner is stopped, and
  /// unless the process asks a few things and ends also if the owner is busy.
  private func call(
    _ request: Request, until deadline: Instant? = nil
  ) throws(EngineError) -> Message {
    guard link.isAnswering(within: Self.readPatience) || isBrief && link.isWorking else {
      throw link.hasEnded ? Link.gone : Link.late
    }
    return try link.call(request, until: deadline ?? Self.deadline)
  }

  public func find(_ key: Key, at location: Location) throws(EngineError) -> StoredValue? {
    guard isBrief, !replica.holds(location) else { return try read(location) { $0.entry(key) } }
    return try findFirst(key, in: [location])?.stored
  }

  public func findFirst(
    _ key: Key, in locations: [Location]
  ) throws(EngineError) -> LocatedValue? {
    if isBrief, !locations.contains(where: replica.holds) { return try ask(for: key, locations) }
    validate()
    switch replica.find(key, in: locations) {
    case .found(let stored, let location): return LocatedValue(stored, location)
    case .nothing: return nil
    case .unknown:
      if !isBrief { _ = loadLists(ListLoad(locations, evenIfAbsent: true)) }
      return try findInTurn(key, in: locations)
    }
  }

  /// Has the owner find the key.
  private func ask(
    for key: Key, _ locations: [Location]
  ) throws(EngineError) -> LocatedValue? {
    guard case .found(let stored, let index) = try call(.find(key, locations)),
      stored == nil || index < locations.count
    else { throw Self.unexpected }
    return stored.map { LocatedValue($0, locations[Int(index)]) }
  }

  public func keys(at location: Location) throws(EngineError) -> [Key] {
    try read(location) { $0.keys }
  }

  public func mostKeys(at location: Location) throws(EngineError) -> Int {
    try read(location) { $0.mostKeys }
  }

  public func load(_ location: Location) throws(EngineError) { try read(location) { _ in } }

  public func loadLists(_ load: ListLoad) -> [Location: ListFinding] {
    validate()
    guard let needed = beginLoading(load) else { return [:] }
    do throws(EngineError) {
      // The owner answers when it has read them, or 5 s later.
      let end = Self.deadline.advanced(milliseconds: 1000)
      let answer = try call(.loadLists(needed), until: end)
      return endLoading(needed, answer) ?? needed.failed(Self.unexpected)
    } catch {
      endLoading(needed, nil)
      return needed.failed(error)
    }
  }

  /// Does what `loadLists` does, without waiting. The body is called with nil where the owner does
  /// not say.
  /// - Returns: whether the body will be called. It is not where the owner was not heard of for a
  ///   moment, and may be stopped, or receives nothing.
  func loadLists(
    _ load: ListLoad, then body: @escaping @Sendable ([Location: ListFinding]?) -> Void
  ) -> Bool {
    guard link.wasHeard, let needed = beginLoading(load) else { return false }
    let sent = link.post(.loadLists(needed), until: .now) { [self] answer in
      body(endLoading(needed, answer))
    }
    if sent == .sent { return true }
    endLoading(needed, nil)
    return false
  }

  /// Begins to load the lists that are not in memory.
  /// - Returns: those; nil: all are in memory, and no change is prepared.
  private func beginLoading(_ load: ListLoad) -> ListLoad? {
    var needed = load
    needed.locations = load.locations.filter { !isLoaded($0) }
    for location in needed.locations { replica.beginLoading(location) }
    return needed.locations.isEmpty && needed.changing.isEmpty ? nil : needed
  }

  /// Ends what `beginLoading` began: keeps the lists of an answer.
  /// - Returns: what is known of them; nil where the answer does not say.
  @discardableResult
  private func endLoading(
    _ load: ListLoad, _ answer: Message?
  ) -> [Location: ListFinding]? {
    guard case .lists(let lists)? = answer, lists.count == load.locations.count else {
      for location in load.locations { replica.endLoading(location, nil) }
      return nil
    }
    notePrepared(load.changing)
    var findings: [Location: ListFinding] = [:]
    for (location, list) in zip(load.locations, lists) {
      switch list {
      case .contents(let contents, let version):
        replica.endLoading(location, (contents, version))
        // If it was not kept, because the list has changed meanwhile, it is asked for again.
        findings[location] = ListFinding(modified: .now)
      case .missing: replica.endLoading(location, nil)
      case .failed(let error, let modified):
        replica.endLoading(location, nil)
        findings[location] = ListFinding(modified: modified, error: error)
      }
    }
    return findings
  }

  public func isLoaded(_ location: Location) -> Bool { replica.holds(location) }

  public func isLoaded(_ domain: DomainName, in places: [Place]) -> Bool {
    replica.holds(domain, in: places)
  }

  public func isPrepared(_ location: Location) -> Bool {
    prepared.withLock { $0[location].map { $0 > .now } ?? false }
  }

  /// Milliseconds after a change, or a check by the owner, for which the next change waits for no
  /// disk: less than the owner's own checks count.
  private static let preparation: Int64 = 400
  private static let mostPrepared = 256

  private func notePrepared(_ locations: some Sequence<Location>) {
    let until = Instant.now.advanced(milliseconds: Self.preparation)
    prepared.withLock { prepared in
      if prepared.count > Self.mostPrepared { prepared = prepared.filter { $0.value > .now } }
      for location in locations { prepared[location] = until }
    }
  }

  public func snapshots(of locations: [Location]) throws(EngineError) -> [LocationSnapshot] {
    guard case .snapshots(let all, _) = try call(.loadAll(locations)), all.count == locations.count
    else { throw Self.unexpected }
    return all.map { LocationSnapshot($0) }
  }

  public func modified(_ location: Location) throws(EngineError) -> Timestamp? {
    validate()
    if let known = replica.read(location, { $0.exists ? $0.lastModified : nil }) { return known }
    guard case .time(let time) = try call(.modified(location)) else { throw Self.unexpected }
    return time
  }

  public func domains(in place: Place) throws(EngineError) -> Set<DomainName> {
    guard case .domains(let names) = try call(.domains(place)) else { throw Self.unexpected }
    return names
  }

  public func report(_ report: OwnerReport) throws(EngineError) -> Value {
    guard case .report(let value) = try call(.report(report)) else { throw Self.unexpected }
    return value
  }

}

extension ListLoad {
  /// What is known of the lists where none could be asked for.
  func failed(_ error: EngineError) -> [Location: ListFinding] {
    Dictionary(locations.map { ($0, .init(error: error)) }) { first, _ in first }
  }
}

// MARK: - Changes

extension RemotePlaces {
  public func apply(_ intents: [Intent], by author: Author) throws(EngineError) -> Changeset {
    let origin = Origin(client: inbox.client, serial: .random(in: 1..<Origin.ordered))
    return try apply(intents, by: author, origin: origin, until: Self.deadline)
  }

  /// See `Member.apply`. The client of the origin must be the one that connected.
  public func apply(
    _ intents: [Intent], by author: Author, origin: Origin, from source: ChangeSource? = nil,
    until deadline: Instant
  ) throws(EngineError) -> Changeset {
    let answering: Request.Answering = hasMounts.load(ordering: .relaxed) ? .inTwoSteps : .atOnce
    return try apply(
      .apply(serial: origin.serial, author, deadline: deadline, answering, intents, source),
      serial: origin.serial, until: deadline)
  }

  /// Makes a request of the kind `apply`, and returns what it has changed: what its notice says if
  /// the answer does not come before the deadline. A process that asks a few things and ends waits
  /// for work that the owner has begun, so that it never calls a change refused that is made.
  func apply(
    _ request: Request, serial: UInt64, until deadline: Instant
  ) throws(EngineError) -> Changeset {
    if let obstacle = obstacle.present { throw obstacle }
    inbox.changes.begin(serial)
    do throws(EngineError) {
      let answer = try link.call(request, until: deadline, staysForWork: isBrief)
      guard case .applied(let changeset, let isSettled) = answer else { throw Self.unexpected }
      if hasMounts.load(ordering: .relaxed) { notePrepared(changeset.items.lazy.map(\.location)) }
      if !isSettled { inbox.settlements.noteUnsettled(changeset.version) }
      return inbox.changes.end(serial, changeset) ?? changeset
    } catch {
      let made = inbox.changes.end(serial, nil, isLate: error == Link.late)
      guard let made, error == Link.late else { throw error }
      return made
    }
  }

  /// Sends a change that no caller waits for; the owner carries it out however late. Each serial
  /// must be larger than the one before. One thread at a time may call it.
  /// - Parameters:
  ///   - deadline: for sending the change.
  ///   - answered: is called with the answer; nil: the owner is gone.
  func post(
    _ intents: [Intent], by author: Author, serial: UInt64, until deadline: Instant,
    answered: @escaping @Sendable (Message?) -> Void
  ) -> Link.Transmission {
    if let obstacle = obstacle.present {
      answered(.failed(obstacle))
      return .sent
    }
    let never = Instant(nanoseconds: .max)
    let request = Request.apply(
      serial: serial | Origin.ordered, author, deadline: never, .atOnce, intents)
    return link.post(request, until: deadline, then: answered)
  }

  // A slow disk may take long: these wait for as long as the owner answers pings.

  public func makeDurable() throws(EngineError) { try complete(.synchronize(mounts: false)) }

  public func synchronize() throws(EngineError) { try complete(.synchronize(mounts: true)) }

  public func save(_ location: Location) throws(EngineError) { try complete(.save(location)) }

  /// Returns when every list contains every change, or cannot be written: after the time at the
  /// latest.
  func saveAll(milliseconds: Int64) throws(EngineError) {
    _ = try link.call(.save(nil), until: Instant.now.advanced(milliseconds: milliseconds))
  }

  private func complete(_ request: Request) throws(EngineError) {
    _ = try link.call(request, until: Instant(nanoseconds: .max))
  }

  /// See `MountCoordinator`.
  public func isAnswering(within milliseconds: Int64) -> Bool {
    link.isAnswering(within: milliseconds)
  }

  public func observe(
    except author: Author?, _ observer: @escaping @Sendable (Notice) -> Void
  ) {
    inbox.observers.add(except: author, observer)
  }

  /// See `MountCoordinator`.
  /// - Parameter claims: the names that the mount has claimed from an owner before.
  public func addMount(_ author: Author, claims: Set<Key> = []) {
    hasMounts.store(true, ordering: .relaxed)
    link.send(.mount(author, claims: Array(claims)))
  }

  /// See `NameClaims`.
  func claim(_ name: Key, by author: Author, until deadline: Instant) throws(EngineError) -> Bool {
    // The owner serves its clients in turn. What another one has sent before is served before the
    // third request at the latest: a release, after which somebody uses the name here.
    for _ in 0..<3 {
      do throws(EngineError) {
        _ = try link.call(.claim(name, author), until: deadline)
        return true
      } catch  where error.reason == .system(.invalidArgument) {
        // An owner that knows no claims.
        return true
      } catch  where error.reason == .system(.fileExists) {}
    }
    return false
  }

  /// See `NameClaims`.
  func claimAgain(_ names: [Key], by author: Author) {
    for name in names { guard post(.claim(name, author)) else { return } }
  }

  /// See `NameClaims`.
  func release(_ name: Key, by author: Author) { _ = post(.release(name, author)) }

  /// Sends a request about a claim, whose answer nobody waits for. It has a number, because an owner
  /// that does not know the request would end the connection otherwise.
  /// - Returns: whether it was sent.
  private func post(_ request: Request) -> Bool {
    let soon = Instant.now.advanced(milliseconds: 1000)
    return link.post(request, until: soon) { _ in } == .sent
  }

  /// See `MountCoordinator`.
  public func removeMount(_ author: Author) { link.send(.unmount(author)) }

  /// See `MountCoordinator`.
  public func settle(
    _ settlement: Settlement, through version: UInt64, by author: Author
  ) {
    link.send(.settle(settlement, through: version, author))
  }

  /// See `MountCoordinator`.
  public func isSettled(through version: UInt64) -> Bool {
    inbox.settlements.isSettled(through: version)
  }

  /// See `MountCoordinator`.
  public func whenSettled(through version: UInt64, _ body: @escaping @Sendable () -> Void) {
    inbox.settlements.whenSettled(through: version, body)
  }
}
