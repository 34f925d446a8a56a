import PreferenceModel
import PreferenceProtocol
import PropertyList
import StoreAccess
import Synchronization
import SystemCalls

/// The persistent places of a store for a process that asks a few things and ends (`defaults`).
///
/// It starts no thread, and connects with its first request: a look-up of a key, or a change, is
/// one round trip then. It asks the owner for each key, and copies a location only when it is asked
/// for all keys of it. A change returns when every mount shows it. It starts an owner (`prefsd`) if
/// there is none. When the owner is gone, a request finds the next one and asks that; a change is
/// carried out once. Observers are never called.
///
/// Where no owner can be had, every later request fails at once with the same error, `.ownerGone`:
/// callers pass over a list that cannot be read, but not over this.
///
/// Threads: any. One lock, under which nothing blocks.
public final class BriefClient: PersistentPlaces, DurabilityService, ReportService {
  private struct State {
    var places: RemotePlaces?
    /// Why no owner could be had.
    var failure: EngineError?
  }

  private let search: OwnerSearch
  private let via: ChangeSource.Via?
  private let state = Mutex(State())
  private let lastSerial = Atomic<UInt64>(0)

  public var isReadOnly: Bool { false }
  public var isFresh: Bool { false }

  /// Connects to nothing yet: the first request waits 5 s at most for an owner, and throws what
  /// `Member.init` throws.
  /// - Parameter via: the way of this process's changes, for the history; nil: the owner tells it
  ///   by the program's name.
  public init(_ surroundings: Surroundings, via: ChangeSource.Via? = nil) {
    self.via = via
    search = OwnerSearch(surroundings, isBrief: true, startsThreads: false) {
      () throws(EngineError) in
      try OwnerProgram.start(surroundings)
    }
  }

  /// Returns the places of an owner that is there, and connects to the next one if the last is
  /// gone.
  private func connected(
    until deadline: Instant, _ first: Request?
  ) throws(EngineError) -> RemotePlaces {
    let (known, failure) = state.withLock { ($0.places, $0.failure) }
    if let failure { throw failure }
    if let known, !known.hasEnded { return known }
    do throws(EngineError) {
      let found = try search.find(until: deadline) { () throws(EngineError) in
        guard let found = try search.connect(first: first, ended: {}) else {
          throw search.unanswered
        }
        return found
      }
      search.noteFound()
      state.withLock { $0.places = found }
      known?.close()
      return found
    } catch {
      let failure = EngineError(.ownerGone, error.sentence)
      state.withLock { $0.failure = failure }
      throw failure
    }
  }

  /// Asks the owner, and if it is gone the next one, until the deadline (nil: for 5 s).
  /// - Parameter first: the request that the body makes first, if it is known.
  private func ask<Result>(
    until end: Instant? = nil, first: Request? = nil,
    _ body: (RemotePlaces) throws(EngineError) -> Result
  ) throws(EngineError) -> Result {
    let deadline = end ?? Instant.now.advanced(milliseconds: RemotePlaces.patience)
    while true {
      let places = try connected(until: deadline, first)
      do {
        return try body(places)
      } catch  where error.reason == .ownerGone && Instant.now < deadline {
        places.close()
        state.withLock { if $0.places === places { $0.places = nil } }
      }
    }
  }

  public func find(_ key: Key, at location: Location) throws(EngineError) -> StoredValue? {
    try findFirst(key, in: [location])?.stored
  }

  public func findFirst(
    _ key: Key, in locations: [Location]
  ) throws(EngineError) -> LocatedValue? {
    try ask(first: .find(key, locations)) { places throws(EngineError) in
      try places.findFirst(key, in: locations)
    }
  }

  public func keys(at location: Location) throws(EngineError) -> [Key] {
    try ask { places throws(EngineError) in try places.keys(at: location) }
  }

  public func isLoaded(_ location: Location) -> Bool {
    state.withLock { $0.places }?.isLoaded(location) ?? false
  }

  public func snapshots(of locations: [Location]) throws(EngineError) -> [LocationSnapshot] {
    try ask { places throws(EngineError) in try places.snapshots(of: locations) }
  }

  public func report(_ report: OwnerReport) throws(EngineError) -> Value {
    try ask { places throws(EngineError) in try places.report(report) }
  }

  public func modified(_ location: Location) throws(EngineError) -> Timestamp? {
    try ask { places throws(EngineError) in try places.modified(location) }
  }

  public func domains(in place: Place) throws(EngineError) -> Set<DomainName> {
    try ask { places throws(EngineError) in try places.domains(in: place) }
  }

  public func apply(_ intents: [Intent], by author: Author) throws(EngineError) -> Changeset {
    let serial = lastSerial.add(1, ordering: .relaxed).newValue
    let origin = Origin(client: search.client, serial: serial)
    let deadline = Instant.now.advanced(milliseconds: RemotePlaces.patience)
    let request = Request.apply(
      serial: origin.serial, author, deadline: deadline, .whenSettled, intents,
      via.map { ChangeSource($0) })
    // An owner that only reads would end.
    let first = search.surroundings.stateObstacle == nil ? request : nil
    return try ask(until: deadline, first: first) { places throws(EngineError) in
      try places.apply(request, serial: serial, until: deadline)
    }
  }

  public func observe(
    except author: Author?, _ observer: @escaping @Sendable (Notice) -> Void
  ) {}

  public func makeDurable() throws(EngineError) {
    try ask { places throws(EngineError) in try places.makeDurable() }
  }

  public func synchronize() throws(EngineError) {
    try ask { places throws(EngineError) in try places.synchronize() }
  }

  public func save(_ location: Location) throws(EngineError) {
    try ask { places throws(EngineError) in try places.save(location) }
  }
}
