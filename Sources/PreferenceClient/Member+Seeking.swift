import PreferenceModel
import PreferenceProtocol
import PropertyList
import SystemCalls

// How a process comes to an owner, and to the next.

extension Member {
  /// Connects to the owner, or becomes it. Throws `.owned` where neither can be had now.
  private func look() throws(EngineError) -> Role {
    if let role = try connect() { return role }
    if let own = ways.own { return .owner(try own()) }
    throw EngineError(
      .owned, "nobody answers for the store \(surroundings.userDirectory); is its owner stopped?")
  }

  private func connect() throws(EngineError) -> Role? {
    let patience = Instant.now.advanced(milliseconds: Self.greetingPatience)
    for path in surroundings.ownerSocketPaths {
      let remote = try RemotePlaces(
        connectingTo: path, client: client, volume: surroundings.userDirectory,
        isBrief: ways.isBrief, until: patience
      ) { [weak self] in self?.ownerIsGone() }
      if let remote { return .client(remote) }
    }
    return nil
  }

  /// Milliseconds that one who listens may take for his first answer; he may be stopped.
  private static let greetingPatience: Int64 = 500
  /// Milliseconds between two looks.
  private static let pause: Int64 = 5
  /// Milliseconds after a look that failed for another reason than that there is no owner.
  private static let errorPause: Int64 = 500
  /// Milliseconds between two looks of one who only reads for an owner whom it could follow.
  private static let followPause: Int64 = 500
  /// Milliseconds between two starts of an owner, each of which waits until it can be asked: the first,
  /// and the longest, as long as none succeeds.
  private static let startPauses: (first: Int64, longest: Int64) = (20, 5000)

  /// Comes to the first owner.
  func begin(until deadline: Instant) throws(EngineError) {
    while true {
      do throws(EngineError) {
        return try take(try look(), from: [:])
      } catch  where Self.isPassing(error) && Instant.now < deadline {
        if try !startOwner() { Instant.sleep(milliseconds: UInt32(Self.pause)) }
      }
    }
  }

  /// Whether there is only no owner at the moment.
  static func isPassing(_ error: EngineError) -> Bool {
    [.owned, .ownerGone].contains(error.reason)
  }

  /// Starts one, where this process does that.
  /// - Returns: whether there is one that can be asked at once.
  @discardableResult
  private func startOwner() throws(EngineError) -> Bool {
    guard let start = ways.start else { return false }
    let isDue = state.withLock { state in
      guard state.nextStart <= .now else { return false }
      state.startPause = min(
        max(state.startPause * 2, Self.startPauses.first), Self.startPauses.longest)
      state.nextStart = Instant.now.advanced(milliseconds: state.startPause)
      return true
    }
    if isDue { try EngineError.wrapping { () throws(SystemError) in try start() } }
    return isDue
  }

  private func ownerIsGone() {
    let isNews = state.change { state in
      guard case .client(let remote) = state.role, remote.hasEnded else { return false }
      state.role = .seeking(remote)
      return true
    }
    if isNews { seeker.ask() }
  }

  /// One look for the next owner.
  /// - Returns: milliseconds until another is needed; nil: none is.
  func seek() -> Int64? {
    let (role, isClosing) = state.withLock { ($0.role, $0.isClosing) }
    if isClosing { return nil }
    do throws(EngineError) {
      switch role {
      case .client: return nil
      case .owner:
        guard isReadOnly else { return nil }
        guard let next = try connect() else { return Self.followPause }
        try take(next, from: role.loaded)
      case .seeking: try take(try look(), from: role.loaded)
      }
      role.close()
      return isReadOnly ? Self.followPause : nil
    } catch {
      return afterFailure(error)
    }
  }

  private func afterFailure(_ error: EngineError) -> Int64 {
    if Self.isPassing(error) {
      do throws(EngineError) {
        try startOwner()
        return Self.pause
      } catch {
        note(error)
        return Self.errorPause
      }
    }
    note(error)
    return Self.errorPause
  }

  /// Logs why there is no owner, once for each reason.
  private func note(_ error: EngineError) {
    let isNews = state.withLock { state in
      defer { state.lastFailure = error }
      return state.lastFailure != error
    }
    if isNews { log("no owner of the store yet: \(error)") }
  }

