import PreferenceModel
import PreferenceProtocol
import PropertyList
import Synchronization
import SystemCalls

// Requests are passed to the process that owns the store at the moment.

extension StoreClient {
  public var isFresh: Bool {
    withGauge { $0.isFresh } ?? false
  }

  /// See `ClientManner`.
  private var isBrief: Bool { search.manner.isBrief }

  /// Reads the gauge of the present owner; nil if there is none.
  @inline(__always)
  func withGauge<Result>(_ body: (Gauge) -> Result) -> Result? {
    let pointer = UnsafeRawPointer(bitPattern: gauge.load(ordering: .acquiring))
    guard let pointer else { return nil }
    // Gauges live as long as this object, so that no reference need be counted.
    return Unmanaged<Gauge>.fromOpaque(pointer)._withUnsafeGuaranteedRef(body)
  }

  public func find(_ key: Key, at location: Location) throws(EngineError) -> StoredValue? {
    if let change = try posted(key, at: location) { return change.value }
    return try stored(key, at: location)
  }

  public func findFirst(
    _ key: Key, in locations: [Location]
  ) throws(EngineError) -> LocatedValue? {
    if hasPosted.load(ordering: .acquiring) { return try findInTurn(key, in: locations) }
    let first = isBrief ? Request.find(key, locations) : nil
    return try read(first: first) { owner throws(EngineError) in
      try owner.findFirst(key, in: locations)
    }
  }

  /// The key's value as the owner has it, without posted changes.
  private func stored(_ key: Key, at location: Location) throws(EngineError) -> StoredValue? {
    let first = isBrief ? Request.find(key, [location]) : nil
    return try read(first: first) { owner throws(EngineError) in
      try owner.find(key, at: location)
    }
  }

  public func keys(at location: Location) throws(EngineError) -> [Key] {
    // First the posted changes: one that is answered meanwhile is then among the owner's keys.
    let changes = postedChanges(of: location.domain)
    let known = try read(location) { $0.keys }
    guard let changes, location.place.isOwn else { return known }
    var keys = Set(known)
    for (key, change) in changes where try target(of: key, in: location.domain) == location.place {
      if change.value == nil { keys.remove(key) } else { keys.insert(key) }
    }
    return Array(keys)
  }

  /// As the protocol says, but without the keys of posted changes that are not answered yet.
  public func mostKeys(at location: Location) throws(EngineError) -> Int {
    try read(location) { $0.mostKeys }
  }

  public func load(_ location: Location) throws(EngineError) { try read(location) { _ in } }

  private func read<Result>(
    _ location: Location, _ body: (borrowing LocationSnapshot) -> Result
  ) throws(EngineError) -> Result {
    try read(first: isBrief ? .load(location) : nil) { owner throws(EngineError) in
      try owner.read(location, body)
    }
  }

  public func loadLists(_ load: ListLoad) -> [Location: ListFinding] {
    do throws(EngineError) {
      return try read { owner throws(EngineError) in
        let findings = owner.loadLists(load)
        // Another owner may answer.
        for case let error? in findings.values.map(\.error) where error.reason == .ownerGone {
          throw error
        }
        return findings
      }
    } catch {
      return load.failed(error)
    }
  }

  /// Asks the present owner. A thread asks where that one does not say, and may wait for the next.
  public func loadLists(
    _ load: ListLoad, on threads: BlockingThreads, begun: @escaping @Sendable () -> Void,
    then body: @escaping @Sendable ([Location: ListFinding]) -> Void
  ) -> Bool {
    begun()
    let waiting = { @Sendable [self] () -> Void in body(loadLists(load)) }
    let isAsked = owner?.loadLists(load) { findings in
      if let findings {
        body(findings)
      } else if !threads.run(waiting) {
        body(load.failed(Link.late))
      }
    }
    return isAsked == true || threads.run(waiting)
  }

  public func isLoaded(_ domain: DomainName, in places: [Place]) -> Bool {
    readable?.replica.holds(domain, in: places) ?? false
  }

  public func isLoaded(_ location: Location) -> Bool {
    readable?.replica.holds(location) ?? false
  }

