import PropertyList
import SystemCalls

/// Reads the persistent places of a store.
public protocol StoredPlaces {
  /// A key's value in one place.
  func find(_ key: Key, at location: Location) throws(EngineError) -> StoredValue?

  /// A key's value in the first of the locations that has it. Cost: at most one question to the
  /// owner, however many locations there are.
  func findFirst(
    _ key: Key, in locations: [Location]
  ) throws(EngineError) -> LocatedValue?

  /// The keys of a domain in one place, in no order.
  func keys(at location: Location) throws(EngineError) -> [Key]

  /// A number that the location's keys do not exceed. Cost: O(1) in a client that has the location
  /// in memory, else that of `keys`.
  func mostKeys(at location: Location) throws(EngineError) -> Int

  /// Reads the location into memory, if it is not there yet, so that changes of its list are
  /// noticed. Throws where `find` does. Cost: the first time O(its size).
  func load(_ location: Location) throws(EngineError)

  /// Whether the place has the domain.
  func exists(_ location: Location) throws(EngineError) -> Bool

  /// Whether the domain was made there without keys, so that it stays when its last key goes. False
  /// in a process that does not own the store: only the owner carries out changes.
  func isMade(_ location: Location) throws(EngineError) -> Bool

  /// Whether the settings of the cloud say that the key belongs there, whether or not it has a
  /// value. False in a process that does not own the store: only the owner carries out changes.
  func belongsInCloud(_ key: Key, of domain: DomainName) -> Bool

  /// Whether the user removed the key from the cloud a moment ago: if it is made again, it belongs
  /// there. False in a process that does not own the store.
  func hasLeftCloud(_ key: Key, of domain: DomainName) -> Bool

  /// The domains that the administrator has locked. Throws where a list that may say so cannot be
  /// read. Cost: as of `findFirst`.
  func domainLocks() throws(EngineError) -> DomainLocks
}

extension StoredPlaces {
  public func load(_ location: Location) throws(EngineError) { _ = try keys(at: location) }

  public func mostKeys(at location: Location) throws(EngineError) -> Int {
    try keys(at: location).count
  }

  public func findFirst(
    _ key: Key, in locations: [Location]
  ) throws(EngineError) -> LocatedValue? {
    try findInTurn(key, in: locations)
  }

  /// Finds the key in the first of these locations that has it, with a `find` for each.
  public func findInTurn(
    _ key: Key, in locations: [Location]
  ) throws(EngineError) -> LocatedValue? {
    for location in locations {
      if let stored = try find(key, at: location) { return LocatedValue(stored, location) }
    }
    return nil
  }

  /// The keys of a location, in order, with their values. Cost: O(keys).
  package func values(at location: Location) throws(EngineError) -> ValueDictionary {
    var values: ValueDictionary = [:]
    for key in try keys(at: location).sorted() {
      values[key] = try find(key, at: location)?.value
    }
    return values
  }

  public func isMade(_ location: Location) throws(EngineError) -> Bool { false }
  public func belongsInCloud(_ key: Key, of domain: DomainName) -> Bool { false }
  public func hasLeftCloud(_ key: Key, of domain: DomainName) -> Bool { false }

  public func domainLocks() throws(EngineError) -> DomainLocks {
    DomainLocks(try findFirst(DomainLocks.key, in: DomainLocks.locations)?.stored.value)
  }
}

/// The persistent places of one store. `prefsd` owns the store (`LocalPlaces`); other processes ask
/// it (`StoreClient`). What these calls return is no older than any change whose `apply` had
/// returned, in any process, when they were called.
public protocol PersistentPlaces: ChangeService, StoredPlaces {
  /// Applies the intents without waiting for the answer. What they change is read here at once. The
  /// request has left this process when the call returns, so it is carried out even if this process
  /// ends. The call waits only while there is no owner, or the owner receives nothing, for 5 s at
  /// most.
  ///
  /// `done` is called once, by any thread, when the request is over: with the error if it was refused
  /// (then it is as if it had never been made), else with nil.
  func post(
    _ intents: [Intent], by author: Author, done: @escaping @Sendable (EngineError?) -> Void)

  /// Whether the contents of the location are in memory, so that a look-up waits for no disk and
  /// for no other process.
  func isLoaded(_ location: Location) -> Bool

  /// Whether `isLoaded` holds for the domain in each of the places.
  func isLoaded(_ domain: DomainName, in places: [Place]) -> Bool

  /// Whether a change of the location waits for no disk. Always, in a process that does not own the
  /// store.
  func isPrepared(_ location: Location) -> Bool

  /// Does what a change of the location would wait for a disk for. Waits for it.
  func prepare(_ location: Location)

  /// The locations as they are at one moment: they contain all of a transaction, or nothing of it.
  func snapshots(of locations: [Location]) throws(EngineError) -> [LocationSnapshot]

  /// Whether the observers here have been notified of every change whose `apply` had returned, in
  /// any process. Cost: a few loads.
  var isFresh: Bool { get }

  /// When the domain last changed in that place; nil where the place does not have it.
  func modified(_ location: Location) throws(EngineError) -> Timestamp?

  /// The domains that the place has.
  func domains(in place: Place) throws(EngineError) -> Set<DomainName>

