import PreferenceModel
import PreferenceProtocol
import PropertyList
import Synchronization
import SystemCalls

/// The persistent places of a store over the whole life of a process, whoever owns the store
/// meanwhile: this process, or another, or nobody for a moment.
///
/// Promises: those of `PersistentPlaces`. When the owner is gone, however it went, this process
/// becomes the owner where it can, else connects to the next one, which it may start. Reads go on
/// meanwhile from what is known; what is not, and changes, wait, at most 5 s, then ETIMEDOUT. A
/// change whose answer did not come is asked for again, and carried out once. An owner that is
/// stopped is not replaced. What changed between two owners is told to observers as changes are.
///
/// Threads: any; the seeker's looks for the next owner. Locks: the monitor, under which nothing
/// blocks; a relay's, for one look. Observers are called in the order of the changes, from the moment
/// when what they look up comes from the owner who told them.
///
/// Half-broken states: no owner and nobody who can be one, only a client's thing: every look-up
/// that needs one fails with ETIMEDOUT, and the seeker goes on.
public final class Member: PersistentPlaces {
  /// What a process is to its store.
  public enum Role: Sendable {
    /// It owns the store.
    case owner(Owned)
    /// It asks the owner.
    case client(RemotePlaces)
    /// It looks for an owner; what it knew of the store until then.
    case seeking(RemotePlaces?)
  }

  /// A store that this process owns, as its opener gives it.
  public struct Owned: Sendable {
    let places: any PersistentPlaces
    let loaded: @Sendable () -> [Location: DomainSnapshot]
    let close: @Sendable () -> Void

    /// The places, what was asked for of them, and how they are given up.
    public init(
      places: any PersistentPlaces, loaded: @escaping @Sendable () -> [Location: DomainSnapshot],
      close: @escaping @Sendable () -> Void
    ) {
      (self.places, self.loaded, self.close) = (places, loaded, close)
    }
  }

  /// How a process comes to an owner.
  public struct Ways: Sendable {
    /// Becomes the owner; nil: it never does. Throws `.owned` where another process is.
    public var own: (@Sendable () throws(EngineError) -> Owned)?
    /// Starts one; nil: somebody else does.
    public var start: (@Sendable () throws(SystemError) -> Void)?

    /// The ways that there are.
    public init(
      own: (@Sendable () throws(EngineError) -> Owned)? = nil,
      start: (@Sendable () throws(SystemError) -> Void)? = nil
    ) {
      (self.own, self.start) = (own, start)
    }
  }

  struct Observer: Sendable {
    var author: Author?
    var tell: @Sendable (Notice) -> Void
  }

  struct State {
    var role: Role
    /// Counts roles.
    var epoch = 0
    var observers: [Observer] = []
    var mounts: [Author] = []
    var domains: [Place: Set<DomainName>] = [:]
    var lastSerial: UInt64 = 0
    /// Those of all owners so far: `gauge` points to one, and who looks at it holds no lock.
    var gauges: [Gauge] = []
    /// Before then no owner is started.
    var nextStart = Instant.now
    var startPause: Int64 = 0
    /// What was logged last.
    var lastFailure: EngineError?
    var isClosing = false
  }

  let state: Monitor<State>
  /// The present owner's gauge, unretained; 0: this process is the owner.
  let gauge = Atomic<UInt>(0)
  let surroundings: Surroundings
  let ways: Ways
  let client = UInt64.random(in: 1 ... .max)
  let log: @Sendable (String) -> Void
  let seeker: Seeker
  public let isReadOnly: Bool

  /// Comes to an owner, or becomes one: within 5 s, else throws `.owned` (the owner is stopped, or is
  /// no program of this version) or what was in the way.
  public init(
    _ surroundings: Surroundings, readOnly: Bool = false, _ ways: Ways,
    log: @escaping @Sendable (String) -> Void
  ) throws(EngineError) {
    (self.surroundings, self.ways, self.log) = (surroundings, ways, log)
    isReadOnly = readOnly
    seeker = Seeker()
    state = Monitor(State(role: .seeking(nil)))
    try begin(until: Instant.now.advanced(milliseconds: RemotePlaces.patience))
    try EngineError.wrapping { () throws(SystemError) in
      try seeker.start { [weak self] in self?.seek() }
    }
  }

  /// Gives the store up: an owner saves everything first.
  public func close() {
    state.change { $0.isClosing = true }
    // It may be about to take a role.
    seeker.stop()
    role.close()
  }

  /// What this process is to the store now.
  public var role: Role { state.withLock { $0.role } }
}

// MARK: - Asking whoever there is

extension Member {
  private var present: (places: (any PersistentPlaces)?, epoch: Int) {
    state.withLock { state in
      switch state.role {
      case .owner(let owned): (owned.places, state.epoch)
      case .client(let remote): (remote, state.epoch)
      case .seeking(let remote): (remote, state.epoch)
      }
    }
  }

  /// Asks the places, and the next ones where these have lost their owner.
  private func ask<Result>(
    until deadline: Instant? = nil,
    _ body: (any PersistentPlaces) throws(EngineError) -> Result
  ) throws(EngineError) -> Result {
    var deadline = deadline
    while true {
      let (places, epoch) = present
      do {
        if let places { return try body(places) }
      } catch  where error.reason == .ownerGone {}
      let end = deadline ?? Instant.now.advanced(milliseconds: RemotePlaces.patience)
      deadline = end
      let isOther = state.wait(until: end) { $0.epoch != epoch || $0.isClosing ? true : nil }
      guard isOther == true, !state.withLock({ $0.isClosing }) else {
        throw EngineError(
          .system(.timedOut), "the owner of the store is gone, and there is no other")
      }
    }
  }

