import PreferenceModel
import PreferenceProtocol
import PropertyList
import Synchronization
import SystemCalls

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
      let end = deadline ?? Instant.now.advanced(milliseconds: patience)
      deadline = end
      let isOther = state.wait(until: end) { $0.epoch != epoch || $0.isClosing ? true : nil }
      guard isOther == true, !state.withLock({ $0.isClosing }) else {
        state.withLock { $0.isMissing = $0.role.places == nil }
        throw Self.ownerless
      }
    }
  }

  /// Milliseconds that one who asks waits for the next owner.
  var patience: Int64 {
    state.withLock { $0.isMissing } ? RemotePlaces.readPatience : RemotePlaces.patience
  }

  static let ownerless = EngineError(
    .system(.timedOut), "the owner of the store is gone, and there is no other")

  public var isFresh: Bool {
    let bits = gauge.load(ordering: .acquiring)
    guard bits != Self.staleGauge else { return false }
    let pointer = UnsafeRawPointer(bitPattern: bits)
    guard let pointer else { return true }
    // Gauges stay as long as this object: no reference is counted.
    return Unmanaged<Gauge>.fromOpaque(pointer)._withUnsafeGuaranteedRef { $0.isFresh }
  }

  public func find(_ key: Key, at location: Location) throws(EngineError) -> StoredValue? {
    if let change = try posted(key, at: location) { return change.value }
    return try stored(key, at: location)
  }

  /// What the owner has.
  func stored(_ key: Key, at location: Location) throws(EngineError) -> StoredValue? {
    try ask { places throws(EngineError) in try places.find(key, at: location) }
  }

  public func keys(at location: Location) throws(EngineError) -> [Key] {
    // First: what is answered meanwhile is among the owner's keys.
    let changes = state.withLock { $0.posted.changes[location.domain] }
    let known = try ask { places throws(EngineError) in try places.keys(at: location) }
    return try changes.map { changes throws(EngineError) in
      try keys(known, at: location, with: changes)
    } ?? known
  }

  public func isLoaded(_ location: Location) -> Bool {
    switch role {
    case .owner(let owned): owned.places.isLoaded(location)
    case .client(let remote): remote.isLoaded(location)
    case .seeking(let remote): remote?.isLoaded(location) ?? false
    }
  }

  public func snapshots(of locations: [Location]) throws(EngineError) -> [DomainSnapshot] {
    try ask { places throws(EngineError) in try places.snapshots(of: locations) }
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

  public func save(_ location: Location) throws(EngineError) {
    try ask { places throws(EngineError) in try places.save(location) }
  }

  public func awaitMounts(through version: UInt64) throws(EngineError) {
    try ask { places throws(EngineError) in try places.awaitMounts(through: version) }
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
