import PreferenceModel
import PropertyList
import StoreAccess
import Synchronization
import SystemCalls

/// The persistent places of a store over the whole life of a process that uses it, whichever
/// process owns the store meanwhile.
///
/// Promises: those of `PersistentPlaces` and of the services, and those of its parts: `Succession`
/// (the connection to the owner) and `PostQueue` (changes that are not waited for). While there is
/// no owner, reads of locations that are loaded go on, once a look for the next owner has found
/// none (`Succession.read`: 1 s at most, so that what the next owner has acknowledged meanwhile is
/// not missed); other reads, and changes, wait for the next owner, 5 s at most, then they fail with
/// ETIMEDOUT. A change whose answer did not come is sent again, and carried out once. Observers are
/// notified of what changed between two owners as of any other change.
///
/// A copy of the process that fork(2) has made, and that has not called execve(2) yet, can read
/// what was read before and has not changed. Other look-ups, and changes, fail with EPERM there,
/// because the copy shares the connection with the process. (CFPreferences cannot be used in such a
/// copy either.)
///
/// Threads: any. Observers are called in the order of the changes, after look-ups go to the owner
/// that made them. Locks: `state`, under which nothing blocks, and those of the parts. None of them
/// is held while an owner is asked or an observer is called, except the turn of `PostQueue`.
public final class StoreClient: PersistentPlaces, DurabilityService, ReportService {
  /// A request of the kernel that changes are made for.
  private struct KernelRequest {
    let number: UInt64
    /// How many changes were carried out for it.
    var changes: UInt64 = 0
    /// Whether the next change is the one that it asks for.
    var isDecisive = false
  }

  private struct State {
    /// The mounts of this process, and the names that each has claimed. Every owner is told of them.
    var mounts: [Author: Set<Key>] = [:]
    /// The mounts that have left. Each next owner is told again: the one before may have ended
    /// before it knew, and a new owner waits a moment for the mounts that the last one has noted.
    var departed: [Author] = []
    /// The domains of each place that this process knows of.
    var domains: [Place: Set<DomainName>] = [:]
    /// Random, because an owner remembers the serials of a predecessor of this process.
    var lastSerial = UInt64.random(in: 1..<1 << 60)
    /// The request of the kernel that changes are made for.
    var request: KernelRequest?
    /// Who asks for changes, for the history; nil: this process, which the owner knows.
    var source: ChangeSource?
    /// The gauges of all owners so far. They are kept because `gauge` points to one of them, which
    /// is read without a lock.
    var gauges: [Gauge] = []

    /// Brings `domains` up to date with a change.
    mutating func noteDomains(_ notice: Notice) {
      // A key that was there is in a domain that is known.
      for item in notice.changeset.items where !item.hadKey {
        let (place, domain) = (item.location.place, item.location.domain)
        switch item.edit {
        case .set, .splice, .createDomain: domains[place]?.insert(domain)
        case .removeDomain: domains[place]?.remove(domain)
        case .remove, .describe: break
        }
      }
    }
  }

  private let state = Mutex(State())
  private let observers = ObserverList()
  let succession: Succession
  let queue: PostQueue
  /// The number of this process and its successors.
  public let client: UInt64
  /// The present owner's gauge, unretained; 0: nothing is fresh, because there has been no owner,
  /// or a new one is adopted.
  let gauge = Atomic<UInt>(0)
  public let isReadOnly: Bool
  /// The connections of a process that has a loop of its own (a mount): in place of a thread for
  /// each link, the loop waits for the set's descriptor beside its other descriptors, and then
  /// receives what has come. So a change of another program wakes one thread here, and not two.
  /// Nil: each connection has a thread.
  let receiver: DescriptorSet?

