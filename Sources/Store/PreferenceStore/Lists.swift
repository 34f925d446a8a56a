import PreferenceModel
import PreferenceSchemas
import PropertyList
import StoreAccess
import Synchronization
import SystemCalls

/// The property lists of one store as readers see them: with the changes that only the journal has,
/// and with what configuration profiles and fragments set.
///
/// Promises: a list is read when it is first asked for, and again only where another program may
/// have changed it (`refresh`). What `find`, `findFirst` and the versioned snapshots return is the
/// state of one moment.
///
/// Threads: any thread may call; `refresh` and `refreshAdditions` belong to the writer's thread.
///
/// Locks: `state` guards what is known of lists and journal. No list is read or written under it.
/// `readingAdditions` is held while profiles and fragments are read for the first time, which may
/// wait for a disk, and for no other process; `state` and `placeInDoubt` are taken inside of it,
/// each for a moment.
public final class Lists: Sendable {
  /// Where lists, journal and lock lie.
  let layout: StoreLayout
  /// Whether every change is refused. Such a store takes no lock and writes neither journal nor
  /// state.
  let isReadOnly: Bool
  /// Reads configuration profiles; nil if there are none.
  let profiles: (any ProfileReading)?
  let fragments: FragmentReader
  /// The schemas of domains that have no list of their own.
  let machineSchemas: MachineSchemas
  /// Held while the additions of a place are read for the first time.
  let readingAdditions = Mutex(())
  /// Called with a managed place that is new, or whose additions may be different ones.
  let placeInDoubt = Mutex<(@Sendable (Place) -> Void)?>(nil)
  let state: Mutex<StoreState>
  /// The number of the last change, the state's own.
  let changeNumber: ChangeNumber
  /// The lists as they were last read or written; nil if there is no history.
  let seen: SeenLists?
  let log: @Sendable (LogLine) -> Void
  /// Whether the user's directory of lists was there at any look, or its file system is to be mounted.
  let hasHome: Atomic<Bool>
  /// Nanoseconds that lists and additions took to read.
  private let reading = Atomic<Int64>(0)
  private let readsUnderWay = Atomic<Int>(0)

  /// - Parameters:
  ///   - state: what a replay of the journal has left.
  ///   - profiles, awaitsHome: see `Store.init`.
  init(
    _ layout: StoreLayout, _ state: consuming sending StoreState, profiles: (any ProfileReading)?,
    seen: SeenLists?, isReadOnly: Bool, awaitsHome: Bool, log: @escaping @Sendable (LogLine) -> Void
  ) {
    (self.layout, self.profiles, self.seen) = (layout, profiles, seen)
    (self.isReadOnly, self.log) = (isReadOnly, log)
    hasHome = Atomic(awaitsHome || Files.isDirectory(layout.userDirectory))
    fragments = FragmentReader(layout)
    machineSchemas = MachineSchemas(
      layout.settingsDirectories, bundles: layout.schemaDirectories, log: log)
    changeNumber = state.changeNumber
    self.state = Mutex(state)
  }

  /// Notes that something begins to be read that another owner would have to read again.
  /// - Returns: the time for `endReading`.
  func beginReading() -> Instant {
    readsUnderWay.wrappingAdd(1, ordering: .relaxed)
    return .now
  }

  /// Ends what `beginReading` has begun.
  func endReading(since start: Instant) {
    reading.wrappingAdd(max(0, Instant.now.nanoseconds(after: start)), ordering: .relaxed)
    readsUnderWay.wrappingSubtract(1, ordering: .relaxed)
  }

  /// About how many nanoseconds it would take another owner to read what this one has, or is
  /// reading.
  var readingTime: Int64 {
    readsUnderWay.load(ordering: .relaxed) > 0 ? .max : reading.load(ordering: .relaxed)
  }

  /// A key's value, text and modification time in one location: from a fragment, its list, or a
  /// profile, in this order. Cost: a few hash look-ups; the first use of the location reads its list
  /// and additions.
  public func find(
    _ key: Key, at location: Location
  ) throws(EngineError) -> StoredValue? {
    while true {
      let found = try state.withLock { state throws(EngineError) in
        let additions = state.additions
        return try state.domains.read(location) { list throws(EngineError) in
          try additions.find(key, location, list)
        }
      }
      if let found { return found }
      try load(location)
    }
  }

  /// A key's value in the first of the locations that has it, as they are at one moment. Cost: a
  /// hash look-up in each list that is not empty, a hash for each run of locations of one domain, and
  /// one for each place that has additions; the first use of a location reads its list and additions.
  public func findFirst(
    _ key: Key, in locations: [Location]
  ) throws(EngineError) -> LocatedValue? {
    while true {
      let finding = try state.withLock { state throws(EngineError) in
        let additions = state.additions
        return try state.domains.findFirst(in: locations) { location, list throws(EngineError) in
          try additions.find(key, location, list)
        }
      }
      switch finding {
      case .found(let stored, let location): return LocatedValue(stored, location)
      case .nothing: return nil
      case .unknown(let location): try load(location)
      }
    }
  }

  /// Whether the domain has the key in one of the places, as far as their lists are in memory and
  /// could be read. Cost: as `findFirst`; no list is read.
  public func holds(_ key: Key, of domain: DomainName, in places: ArraySlice<Place>) -> Bool {
    state.withLock { state in
      let (domains, additions) = (state.domains, state.additions)
      return places.contains { place in
        let location = Location(place, domain)
        let found = try? domains.read(location) { list throws(EngineError) in
          try additions.find(key, location, list)
        }
        return found.flatMap { $0 } != nil
      }
    }
  }

  /// The location as it is at this moment, with what is added to its list; later changes are not in
  /// the result.
  public func snapshot(of location: Location) throws(EngineError) -> LocationSnapshot {
    let listed = try read(location) { $0 }
    guard location.place.hasAdditions else { return listed }
    return try state.withLock { state throws(EngineError) in
      try state.additions.requireReadable(location)
      return listed.with(additions: state.additions.added(location))
    }
  }

  /// The locations as they are at one moment, and the number of the last change of the store by
  /// then.
  public func versionedSnapshots(
    of locations: [Location]
  ) throws(EngineError) -> (domains: [LocationSnapshot], version: UInt64) {
    while true {
      for location in locations { _ = try snapshot(of: location) }
      let found = state.withLock { state -> ([LocationSnapshot], UInt64)? in
        let all = locations.compactMap { state.shown($0) }
        return all.count == locations.count ? (all, state.version) : nil
      }
      if let found { return found }
    }
  }

  /// The number of the last change. Cost: a load.
  public var version: UInt64 { changeNumber.value }

  /// Calls the body with the location under the lock, without a copy; loads the location first
  /// where that is needed.
  func read<Result>(
    _ location: Location, _ body: (borrowing LocationSnapshot) -> Result
  ) throws(EngineError) -> Result {
    while true {
      let found: Result? = try state.withLock { state throws(EngineError) in
        guard let domain = state.domains[location] else { return nil }
        if let failure = domain.failure, failure.reason == .unreadable { throw failure }
        return body(domain.snapshot)
      }
      if let found { return found }
      try load(location)
    }
  }
}