  public var isFresh: Bool {
    let bits = gauge.load(ordering: .acquiring)
    guard bits != Self.staleGauge else { return false }
    let pointer = UnsafeRawPointer(bitPattern: bits)
    guard let pointer else { return true }
    // Gauges stay as long as this object: no reference is counted.
    return Unmanaged<Gauge>.fromOpaque(pointer)._withUnsafeGuaranteedRef { $0.isFresh }
  }

  public func find(_ key: Key, at location: Location) throws(EngineError) -> StoredValue? {
    try ask { places throws(EngineError) in try places.find(key, at: location) }
  }

  public func keys(at location: Location) throws(EngineError) -> [Key] {
    try ask { places throws(EngineError) in try places.keys(at: location) }
  }

  public func exists(_ location: Location) throws(EngineError) -> Bool {
    try ask { places throws(EngineError) in try places.exists(location) }
  }

  public func modified(_ location: Location) throws(EngineError) -> Timestamp? {
    try ask { places throws(EngineError) in try places.modified(location) }
  }

  public func domains(in place: Place) throws(EngineError) -> Set<DomainName> {
    try ask { places throws(EngineError) in try places.domains(in: place) }
  }

  public func makeDurable() throws(EngineError) {
    try ask { places throws(EngineError) in try places.makeDurable() }
  }

  public func synchronize() throws(EngineError) {
    try ask { places throws(EngineError) in try places.synchronize() }
  }

  /// Asked by drivers for each change: the gauge says who the owner is.
  public var isShared: Bool {
    gauge.load(ordering: .relaxed) != 0 || present.places?.isShared == true
  }

  public func isAnswering(within milliseconds: Int64) -> Bool {
    let places = state.wait(until: Instant.now.advanced(milliseconds: milliseconds)) {
      $0.role.places
    }
    return places?.isAnswering(within: milliseconds) ?? false
  }

  public func space() -> StoreSpace { StoreSpace(ofVolume: surroundings.userDirectory) }

  public func apply(_ intents: [Intent], by author: Author) throws(EngineError) -> Changeset {
    if isReadOnly { throw EngineError(.readOnly, "mounted with -o ro") }
    let serial = state.withLock { state in
      state.lastSerial += 1
      return state.lastSerial
    }
    let deadline = Instant.now.advanced(milliseconds: RemotePlaces.patience)
    let origin = Origin(client: client, serial: serial)
    return try ask(until: deadline) { places throws(EngineError) in
      try places.apply(intents, by: author, origin: origin, until: deadline)
    }
  }

  public func apply(
    _ intents: [Intent], by author: Author, origin: Origin, until deadline: Instant
  ) throws(EngineError) -> Changeset {
    try ask(until: deadline) { places throws(EngineError) in
      try places.apply(intents, by: author, origin: origin, until: deadline)
    }
  }
}

// MARK: - Observers and mounts

extension Member {
  public func observe(
    except author: Author?, _ observer: @escaping @Sendable (Notice) -> Void
  ) {
    state.withLock { $0.observers.append(Observer(author: author, tell: observer)) }
  }

  /// Tells observers of a change.
  func tell(_ notice: Notice) {
    let observers = state.withLock { state in
      state.noteDomains(notice)
      return state.observers
    }
    let author = notice.author
    for observer in observers where author == nil || observer.author != author {
      observer.tell(notice)
    }
  }

  public func addMount(_ author: Author) {
    let places = state.withLock { state in
      state.mounts.append(author)
      return state.role.places
    }
    places?.addMount(author)
  }

  public func settle(
    _ settlement: Settlement, through version: UInt64, by author: Author
  ) {
    present.places?.settle(settlement, through: version, by: author)
  }

  public func whenSettled(
    _ settlement: Settlement, through version: UInt64, except author: Author,
    _ body: @escaping @Sendable () -> Void
  ) {
    guard let places = present.places else { return body() }
    places.whenSettled(settlement, through: version, except: author, body)
  }
}

extension Member.Role {
  /// The places of an owner that is there.
  var places: (any PersistentPlaces)? {
    switch self {
    case .owner(let owned): owned.places
    case .client(let remote): remote
    case .seeking: nil
    }
  }

  /// Gives it up.
  func close() {
    switch self {
    case .owner(let owned): owned.close()
    case .client(let remote): remote.close()
    case .seeking(let remote): remote?.close()
    }
  }

  /// What is known of the store.
  var loaded: [Location: DomainSnapshot] {
    switch self {
    case .owner(let owned): owned.loaded()
    case .client(let remote): remote.loaded
    case .seeking(let remote): remote?.loaded ?? [:]
    }
  }
}

extension Member.State {
  /// Which domains there are after a change.
  fileprivate mutating func noteDomains(_ notice: Notice) {
    for item in notice.changeset.items {
      let (place, domain) = (item.location.place, item.location.domain)
      switch item.edit {
      case .set, .createDomain: domains[place]?.insert(domain)
      case .removeDomain: domains[place]?.remove(domain)
      case .remove, .describe: break
      }
    }
  }
}