  /// Finds an owner, and starts one if it may. Throws `.owned` after 5 s without one (it may be
  /// stopped), unless the process is a lasting one; throws other errors at once, e.g. that the
  /// owner speaks another version of the messages, or why `prefsd` could not be started. In a
  /// process that asks a few things and ends, the first request does that.
  /// - Parameter log: receives lines for people.
  public init(
    _ surroundings: Surroundings, _ manner: Manner, log: @escaping @Sendable (LogLine) -> Void
  ) throws(EngineError) {
    if !manner.isBrief { ForkedProcess.watch() }
    isReadOnly = manner.isReadOnly
    receiver = try EngineError.wrapping { () throws(SystemError) in
      manner.hasLoop ? try DescriptorSet() : nil
    }
    let search = OwnerSearch(
      surroundings, isBrief: manner.isBrief, hearsAll: manner.hearsAll || manner.client != nil,
      client: manner.client, startsThreads: !manner.hasLoop && !manner.isBrief,
      start: manner.start)
    client = search.client
    succession = Succession(search, isLasting: manner.isLasting, log: log)
    queue = PostQueue(succession, client: search.client, log: log)
    state.withLock { $0.source = manner.via.map { ChangeSource($0) } }
    if manner.isBrief { return }
    try succession.begin { [weak self] owner, known throws(EngineError) in
      guard let self else { return owner.close() }
      try adopt(owner, known)
    }
  }

  /// Ends the connection. A process that has removed mounts first waits, a second at most, until an
  /// owner knows it.
  public func close() {
    if !state.withLock({ $0.departed.isEmpty }) { awaitOwner() }
    queue.close()
    succession.close()
  }

  /// Returns when an owner has carried out what this process has asked for, or after a second: a
  /// request without intents is answered after what was sent before.
  private func awaitOwner() {
    let deadline = Instant.now.advanced(milliseconds: 1000)
    _ = try? apply([], by: Author.unique(), origin: nextOrigin(), until: deadline)
  }

  /// Whether this process is connected to an owner at the moment.
  public var isConnected: Bool { succession.places != nil }

  // MARK: - A new owner

  /// Makes requests go to the owner; closes the connection and throws if that is not possible. Once
  /// look-ups go to the new owner, observers are notified of the differences from what this process
  /// knew, and then of the changes since.
  private func adopt(
    _ places: OwnerConnection, _ known: [Location: LocationSnapshot]
  ) throws(EngineError) {
    let version = places.gauge.known
    // An observer looks up what has changed, so notices wait until look-ups go to this owner; nil:
    // they are passed on at once.
    let waiting = Mutex<[Notice]?>([])
    places.observers.add(except: nil) { [weak self] notice in
      let waits = waiting.withLock { waiting in
        waiting?.append(notice)
        return waiting != nil
      }
      if !waits { self?.notify(notice) }
    }
    let early = state.withLock { $0.mounts }
    for (mount, names) in early { places.link.send(.mount(mount, claims: Array(names))) }
    let (differences, present) = try closing(places) { () throws(EngineError) in
      var domains = state.withLock { $0.domains }
      let differences = try Differences(
        of: places, from: known, domains: &domains, version: version)
      // What readers have cached is not fresh until they have been notified of the differences and
      // can read them from the new owner.
      gauge.store(0, ordering: .sequentiallyConsistent)
      let mounts = try queue.sendUnanswered(to: places) { epoch in
        succession.establish(places, epoch: epoch)
        return state.withLock { state in
          state.domains = domains
          return state.mounts
        }
      }
      return (differences, mounts)
    }
    for (mount, names) in present {
      guard let told = early[mount] else {
        places.link.send(.mount(mount, claims: Array(names)))
        continue
      }
      // Those of which the owner before was told.
      for name in told.subtracting(names) { _ = places.post(.release(name, mount)) }
    }
    for mount in state.withLock({ $0.departed }) { places.link.send(.unmount(mount)) }
    if differences.changeset.isEmpty {
      // Nothing that this process has cached is old; else the mounts settle for the differences.
      for mount in early.keys {
        for kind in Settlement.allCases {
          places.link.send(.settle(kind, through: version, mount))
        }
      }
    } else {
      notify(Notice(changeset: differences.changeset, events: differences.events, author: nil))
    }
    while let notice = waiting.withLock({ Self.removeNext(&$0) }) { notify(notice) }
    gauge.store(keep(places.gauge), ordering: .releasing)
    if let receiver { places.receiveNotices(by: receiver) }
    succession.finishAdoption(places)
  }

  /// Removes the oldest notice that waits. If none does, none waits from here on.
  private static func removeNext(_ waiting: inout [Notice]?) -> Notice? {
    if waiting?.isEmpty == true { waiting = nil }
    return waiting?.removeFirst()
  }