  /// Goes on with the role, which is closed where that cannot be done. Observers hear of what is other than
  /// it was, and then of what changes, from the moment when they are answered by the new owner.
  private func take(_ role: Role, from old: [Location: DomainSnapshot]) throws(EngineError) {
    guard let places = role.places else { return }
    let relay = Relay()
    places.observe(except: nil) { notice in relay.put(notice) }
    let early = state.withLock { $0.mounts }
    for mount in early { places.addMount(mount) }
    let changes: Changeset
    do throws(EngineError) {
      changes = try differences(places, old)
    } catch {
      role.close()
      throw error
    }
    // What readers keep is good again when they have heard of the differences, which they read here.
    gauge.store(Self.staleGauge, ordering: .sequentiallyConsistent)
    let late: ArraySlice<Author>
    do throws(EngineError) {
      late = try publish(role, places).dropFirst(early.count)
    } catch {
      role.close()
      throw error
    }
    for mount in late { places.addMount(mount) }
    if !changes.isEmpty {
      tell(Notice(changeset: changes, events: Self.events(changes, old), author: nil))
    }
    relay.open { [weak self] notice in self?.tell(notice) }
    gauge.store(newGauge(of: role), ordering: .releasing)
    if case .client(let remote) = role, remote.hasEnded { ownerIsGone() }
    if case .owner = role, isReadOnly { seeker.ask() }
  }

  /// From now on everybody asks the new owner, who knows by then what the last one has not answered.
  /// - Returns: the mounts.
  private func publish(
    _ role: Role, _ places: any PersistentPlaces
  ) throws(EngineError) -> [Author] {
    try sendPosted(to: places) { epoch in
      state.change { state in
        (state.role, state.epoch) = (role, epoch)
        (state.startPause, state.lastFailure, state.isMissing) = (0, nil, false)
        return state.mounts
      }
    }
  }

  /// In the place of a gauge: nothing is fresh.
  static let staleGauge: UInt = 1

  private func newGauge(of role: Role) -> UInt {
    guard case .client(let remote) = role else { return 0 }
    state.withLock { $0.gauges.append(remote.gauge) }
    return UInt(bitPattern: Unmanaged.passUnretained(remote.gauge).toOpaque())
  }
}

// MARK: - Differences

extension Member {
  /// What is other than this process knew it: of the locations that it had asked for, and of which
  /// domains there are. A list that cannot be read now is other, whatever it holds.
  private func differences(
    _ places: any PersistentPlaces, _ old: [Location: DomainSnapshot]
  ) throws(EngineError) -> Changeset {
    var changes = Changeset(time: .now)
    for place in SearchList.persistentPlaces where !ways.isBrief {
      let names: Set<DomainName>? = try known { () throws(EngineError) in
        try places.domains(in: place)
      }
      let before = state.withLock { state in
        defer { state.domains[place] = names ?? state.domains[place] }
        return state.domains[place]
      }
      guard let before, let names else { continue }
      changes.items += names.subtracting(before).map { .init(Location(place, $0), .createDomain) }
      changes.items += before.subtracting(names).map { .init(Location(place, $0), .removeDomain) }
    }
    for (location, domain) in old {
      let found: [Edit]? = try known { () throws(EngineError) in
        try edits(of: location, from: domain, places)
      }
      if found == nil { changes.invalidated.insert(location) }
      changes.items += (found ?? []).map { Changeset.Item(location, $0) }
    }
    return changes
  }

  /// nil for what cannot be read; throws what is no fault of a list.
  private func known<Result>(
    _ body: () throws(EngineError) -> Result
  ) throws(EngineError) -> Result? {
    do throws(EngineError) {
      return try body()
    } catch  where error.reason != .ownerGone {
      return nil
    }
  }

  private func edits(
    of location: Location, from old: DomainSnapshot, _ places: any PersistentPlaces
  ) throws(EngineError) -> [Edit] {
    var edits: [Edit] = []
    for key in Set(old.keys).union(try places.keys(at: location)) {
      let (before, now) = (old.entry(key), try places.find(key, at: location))
      if let edit = Self.edit(key, from: before, to: now) { edits.append(edit) }
    }
    return edits
  }

  private static func edit(_ key: Key, from old: StoredValue?, to new: StoredValue?) -> Edit? {
    guard let new else { return old == nil ? nil : .remove(key) }
    if new == old { return nil }
    // Only what is kept beside the value is another.
    if new.value == old?.value, new.text == old?.text {
      return .describe(key, Description(mode: new.metadata.mode, modified: new.modified))
    }
    return .set(key, new.value, new.text.map { .exact($0) } ?? .canonical)
  }

  private static func events(
    _ changes: Changeset, _ old: [Location: DomainSnapshot]
  ) -> [KeyEvent] {
    changes.items.compactMap { item in
      let domain = item.location.domain
      switch item.edit {
      case .remove(let key): return KeyEvent(domain, key, .removed)
      case .set(let key, _, _):
        let hadKey = old[item.location]?[key] != nil
        return KeyEvent(domain, key, hadKey ? .changed : .created)
      case .describe, .splice, .createDomain, .removeDomain: return nil
      }
    }
  }
}
