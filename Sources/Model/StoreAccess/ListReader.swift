import PreferenceModel
import Synchronization
import SystemCalls

/// Reads lists on other threads, for a thread that must not wait for one: a list may lie on a file
/// system that does not answer, or be a link into the mount which that thread serves.
///
/// Promises: no call waits. A caller that finds a domain not at hand (`isAtHand`) has it read
/// (`read`), and asks again when the body of `whenRead` was called, or after `patience`. From then
/// until `forget`, a look-up in the domain touches no disk: what was read is in memory, and for the
/// rest `finding` says why it is not.
///
/// Threads: any. One lock, held briefly; the places are asked without it.
public final class ListReader: Sendable {
  /// How far the lists of a domain, which were not all at hand, have been read.
  private enum Look {
    /// `since`: when a thread began with it, or when it was asked for, if none has.
    /// `isOutdated`: the domain has changed since the look began.
    case reading(since: Instant, hasBegun: Bool = false, isOutdated: Bool = false)
    /// `isPrepared`: changes of the domain's lists have been prepared too.
    case done([Location: ListFinding], isPrepared: Bool)
    /// The lists are not read: too many others are being read, or no thread could be made.
    case refused
  }

  private struct State {
    var looks: [DomainName: Look] = [:]
    /// The places whose lists are read: those of the search list, the schemas, and others that are
    /// looked at.
    var places = SearchList.persistentPlaces + [.schema]
    var told: (@Sendable () -> Void)?
    /// When a thread last began to read a domain.
    var lastBegun = Instant(nanoseconds: 0)
    /// Whether a domain's lists were refused since `forget` was last called.
    var hasRefused = false

    /// Whether nobody waits for the domain any longer, because its lists do not answer, or all
    /// threads wait for others that do not.
    func isLate(_ look: Look?) -> Bool {
      guard case .reading(let since, let hasBegun, _)? = look else { return false }
      let start = hasBegun ? since : max(since, lastBegun)
      return Instant.now.nanoseconds(after: start) >= patience * 1_000_000
    }
  }

  /// A domain whose lists are needed, and those of its locations that may be changed.
  public struct Need: Sendable {
    /// The domain.
    public let domain: DomainName
    /// The locations.
    public let changed: [Location]

    /// A need of a domain's lists.
    public init(_ domain: DomainName, changing changed: [Location] = []) {
      (self.domain, self.changed) = (domain, changed)
    }
  }

  private let places: any PersistentPlaces
  /// Domains that count as existing where no place has a list of them. Their absent lists are
  /// loaded too, so that the next request finds them at hand.
  private let lasting: Set<DomainName>
  private let threads = BlockingThreads(name: "prefs-list", most: 32, mostWaiting: 100_000)
  private let state = Monitor(State())
  /// Whether there are looks: most of the time there is none, and `finding` need not take the lock.
  private let hasLooks = Atomic<Bool>(false)
  /// How many looks have ended, of all domains together.
  private let ended = Atomic<UInt64>(0)

  /// Milliseconds after which a list that is still being read counts as hung. One that has to wait
  /// for a thread does so when no thread has begun with another one for as long.
  public static let patience: Int64 = 5000

  /// Creates a reader of the places' lists.
  /// - Parameter domain: a domain that is asked for with every other one, as the global domain is.
  public init(_ places: any PersistentPlaces, askedWithEach domain: DomainName = .global) {
    (self.places, lasting) = (places, [.global, .settings, domain])
    places.observe(except: nil) { [weak self] notice in self?.forget(notice.changeset) }
  }

  /// Forgets what was found of domains that have changed since: a list may be there now.
  private func forget(_ changeset: Changeset) {
    guard hasFindings else { return }
    let domains = Set(changeset.locations.map(\.domain))
    state.withLock { state in
      for domain in domains {
        switch state.looks[domain] {
        case .reading(let since, let hasBegun, _):
          state.looks[domain] = .reading(since: since, hasBegun: hasBegun, isOutdated: true)
        case .done: state.looks[domain] = nil
        case .refused, nil: break
        }
      }
    }
  }

  /// Sets the body that is called, by a thread that reads lists, whenever a domain has been read.
  public func whenRead(_ body: @escaping @Sendable () -> Void) {
    state.withLock { $0.told = body }
  }

  /// A number that is a different one whenever a domain has been read or refused. Cost: a load, for
  /// a thread that polls and does not sleep until `whenRead` wakes it.
  public var readCount: UInt64 { ended.load(ordering: .acquiring) }

  /// From now on, reads the lists of that place too, for every domain, and counts them in
  /// `isAtHand`.
  public func include(_ place: Place) {
    state.withLock { if !$0.places.contains(place) { $0.places.append(place) } }
  }

  // MARK: - Reading