  /// Reads lists into memory. Waits for disks. Cost: in a client, one question to the owner.
  /// - Returns: what is known of the locations that are not in memory. One that is not named has no
  ///   list.
  func loadLists(_ load: ListLoad) -> [Location: ListFinding]

  /// Does what `loadLists` does, without waiting; any thread then calls the body with what that
  /// returns.
  /// - Parameters:
  ///   - threads: where it is done, if the places must wait.
  ///   - begun: is called once the lists themselves are waited for, not other ones before them.
  /// - Returns: whether the body will be called; false where too much waits for these threads.
  func loadLists(
    _ load: ListLoad, on threads: BlockingThreads, begun: @escaping @Sendable () -> Void,
    then body: @escaping @Sendable ([Location: ListFinding]) -> Void
  ) -> Bool

  /// Carries out those of many loads that find nothing, and are to keep that. Waits for disks.
  /// Cost: a listing of each place's directory, and a check of each that a change would write to.
  /// - Returns: the indices of the others, which are still to be carried out.
  func loadAbsent(_ loads: [ListLoad]) -> [Int]
}

/// What is known of a list that is not in memory.
public struct ListFinding: Sendable {
  /// When the list last changed; nil where there is no list, or it does not answer.
  public var modified: Timestamp?
  /// Why the list could not be read; nil where there is no list.
  public var error: EngineError?

  /// Creates what is known of a list.
  public init(modified: Timestamp? = nil, error: EngineError? = nil) {
    (self.modified, self.error) = (modified, error)
  }
}

/// The lists that a look-up needs.
public struct ListLoad: Equatable, Sendable {
  /// The locations that are asked for the key.
  public var locations: [Location]
  /// The locations that a change which follows may change: it is checked whether it can, so that
  /// the change waits for no disk.
  public var changing: [Location]
  /// Whether absent lists are kept in memory as such although none of the locations has a list. If
  /// not, nothing is kept then.
  public var evenIfAbsent: Bool

  /// Asks for lists.
  public init(_ locations: [Location], changing: [Location] = [], evenIfAbsent: Bool) {
    (self.locations, self.changing) = (locations, changing)
    self.evenIfAbsent = evenIfAbsent
  }
}

/// Numbers the changes of a process so that its successor can repeat one whose outcome it does not
/// know: an owner carries the change out once.
///
/// Threads: the one that makes the changes.
public protocol RepeatableChanges: AnyObject, Sendable {
  /// The random number that identifies this process and its successors.
  var client: UInt64 { get }

  /// Begins a request of the kernel, which the changes that follow are made for.
  func begin(request: UInt64)

  /// Says whether the change that comes next is the one that the request asks for. The changes that
  /// follow it are others.
  func setDecisive(_ isDecisive: Bool)

  /// Notes who has made the request of the kernel that the changes which follow are made for, for
  /// the history.
  func setSource(_ source: ChangeSource)

  /// Ends the present request. A successor will not repeat its changes.
  func endRequest()

  /// Returns what the change that the request asks for has changed, if it was carried out; nil if
  /// it was not, or it changed nothing. Waits for the owner as a change does.
  func outcome(of request: UInt64) throws(EngineError) -> Changeset?
}

extension PersistentPlaces {
  /// Has one of the threads read the lists.
  public func loadLists(
    _ load: ListLoad, on threads: BlockingThreads, begun: @escaping @Sendable () -> Void,
    then body: @escaping @Sendable ([Location: ListFinding]) -> Void
  ) -> Bool {
    threads.run {
      begun()
      body(self.loadLists(load))
    }
  }

  /// Leaves all of them to be carried out one by one.
  public func loadAbsent(_ loads: [ListLoad]) -> [Int] { Array(loads.indices) }

  public func loadLists(_ load: ListLoad) -> [Location: ListFinding] {
    for location in load.changing { prepare(location) }
    var findings: [Location: ListFinding] = [:]
    for location in load.locations { findings[location] = read(location) }
    return findings
  }

  /// Reads a list into memory, and returns what is known of it.
  public func read(_ location: Location) -> ListFinding {
    var finding = ListFinding()
    do throws(EngineError) { try load(location) } catch { finding.error = error }
    // A list that cannot be read is there.
    do throws(EngineError) {
      finding.modified = try modified(location)
    } catch {
      finding.error = error
    }
    return finding
  }

  /// A place has a domain that has a time of change there.
  public func exists(_ location: Location) throws(EngineError) -> Bool {
    try modified(location) != nil
  }

  public func isPrepared(_ location: Location) -> Bool { true }
  public func prepare(_ location: Location) {}

  /// Asks for each place.
  public func isLoaded(_ domain: DomainName, in places: [Place]) -> Bool {
    places.allSatisfy { isLoaded(Location($0, domain)) }
  }

  /// Calls `apply`, for places where a change needs no message.
  public func post(
    _ intents: [Intent], by author: Author, done: @escaping @Sendable (EngineError?) -> Void
  ) {
    do {
      _ = try apply(intents, by: author)
    } catch {
      return done(error)
    }
    done(nil)
  }
}

extension StoredPlaces {
  /// Whether a persistent place has the domain. The global domain always exists.
  public func hasDomain(_ domain: DomainName) throws(EngineError) -> Bool {
    if domain == .global { return true }
    for place in SearchList.persistentPlaces
    where try exists(Location(place, domain)) { return true }
    return false
  }
}
