import PreferenceModel
import PreferenceProtocol
import PropertyList
import StoreAccess
import Synchronization
import SystemCalls

/// One connection to the process that owns a store, with a copy of what was read over it.
///
/// Promises: a location is loaded when it is first read, and kept up to date by the owner's
/// notices; of domains that nobody has asked for here there are none, unless `hearsAll`. A read
/// compares the version of the last change that was published here with that of the last one that
/// the owner tells this client, in shared memory; if they are equal, it makes no system call.
/// Otherwise it waits for the notices that are missing, 200 ms at most: if the owner is stopped,
/// reads go on from what is known. `apply` returns when the change is published here too.
///
/// When the owner is gone, reads of locations that are loaded go on, and everything else throws
/// `.ownerGone`. A connection never finds another owner: `StoreClient` makes the next one.
///
/// Threads: any. Observers are called in the order of the changes, by the thread that receives the
/// notices. They must not read here, which would wait 200 ms for the very notice. Locks: the
/// link's, and those of the replica, `observers` and `OwnChanges`, which are taken under the link's
/// `stream` when a notice is received, and no other lock is taken under them.
final class OwnerConnection: Sendable {
  /// The number of this connection, larger than that of every one before.
  let epoch = last.add(1, ordering: .relaxed).newValue
  private static let last = Atomic(0)
  let link: Link
  let replica = Replica()
  let gauge: Gauge
  let observers = ObserverList()
  let settlements = OwnSettlements()
  private let changes = OwnChanges()
  /// See `ClientManner`.
  private let isBrief: Bool
  /// Until when a change of a location is known to wait for no disk.
  private let prepared = Mutex<[Location: Instant]>([:])
  /// Why the owner only reads, and no other one could do more; nil if it does more, or one could.
  let obstacle: Obstacle
  /// The last version that a read waited for in vain. Reads do not wait for it again.
  private let missed = Atomic<UInt64>(0)

  /// Connects to the owner. Returns nil if no process listens, or if it does not answer before the
  /// deadline. Throws the owner's refusal, e.g. of another version of the messages.
  /// - Parameters:
  ///   - client: the number that identifies this client in all its connections.
  ///   - first: a request that is made as soon as there is a connection. It is sent with the
  ///     greeting, unless it is long; the call that makes it finds it sent.
  ///   - ended: is called once, when the owner is gone.
  init?(
    _ path: String, _ surroundings: Surroundings, _ manner: ClientManner, client: UInt64,
    first: Request?, until deadline: Instant, ended: @escaping @Sendable () -> Void
  ) throws(EngineError) {
    let early = Link.Early(first)
    let greeting = try Greeting(
      path, client: client, first: early?.frame ?? [], surroundings.identity,
      hearsAll: manner.hearsAll, until: deadline)
    guard let greeting else { return nil }
    let look = { @Sendable in surroundings.stateObstacle }
    obstacle = Obstacle(greeting.isReadOnly ? look : nil)
    isBrief = manner.isBrief
    gauge = Gauge(greeting.number, version: greeting.version)
    link = Link(greeting.socket, rest: greeting.rest, early: early) {
      [replica, gauge, observers, settlements, changes] message in
      switch message {
      case .notice(var notice):
        replica.apply(&notice.changeset)
        changes.note(&notice, client: client)
        observers.notify(notice)
        gauge.pass(notice.changeset.version)
      case .settled(let version): settlements.noteSettled(through: version)
      default: break
      }
    } ended: { [settlements] in
      settlements.noteSettled(through: .max)
      ended()
    }
    if manner.hasLoop || isBrief { return }
    try EngineError.wrapping { () throws(SystemError) in try link.start() }
  }

  /// Has the receiver hear when there is something to receive, for `receiveNotices`. Where that is
  /// not possible, a thread receives it.
  func receiveNotices(by receiver: DescriptorSet) {
    if !link.receive(by: receiver) { try? link.start() }
  }

  /// Ends the connection.
  func close() { link.stop() }

  /// Whether the owner is gone.
  var hasEnded: Bool { link.hasEnded }

  /// Whether the process that owned the store has ended. `hasEnded` says so later: once its files
  /// are closed and what it sent was received. Cost: two loads.
  var isOrphaned: Bool { !gauge.hasOwner }
}

// MARK: - Reading

extension OwnerConnection {
  /// Waits until every change that the owner has made so far is published here, 200 ms at most.
  /// Cost if no change is missing: two loads.
  @inline(__always)
  func validate() {
    if !gauge.hasAll { catchUp(with: gauge.present) }
  }

  private func catchUp(with version: UInt64) {
    guard version > missed.load(ordering: .relaxed) else { return }
    let deadline = Instant.now.advanced(milliseconds: Patience.read)
    link.receive(until: deadline) { _ in gauge.known >= version ? true : nil }
    if gauge.known < version { missed.store(version, ordering: .relaxed) }
  }