  /// Whether a look-up in the domain waits for no list, neither of its own nor of the global
  /// domain. That includes lists that are known to hang: a look-up does not wait for them. Cost: a
  /// look at each of their places.
  public func isAtHand(_ domain: DomainName) -> Bool {
    let all = state.withLock { $0.places }
    return isKnown(domain, all) && (domain == .global || isKnown(.global, all))
  }

  /// Whether a change of the locations waits for no list, or for none that is not known to hang.
  public func isAtHand(_ domain: DomainName, changing locations: [Location]) -> Bool {
    guard isAtHand(domain) else { return false }
    return locations.allSatisfy { location in
      if places.isPrepared(location) { return true }
      return state.withLock { state in
        if case .reading? = state.looks[domain] { return state.isLate(state.looks[domain]) }
        // What could not be prepared is an error of the change.
        if case .done(_, let isPrepared)? = state.looks[domain] { return isPrepared }
        return state.looks[domain] != nil
      }
    }
  }

  private func isKnown(_ domain: DomainName, _ all: [Place]) -> Bool {
    if places.isLoaded(domain, in: all) { return true }
    return state.withLock { state in
      switch state.looks[domain] {
      case .reading: state.isLate(state.looks[domain])
      case .done, .refused: true
      case nil: false
      }
    }
  }

  /// Starts to read the lists that a look-up in the domain needs, and what a change of the locations
  /// needs. Where too many are being read already, it refuses instead: then the domain is at hand at
  /// once, as one that hangs is. It never calls the body of `whenRead`, because its caller may hold
  /// locks that the body takes: ask `isAtHand` once more after it.
  public func read(_ domain: DomainName, changing locations: [Location] = []) {
    read([Need(domain, changing: locations)])
  }

  /// Does the same for several domains. Of many, one thread first finds out which of them no place
  /// has, and ends those together.
  public func read(_ needs: [Need]) {
    let all = state.withLock { $0.places }
    let loads = needs.flatMap { need in
      (need.domain == .global ? [.global] : [need.domain, .global]).compactMap {
        begin($0, need.changed, all)
      }
    }
    guard loads.count >= Self.many else { return loads.forEach(look) }
    let isBegun = threads.run { [self] in
      setBegun(loads.map(\.domain))
      let rest = places.loadAbsent(loads.map(\.load)).map { loads[$0] }
      let others = Set(rest.map(\.domain))
      let absent = loads.filter { !others.contains($0.domain) }
      // These wait for a thread again.
      setReading(rest.map(\.domain))
      rest.forEach(look)
      // Last, also of none: the caller must be told of what was refused here.
      end(absent.map { ($0.domain, .done([:], isPrepared: !$0.load.changing.isEmpty)) })
    }
    if !isBegun { refuse(loads.map(\.domain)) }
  }

  /// So many domains are looked at together.
  private static let many = 16

  /// Notes that a domain is to be read.
  /// - Returns: the domain and its lists; nil if it needs not be read, or is being read.
  private func begin(
    _ domain: DomainName, _ locations: [Location], _ all: [Place]
  ) -> (domain: DomainName, load: ListLoad)? {
    let changed = locations.filter { $0.domain == domain && !places.isPrepared($0) }
    guard !changed.isEmpty || !isKnown(domain, all) else { return nil }
    let isNew = state.withLock { state in
      if case .reading? = state.looks[domain] { return false }
      if changed.isEmpty, state.looks[domain] != nil { return false }
      state.looks[domain] = .reading(since: .now)
      hasLooks.store(true, ordering: .releasing)
      return true
    }
    guard isNew else { return nil }
    // A domain that is changed exists, or will; its absent lists are loaded too.
    let load = ListLoad(
      all.map { Location($0, domain) }, changing: changed,
      evenIfAbsent: lasting.contains(domain) || !changed.isEmpty)
    return (domain, load)
  }

  /// Has the lists of a domain read, if any place has it, and changes of some prepared.
  private func look(at domain: DomainName, _ load: ListLoad) {
    let isBegun = places.loadLists(load, on: threads) { [self] in
      setBegun([domain])
    } then: { [self] findings in
      end([(domain, .done(findings, isPrepared: !load.changing.isEmpty))])
    }
    if !isBegun { refuse([domain]) }
  }

  /// Notes that a thread begins with the domains.
  private func setBegun(_ domains: [DomainName]) {
    state.withLock { $0.lastBegun = .now }
    setReading(domains, hasBegun: true)
  }

  /// Counts from now on how long the domains take.
  private func setReading(_ domains: [DomainName], hasBegun: Bool = false) {
    state.withLock { state in
      for domain in domains {
        guard case .reading(_, _, let isOutdated)? = state.looks[domain] else { continue }
        state.looks[domain] = .reading(
          since: .now, hasBegun: hasBegun, isOutdated: isOutdated)
      }
    }
  }

