import PreferenceModel
import PropertyList
import StoreAccess
import Synchronization
import SystemCalls

/// The persistent places of a store over the whole life of a process that uses it, whichever
/// process owns the store meanwhile.
///
/// Promises: those of `PersistentPlaces` and of the services.
///
/// - **The owner**, however it ended, is replaced by the next one, which this process starts if it
///   may. An owner that is stopped (SIGSTOP) is not replaced. While there is none, reads of
///   locations that are loaded go on, once a look for the next owner has found none (`read`: 1 s at
///   most, so that what the next owner has acknowledged meanwhile is not missed); other reads, and
///   changes, wait for the next owner, 5 s at most, then they fail with ETIMEDOUT, and the seeker
///   goes on looking. A change whose answer did not come is sent again, and carried out once.
///   Observers are notified of what changed between two owners as of any other change.
/// - **Posted changes**, which no caller waits for, are sent one after the other, and carried out
///   in that order and before whatever this process asks for later. They are kept until they are
///   over: answered or refused. If the owner is gone before, they are sent again to the next one:
///   in the same order, before any other request of this process. Each is carried out once. Until a
///   change is over, this process reads what the change will make. A caller waits only for its
///   turn, and while there is no owner, 5 s at most; then changes stay in this process,
///   `mostWaiting` of them. If there has never been an owner, a change is refused, because nobody
///   knows then whether it is allowed (a forced key), or whether the key has that value already.
/// - **A process that asks a few things and ends** (`ClientManner.isBrief`) starts no thread: it
///   looks for an owner with its first request, and for the next one when it asks again. Nothing is
///   adopted. Without an owner the first such request waits 5 s, and all fail with the same
///   `.ownerGone`.
///
/// A copy of the process that fork(2) has made, and that has not called execve(2) yet, can read
/// what was read before and has not changed. Other look-ups, and changes, fail with EPERM there,
/// because the copy shares the connection with the process. (CFPreferences cannot be used in such a
/// copy either.)
///
/// Threads: any; the seeker looks for the next owner, a thread that ends when there is one.
/// Observers are called in the order of the changes, after look-ups go to the owner that made them.
/// Locks: `state`, under which nothing blocks; and the turn (`isSending`), which a thread has while
/// it posts a change or establishes an owner. Neither is held while an owner is asked or an
/// observer is called.
public final class StoreClient: PersistentPlaces, DurabilityService, ReportService {
  let state: Monitor<State>
  let search: OwnerSearch
  let log: @Sendable (LogLine) -> Void
  /// Whether there are posted changes that are not over; readers load it without a lock.
  let hasPosted = Atomic(false)
  private let observers = ObserverList()
  /// The number of this process and its successors.
  public var client: UInt64 { search.client }
  /// The present owner's gauge, unretained; 0 if nothing is fresh, because there has been no owner,
  /// or a new one is adopted.
  let gauge = Atomic<UInt>(0)
  public var isReadOnly: Bool { search.manner.isReadOnly }
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
    _ surroundings: Surroundings, _ manner: ClientManner, log: @escaping @Sendable (LogLine) -> Void
  ) throws(EngineError) {
    if !manner.isBrief { ForkedProcess.watch() }
    receiver = try EngineError.wrapping { () throws(SystemError) in
      manner.hasLoop ? try DescriptorSet() : nil
    }
    var manner = manner
    manner.hearsAll = manner.hearsAll || manner.client != nil
    search = OwnerSearch(surroundings, manner)
    self.log = log
    var initial = State(hasSeeker: !manner.isBrief, origins: Origins(client: search.client))
    initial.source = manner.via.map { ChangeSource($0) }
    state = Monitor(initial)
    if !manner.isBrief { try begin() }
  }

  /// Ends the connection. A process that has removed mounts first waits, a second at most, until an
  /// owner knows it.
  public func close() {
    if !state.withLock({ $0.departed.isEmpty }) { finishRequests() }
    state.change { $0.isClosing = true }
    // Before the connection is closed, because the seeker may be adopting another owner.
    _ = state.wait { $0.hasSeeker ? nil : true }
    readable?.close()
  }

  /// Returns when an owner has carried out what this process has asked for, or after a second: a
  /// request without intents is answered after what was sent before.
  private func finishRequests() {
    let deadline = Instant.now.advanced(milliseconds: 1000)
    let origin = state.withLock { $0.origins.next() }
    _ = try? apply([], by: Author.unique(), origin: origin, until: deadline)
  }

  /// Whether this process is connected to an owner at the moment.
  public var isConnected: Bool { owner != nil }

  // MARK: - A new owner

  /// Makes requests go to the owner; closes the connection and throws if that is not possible. Once
  /// look-ups go to the new owner, observers are notified of the differences from what this process
  /// knew, and then of the changes since.
  func adopt(
    _ owner: OwnerConnection, _ known: [Location: LocationSnapshot]
  ) throws(EngineError) {
    let version = owner.gauge.known
    // An observer looks up what has changed, so notices wait until look-ups go to this owner; nil:
    // they are passed on at once.
    let waiting = Mutex<[Notice]?>([])
    owner.observers.add(except: nil) { [weak self] notice in
      let waits = waiting.withLock { waiting in
        waiting?.append(notice)
        return waiting != nil
      }
      if !waits { self?.notify(notice) }
    }
    let (early, former) = state.withLock { ($0.mounts, $0.domains) }
    for (mount, names) in early { owner.link.send(.mount(mount, claims: Array(names))) }
    let (differences, present): (Differences, [Author: Set<Key>])
    do throws(EngineError) {
      var domains = former
      differences = try Differences(of: owner, from: known, domains: &domains, version: version)
      // What readers have cached is not fresh until they have been notified of the differences and
      // can read them from the new owner.
      gauge.store(0, ordering: .sequentiallyConsistent)
      present = try establish(owner, domains)
    } catch {
      owner.close()
      throw error
    }
    for (mount, names) in present {
      guard let told = early[mount] else {
        owner.link.send(.mount(mount, claims: Array(names)))
        continue
      }
      // Those of which the owner before was told.
      for name in told.subtracting(names) { _ = owner.post(.release(name, mount)) }
    }
    for mount in state.withLock({ $0.departed }) { owner.link.send(.unmount(mount)) }
    if differences.changeset.isEmpty {
      // Nothing that this process has cached is old; else the mounts settle for the differences.
      for mount in early.keys {
        for kind in Settlement.allCases { owner.link.send(.settle(kind, through: version, mount)) }
      }
    } else {
      notify(Notice(changeset: differences.changeset, events: differences.events, author: nil))
    }
    while let notice = waiting.withLock({ Self.removeNext(&$0) }) { notify(notice) }
    gauge.store(keep(owner.gauge), ordering: .releasing)
    if let receiver { owner.receiveNotices(by: receiver) }
    if owner.hasEnded { handleLostOwner() }
  }

  /// Removes the oldest notice that waits. If none does, none waits from here on.
  private static func removeNext(_ waiting: inout [Notice]?) -> Notice? {
    if waiting?.isEmpty == true { waiting = nil }
    return waiting?.removeFirst()
  }

  /// Keeps a gauge, and returns the pointer to it as a number.
  private func keep(_ gauge: Gauge) -> UInt {
    state.withLock { $0.gauges.append(gauge) }
    return UInt(bitPattern: Unmanaged.passUnretained(gauge).toOpaque())
  }

  // MARK: - Observers

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
}

// MARK: - Requests that a successor may repeat

extension StoreClient: RepeatableChanges {
  public func begin(request: UInt64) { state.withLock { $0.origins.begin(request: request) } }

  public func setDecisive(_ isDecisive: Bool) {
    state.withLock { $0.origins.setDecisive(isDecisive) }
  }

  public func setSource(_ source: ChangeSource) { state.withLock { $0.source = source } }

  public func endRequest() { state.withLock { $0.origins.endRequest() } }

  public func outcome(of request: UInt64) throws(EngineError) -> Changeset? {
    let origin = Origin(client: client, request: request, change: 0)
    // A request without intents changes nothing, unless it was carried out before.
    let known = try apply(
      [], by: Author.unique(), origin: origin, until: Patience.end)
    return known.isEmpty ? nil : known
  }
}