  /// Reads a location, and loads it first if necessary.
  func read<Result>(
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

  static let unexpected = EngineError(
    .system(.invalidArgument), "the owner of the store sent an unexpected answer")

  private func fetch(_ location: Location) throws(EngineError) {
    replica.beginLoading(location)
    var contents: (LocationSnapshot.Contents, version: UInt64)?
    defer { replica.endLoading(location, contents) }
    guard case .snapshot(let found, let version) = try call(.load(location)) else {
      throw Self.unexpected
    }
    contents = (found, version)
  }

  /// Asks the owner for something to read. Throws ETIMEDOUT after 200 ms if the owner is stopped,
  /// and unless the process asks a few things and ends also if the owner is busy.
  func call(
    _ request: Request, until deadline: Instant? = nil
  ) throws(EngineError) -> Message {
    guard link.isAnswering(within: Patience.read) || isBrief && link.isWorking else {
      throw link.hasEnded ? Link.gone : Link.late
    }
    return try link.call(request, until: deadline ?? Patience.end)
  }

  func find(_ key: Key, at location: Location) throws(EngineError) -> StoredValue? {
    guard isBrief, !replica.holds(location) else { return try read(location) { $0.entry(key) } }
    return try findFirst(key, in: [location])?.stored
  }

  func findFirst(
    _ key: Key, in locations: [Location]
  ) throws(EngineError) -> LocatedValue? {
    if isBrief, !locations.contains(where: replica.holds) { return try ask(for: key, locations) }
    validate()
    switch replica.find(key, in: locations) {
    case .found(let stored, let location): return LocatedValue(stored, location)
    case .nothing: return nil
    case .unknown:
      if !isBrief { _ = loadLists(ListLoad(locations, evenIfAbsent: true)) }
      for location in locations {
        if let stored = try find(key, at: location) { return LocatedValue(stored, location) }
      }
      return nil
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

  func loadLists(_ load: ListLoad) -> [Location: ListFinding] {
    validate()
    guard let needed = beginLoading(load) else { return [:] }
    do throws(EngineError) {
      // The owner answers when it has read them, or 5 s later.
      let end = Patience.end.advanced(milliseconds: 1000)
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
  /// - Returns: those; nil if all are in memory, and no change is prepared.
  private func beginLoading(_ load: ListLoad) -> ListLoad? {
    var needed = load
    needed.locations = load.locations.filter { !replica.holds($0) }
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

  func isPrepared(_ location: Location) -> Bool {
    prepared.withLock { $0[location].map { $0 > .now } ?? false }
  }

  /// Milliseconds after a change, or a check by the owner, for which the next change waits for no
  /// disk: less than the owner's own checks count.
  private static let preparation: Int64 = 400
  private static let mostPrepared = 256

  /// Notes that the next change of the locations waits for no disk.
  func notePrepared(_ locations: some Sequence<Location>) {
    let until = Instant.now.advanced(milliseconds: Self.preparation)
    prepared.withLock { prepared in
      if prepared.count > Self.mostPrepared { prepared = prepared.filter { $0.value > .now } }
      for location in locations { prepared[location] = until }
    }
  }

  func modified(_ location: Location) throws(EngineError) -> Timestamp? {
    validate()
    if let known = replica.read(location, { $0.exists ? $0.lastModified : nil }) { return known }
    guard case .time(let time) = try call(.modified(location)) else { throw Self.unexpected }
    return time
  }

  func domains(in place: Place) throws(EngineError) -> Set<DomainName> {
    guard case .domains(let names) = try call(.domains(place)) else { throw Self.unexpected }
    return names
  }
}

extension ListLoad {
  /// What is known of the lists where none could be asked for.
  func failed(_ error: EngineError) -> [Location: ListFinding] {
    Dictionary(locations.map { ($0, .init(error: error)) }) { first, _ in first }
  }
}

// MARK: - Changes

extension OwnerConnection {
  /// Makes a request of the kind `apply`, and returns what it has changed: what its notice says if
  /// the answer does not come before the deadline. A process that asks a few things and ends waits
  /// for work that the owner has begun, so that it never calls a change refused that is made.
  func apply(
    _ request: Request, serial: UInt64, until deadline: Instant
  ) throws(EngineError) -> Changeset {
    if let obstacle = obstacle.present { throw obstacle }
    changes.begin(serial)
    do throws(EngineError) {
      let answer = try link.call(request, until: deadline, staysForWork: isBrief)
      guard case .applied(let changeset, let isSettled) = answer else { throw Self.unexpected }
      if !isSettled { settlements.noteUnsettled(changeset.version) }
      return changes.end(serial, changeset) ?? changeset
    } catch {
      let made = changes.end(serial, nil, isLate: error == Link.late)
      guard let made, error == Link.late else { throw error }
      return made
    }
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

  /// Sends a request about a claim, whose answer nobody waits for. It has a number, because an
  /// owner that does not know the request would end the connection otherwise.
  /// - Returns: whether it was sent.
  func post(_ request: Request) -> Bool {
    let soon = Instant.now.advanced(milliseconds: 1000)
    return link.post(request, until: soon) { _ in } == .sent
  }
}