  /// True while there is no owner: a change waits for the next one in any case.
  public func isPrepared(_ location: Location) -> Bool {
    owner?.isPrepared(location) ?? true
  }

  public func snapshots(of locations: [Location]) throws(EngineError) -> [LocationSnapshot] {
    let request = Request.loadAll(locations)
    let answer = try read(first: request) { owner throws(EngineError) in try owner.call(request) }
    guard case .snapshots(let all, _) = answer, all.count == locations.count else {
      throw OwnerConnection.unexpected
    }
    return all.map { LocationSnapshot($0) }
  }

  public func modified(_ location: Location) throws(EngineError) -> Timestamp? {
    try read { owner throws(EngineError) in try owner.modified(location) }
  }

  public func domains(in place: Place) throws(EngineError) -> Set<DomainName> {
    try read { owner throws(EngineError) in try owner.domains(in: place) }
  }

  public func report(_ report: OwnerReport) throws(EngineError) -> Value {
    let answer = try ask { owner throws(EngineError) in try owner.call(.report(report)) }
    guard case .report(let value) = answer else { throw OwnerConnection.unexpected }
    return value
  }

  // MARK: - Changes

  public func apply(_ intents: [Intent], by author: Author) throws(EngineError) -> Changeset {
    if isReadOnly { throw EngineError(.readOnly, "mounted with -o ro") }
    let origin = state.withLock { $0.origins.next() }
    let changeset = try apply(intents, by: author, origin: origin, until: Patience.end)
    state.withLock { $0.origins.noteCarriedOut() }
    return changeset
  }

  /// Applies the intents as a request that may be repeated, to this owner or the next one, because
  /// no answer came: it is carried out once. Throws ETIMEDOUT after the deadline; then it is not
  /// carried out later either.
  func apply(
    _ intents: [Intent], by author: Author, origin: Origin, until deadline: Instant
  ) throws(EngineError) -> Changeset {
    let (source, hasMounts) = state.withLock { ($0.source, $0.hasMounts) }
    let answering: Request.Answering = isBrief ? .whenSettled : hasMounts ? .inTwoSteps : .atOnce
    let request = Request.apply(
      serial: origin.serial, author, deadline: deadline, answering, intents, source)
    return try ask(until: deadline, first: request) { owner throws(EngineError) in
      let changeset = try owner.apply(request, serial: origin.serial, until: deadline)
      if hasMounts { owner.notePrepared(changeset.items.lazy.map(\.location)) }
      return changeset
    }
  }

  /// Returns what a posted change that is not over will make of the key in that place; nil if there
  /// is no such change.
  private func posted(
    _ key: Key, at location: Location
  ) throws(EngineError) -> PostedChanges.Change? {
    guard location.place.isOwn,
      let change = postedChange(of: key, in: location.domain),
      try target(of: key, in: location.domain) == location.place
    else { return nil }
    return change
  }

  /// Returns the place in which a posted change is shown until the owner has answered: the first of
  /// the user's own that has the key, else the user's list. The owner may choose another one for a
  /// key that is in none (`ChangeRules.writePlace`).
  private func target(of key: Key, in domain: DomainName) throws(EngineError) -> Place {
    for place in Place.own.dropLast()
    where try stored(key, at: Location(place, domain)) != nil { return place }
    return .user
  }

  // MARK: - Durability

  // A slow disk may take long: these wait for as long as the owner answers pings.

  public func makeDurable() throws(EngineError) { try complete(.synchronize(mounts: false)) }

  public func synchronize() throws(EngineError) { try complete(.synchronize(mounts: true)) }

  public func save(_ location: Location) throws(EngineError) { try complete(.save(location)) }

  private func complete(
    _ request: Request, until deadline: Instant = Instant(nanoseconds: .max)
  ) throws(EngineError) {
    _ = try ask { owner throws(EngineError) in try owner.link.call(request, until: deadline) }
  }

  /// Has the owner write every list that lacks a change, at the end of a mount, and waits 10 s at
  /// most. What cannot be written stays in the journal.
  public func saveAll() {
    try? complete(.save(nil), until: Instant.now.advanced(milliseconds: 10_000))
  }
}