  private func refuse(_ domains: [DomainName]) {
    state.withLock { state in
      for domain in domains { state.looks[domain] = .refused }
      state.hasRefused = true
    }
    ended.wrappingAdd(1, ordering: .releasing)
  }

  private func end(_ looks: [(domain: DomainName, look: Look)]) {
    let told = state.withLock { state in
      for (domain, look) in looks {
        if case .reading(_, _, isOutdated: true)? = state.looks[domain] {
          state.looks[domain] = nil
        } else {
          state.looks[domain] = look
        }
      }
      return state.told
    }
    ended.wrappingAdd(1, ordering: .releasing)
    told?()
  }

  /// Forgets what was found: what is not in memory is then read anew for the next caller. What is
  /// still being read is kept. Call it when the callers that waited have asked again.
  /// - Parameter isAwaited: whether callers still wait. They may need several domains that do not
  ///   stay in memory, so what was found is kept until none waits; what was refused is tried again.
  ///   Cost: then none, unless something was refused; else O(what was found).
  public func forget(isAwaited: Bool = false) {
    guard hasFindings else { return }
    state.withLock { state in
      if isAwaited, !state.hasRefused { return }
      state.hasRefused = false
      state.looks = state.looks.filter { _, look in
        switch look {
        case .reading: true
        case .done: isAwaited
        case .refused: false
        }
      }
      hasLooks.store(!state.looks.isEmpty, ordering: .releasing)
    }
  }

  // MARK: - What was found

  /// Whether `finding` may know of a list that could not be read. Cost: a load.
  public var hasFindings: Bool { hasLooks.load(ordering: .acquiring) }

  /// What is known of a list that could not be read, or does not exist; nil where the places can be
  /// asked. Cost: a load where nothing was found or is being read; else a look at the place, and a
  /// lock and two hash look-ups where the list is not in memory.
  public func finding(_ location: Location) -> ListFinding? {
    guard hasFindings, !places.isLoaded(location) else { return nil }
    let finding = state.withLock { state -> ListFinding? in
      let look = state.looks[location.domain]
      if case .done(let findings, _)? = look { return findings[location] ?? ListFinding() }
      return Self.refusal(location, look, state).map { ListFinding(error: $0) }
    }
    guard let finding else { return nil }
    // A list that was read, and is no longer in memory: another process owns the store since then.
    // Its keys are not missing; that process must be asked for them.
    if finding.modified != nil, finding.error == nil { return nil }
    return finding
  }

  /// The error of a list that nobody waits for any longer; nil if it is being read, or has been.
  private static func refusal(
    _ location: Location, _ look: Look?, _ state: State
  ) -> EngineError? {
    switch look {
    case .reading where state.isLate(look):
      hung(location, "lies on a file system that does not answer; is it hung?")
    case .refused: hung(location, "was not read, because too many others do not answer")
    case .reading, .done, nil: nil
    }
  }

  /// The error of a list that was not read. It is not `.unreadable`: other domains pass over a
  /// damaged list of the global domain, but must not take a list that hangs for an empty one.
  private static func hung(_ location: Location, _ circumstances: String) -> EngineError {
    EngineError(
      .system(.inputOutput), domain: location.domain, "a list of the domain \(circumstances)")
  }

  /// Throws where a list that the intents need could not be read. A damaged list stops intents that
  /// name its location, and changes that go to it or that it may force. A list that hangs stops
  /// every intent whose rules may look at it. Cost: a load where nothing was found.
  public func refuse(_ intents: [Intent]) throws(EngineError) {
    guard hasFindings else { return }
    var needed: Set<Location> = []
    var asked: Set<Location> = []
    if intents.contains(where: \.mayChangeOwn) {
      needed.formUnion(DomainLocks.locations)
    }
    for intent in intents {
      if let named = intent.locations {
        needed.formUnion(named)
        continue
      }
      needed.formUnion(SearchList.forced(.global))
      for domain in intent.domains {
        for place in Place.forced + Place.own { needed.insert(Location(place, domain)) }
      }
      for domain in intent.domains + [.global] where intent.asksEveryPlace {
        for place in SearchList.persistentPlaces { asked.insert(Location(place, domain)) }
      }
    }
    for location in needed {
      if let error = finding(location)?.error { throw error }
    }
    for location in asked {
      if let error = finding(location)?.error, error.reason != .unreadable { throw error }
    }
  }

  /// Throws where a change of one of the locations could not be prepared, because the disk does not
  /// answer: the caller would ask it itself. The list may be in memory. Cost: as `refuse`.
  public func refuseUnprepared(_ locations: [Location]) throws(EngineError) {
    guard hasFindings else { return }
    for location in locations where !places.isPrepared(location) {
      let refusal = state.withLock { Self.refusal(location, $0.looks[location.domain], $0) }
      if let refusal { throw refusal }
    }
  }
}
