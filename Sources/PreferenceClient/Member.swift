import PreferenceModel
import PropertyList
import Synchronization
import SystemCalls

/// The persistent places of a store over the whole life of a process, whichever process owns the
/// store meanwhile.
///
/// Promises: those of `StorePlaces`, and those of its parts: `Succession` (who the owner is) and
/// `PostQueue` (changes that are not waited for). While there is no owner, reads go on from what is
/// known; other reads and changes wait for the next owner, 5 s at most, then ETIMEDOUT. A change
/// whose answer did not come is asked for again, and carried out once. Observers are notified of
/// what changed between two owners as of other changes.
///
/// Threads: any. Locks: `state`, for a look; those of the parts. None is held while an owner is
/// asked or an observer is called. Observers are called in the order of the changes, from the moment
/// when look-ups go to the owner that made them.
public final class Member: StorePlaces {
  private struct State {
    var mounts: [Author] = []
    /// Which domains each place has, as far as this process has heard.
    var domains: [Place: Set<DomainName>] = [:]
    var lastSerial: UInt64 = 0
    /// The gauges of all owners so far. `gauge` points to one, and who reads it holds no lock.
    var gauges: [Gauge] = []

    /// Which domains there are after a change.
    mutating func noteDomains(_ notice: Notice) {
      for item in notice.changeset.items {
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
  private let client: UInt64
  /// The present owner's gauge, unretained; 0: this process is the owner.
  let gauge = Atomic<UInt>(0)
  public let isReadOnly: Bool

  /// Stands for a gauge: nothing is fresh.
  static let staleGauge: UInt = 1

  /// Finds an owner, or becomes one. Throws after 5 s: `.owned` (the owner is stopped, or speaks
  /// another version), or what was in the way.
  public init(
    _ surroundings: Surroundings, readOnly: Bool = false, _ ways: Ways,
    log: @escaping @Sendable (String) -> Void
  ) throws(EngineError) {
    isReadOnly = readOnly
    let search = OwnerSearch(surroundings, isBrief: false, start: ways.start)
    client = search.client
    succession = Succession(search, ways, readOnly: readOnly, log: log)
    queue = PostQueue(succession, client: search.client, log: log)
    try succession.begin { [weak self] role, known throws(EngineError) in
      guard let self else { return role.close() }
      try adopt(role, known)
    }
  }

  /// Gives the store up: an owner saves everything first.
  public func close() {
    queue.close()
    succession.close()
  }

  /// What this process is to the store now.
  public var role: Role { succession.role }

  // MARK: - A new role

  /// Has requests go to the role, which is closed if that cannot be done. Observers are notified of
  /// what is different from what this process knew, and then of what changes, from the moment when
  /// look-ups go to the new owner.
  private func adopt(_ role: Role, _ known: [Location: DomainSnapshot]) throws(EngineError) {
    guard let places = role.places else { return }
    let relay = Relay()
    places.observe(except: nil) { notice in relay.put(notice) }
    let early = state.withLock { $0.mounts }
    for mount in early { places.addMount(mount) }
    let (differences, late) = try closing(role) { () throws(EngineError) in
      var domains = state.withLock { $0.domains }
      let differences = try Differences(of: places, from: known, domains: &domains)
      // What readers keep is good again once they have heard of the differences, which they read
      // from the new owner.
      gauge.store(Self.staleGauge, ordering: .sequentiallyConsistent)
      let mounts = try queue.sendUnanswered(to: places) { epoch in
        succession.establish(role, epoch: epoch)
        return state.withLock { state in
          state.domains = domains
          return state.mounts
        }
      }
      return (differences, mounts.dropFirst(early.count))
    }
    for mount in late { places.addMount(mount) }
    if !differences.changeset.isEmpty {
      notify(Notice(changeset: differences.changeset, events: differences.events, author: nil))
    }
    relay.open { [weak self] notice in self?.notify(notice) }
    gauge.store(keepGauge(of: role), ordering: .releasing)
    succession.noteServing(role)
  }

  private func closing<Result>(
    _ role: Role, _ body: () throws(EngineError) -> Result
  ) throws(EngineError) -> Result {
    do throws(EngineError) {
      return try body()
    } catch {
      role.close()
      throw error
    }
  }

  private func keepGauge(of role: Role) -> UInt {
    guard case .client(let remote) = role else { return 0 }
    state.withLock { $0.gauges.append(remote.gauge) }
    return UInt(bitPattern: Unmanaged.passUnretained(remote.gauge).toOpaque())
  }

  // MARK: - Observers and mounts

  public func observe(
    except author: Author?, _ observer: @escaping @Sendable (Notice) -> Void
  ) {
    observers.add(except: author, observer)
  }

  private func notify(_ notice: Notice) {
    state.withLock { $0.noteDomains(notice) }
    observers.notify(notice)
  }

  public func addMount(_ author: Author) {
    state.withLock { $0.mounts.append(author) }
    succession.role.places?.addMount(author)
  }

  /// A number for a change that this process asks for.
  func nextOrigin() -> Origin {
    state.withLock { state in
      state.lastSerial += 1
      return Origin(client: client, serial: state.lastSerial)
    }
  }
}