  /// Runs the body, and closes the connection if it throws.
  private func closing<Result>(
    _ owner: OwnerConnection, _ body: () throws(EngineError) -> Result
  ) throws(EngineError) -> Result {
    do throws(EngineError) {
      return try body()
    } catch {
      owner.close()
      throw error
    }
  }

  /// Keeps a gauge, and returns the pointer to it as a number.
  private func keep(_ gauge: Gauge) -> UInt {
    state.withLock { $0.gauges.append(gauge) }
    return UInt(bitPattern: Unmanaged.passUnretained(gauge).toOpaque())
  }

  // MARK: - Observers and mounts

  public func observe(
    except author: Author?, _ observer: @escaping @Sendable (Notice) -> Void
  ) {
    observers.add(except: author, observer)
  }

  /// Notifies the observers of a change.
  private func notify(_ notice: Notice) {
    state.withLock { $0.noteDomains(notice) }
    observers.notify(notice)
  }

  public func addMount(_ author: Author) {
    succession.hasMounts.store(true, ordering: .relaxed)
    state.withLock { state in
      state.mounts[author] = []
      state.departed.removeAll { $0 == author }
    }
    succession.places?.link.send(.mount(author))
  }

  public func removeMount(_ author: Author) {
    state.withLock { state in
      state.mounts[author] = nil
      state.departed.append(author)
    }
    succession.readable?.link.send(.unmount(author))
  }

  /// The most names that a mount may have claimed: as many as one message holds.
  private static let mostClaims = 65_536

  public func claim(_ name: Key, by author: Author) throws(EngineError) -> Bool {
    // Before an owner is asked: the next one must be told, if this one gives the name and ends.
    let isNoted = state.withLock { state in
      guard state.mounts[author, default: []].count < Self.mostClaims else { return false }
      return state.mounts[author]?.insert(name) != nil
    }
    guard isNoted else { return true }
    let deadline = OwnerConnection.deadline
    do throws(EngineError) {
      let isGiven = try succession.ask(until: deadline) { places throws(EngineError) in
        try places.claim(name, by: author, until: deadline)
      }
      if !isGiven { release(name, by: author) }
      return isGiven
    } catch {
      // The owner may carry it out later.
      release(name, by: author)
      throw error
    }
  }

  public func claimAgain(_ names: [Key], by author: Author) {
    state.withLock { $0.mounts[author]?.formUnion(names.prefix(Self.mostClaims)) }
    guard let places = succession.places else { return }
    for name in names { guard places.post(.claim(name, author)) else { return } }
  }

  public func release(_ name: Key, by author: Author) {
    guard state.withLock({ $0.mounts[author]?.remove(name) != nil }) else { return }
    _ = succession.readable?.post(.release(name, author))
  }

  /// Returns a new origin for a change that this process asks for, by which an owner tells a
  /// repeated request.
  func nextOrigin() -> Origin {
    state.withLock { state in
      if let request = state.request {
        let change = request.isDecisive ? 0 : request.changes + 1
        return Origin(client: client, request: request.number, change: change)
      }
      state.lastSerial += 1
      return Origin(client: client, serial: state.lastSerial)
    }
  }

  /// Who asks for changes, for the history; nil: this process.
  var source: ChangeSource? { state.withLock { $0.source } }

  /// Notes that a change with an origin of `nextOrigin` was carried out. A call of an engine may make
  /// several: the first of them is the one that its request asks for.
  func noteCarriedOut() {
    state.withLock { state in
      state.request?.changes += 1
      state.request?.isDecisive = false
    }
  }
}

// MARK: - Requests that a successor may repeat

extension StoreClient: RepeatableChanges {
  public func begin(request: UInt64) {
    state.withLock { $0.request = KernelRequest(number: request) }
  }

  public func setDecisive(_ isDecisive: Bool) {
    state.withLock { $0.request?.isDecisive = isDecisive }
  }

  public func setSource(_ source: ChangeSource) { state.withLock { $0.source = source } }

  public func endRequest() { state.withLock { $0.request = nil } }

  public func outcome(of request: UInt64) throws(EngineError) -> Changeset? {
    let origin = Origin(client: client, request: request, change: 0)
    let deadline = Instant.now.advanced(milliseconds: OwnerConnection.patience)
    // A request without intents changes nothing, unless it was carried out before.
    let known = try apply([], by: Author.unique(), origin: origin, until: deadline)
    return known.isEmpty ? nil : known
  }
}
