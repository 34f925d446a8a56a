import PreferenceModel
import PreferenceProtocol
import PropertyList
import SystemCalls

// How a process comes to an owner, and to the next.

/// The thread that looks for the next owner.
final class Seeker: Sendable {
  private struct State {
    var isAsked = false
    var isStopping = false
    var thread: WorkerThread?
  }

  private let state = Monitor(State())

  /// - Parameter seek: looks once; whether it is to be asked again.
  func start(_ seek: @escaping @Sendable () -> Bool) throws(SystemError) {
    let thread = try WorkerThread(name: "prefs-seeker") { [state] in
      while Self.isAsked(state) {
        while !state.withLock({ $0.isStopping }), seek() {
          _ = state.wait(until: Instant.now.advanced(milliseconds: Self.pause)) {
            $0.isStopping ? true : nil
          }
        }
      }
    }
    state.withLock { $0.thread = thread }
  }

  /// Milliseconds between two looks.
  private static let pause: Int64 = 5

  private static func isAsked(_ state: Monitor<State>) -> Bool {
    let isAsked = state.wait { state -> Bool? in
      if state.isStopping { return false }
      guard state.isAsked else { return nil }
      state.isAsked = false
      return true
    }
    return isAsked == true
  }

  /// The owner is gone.
  func ask() { state.change { $0.isAsked = true } }

  func stop() {
    let thread = state.change { state in
      state.isStopping = true
      return state.thread.take()
    }
    thread?.join()
  }
}

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
    let remote = try RemotePlaces(
      connectingTo: surroundings.socketPath, client: client, volume: surroundings.userDirectory,
      until: patience
    ) { [weak self] in self?.ownerIsGone() }
    return remote.map { .client($0) }
  }

  /// Milliseconds that one who listens may take for his first answer; he may be stopped.
  private static let greetingPatience: Int64 = 500

  /// Milliseconds between two starts of an owner, each of which waits until it can be asked.
  private static let startPause: Int64 = 20

  /// Comes to an owner until the deadline.
  func find(until deadline: Instant) throws(EngineError) -> Role {
    while true {
      do throws(EngineError) {
        return try look()
      } catch  where error.reason == .owned && Instant.now < deadline {
        try startOwner()
        Instant.sleep(milliseconds: 5)
      }
    }
  }

  /// Starts one, where this process does that.
  private func startOwner() throws(EngineError) {
    guard let start = ways.start else { return }
    let isDue = state.withLock { state in
      guard state.nextStart <= .now else { return false }
      state.nextStart = Instant.now.advanced(milliseconds: Self.startPause)
      return true
    }
    if isDue { try EngineError.wrapping { () throws(SystemError) in try start() } }
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
  /// - Returns: whether another is needed.
  func seek() -> Bool {
    let (role, isClosing) = state.withLock { ($0.role, $0.isClosing) }
    guard !isClosing, case .seeking(let old) = role else { return false }
    do throws(EngineError) {
      try take(try look(), from: old?.loaded ?? [:])
      old?.close()
      return false
    } catch {
      do throws(EngineError) { try startOwner() } catch { log("\(error)") }
      if ![.owned, .ownerGone].contains(error.reason) {
        log("no owner of the store yet: \(error)")
        Instant.sleep(milliseconds: 200)
      }
      return true
    }
  }

  /// Goes on with the role. Observers hear of what is other than it was.
  func take(_ role: Role, from old: [Location: DomainSnapshot]) throws(EngineError) {
    guard let places = role.places else { return }
    let (observers, mounts) = state.withLock { ($0.observers, $0.mounts) }
    for mount in mounts { places.addMount(mount) }
    for observer in observers { places.observe(except: observer.author, observer.tell) }
    places.observe(except: nil) { [weak self] notice in self?.note(notice) }
    let changes = try differences(places, old)
    // What readers keep is good again when they have heard of the differences, which they read here.
    gauge.store(Self.staleGauge, ordering: .sequentiallyConsistent)
    defer { gauge.store(newGauge(of: role), ordering: .releasing) }
    state.change { state in
      state.role = role
      state.epoch += 1
    }
    if case .client(let remote) = role, remote.hasEnded { ownerIsGone() }
    guard !changes.isEmpty else { return }
    let notice = Notice(changeset: changes, events: Self.events(changes, old), author: nil)
    for observer in observers { observer.tell(notice) }
  }

  /// In the place of a gauge: nothing is fresh.
  static let staleGauge: UInt = 1

  private func newGauge(of role: Role) -> UInt {
    guard case .client(let remote) = role else { return 0 }
    state.withLock { $0.gauges.append(remote.gauge) }
    return UInt(bitPattern: Unmanaged.passUnretained(remote.gauge).toOpaque())
  }

  /// What is other than this process knew it: of the locations that it had asked for, and of which
  /// domains there are.
  private func differences(
    _ places: any PersistentPlaces, _ old: [Location: DomainSnapshot]
  ) throws(EngineError) -> Changeset {
    var changes = Changeset(time: .now)
    for place in SearchList.persistentPlaces {
      let names = try places.domains(in: place)
      let known = state.withLock { state in
        defer { state.domains[place] = names }
        return state.domains[place]
      }
      guard let known else { continue }
      changes.items += names.subtracting(known).map { .init(Location(place, $0), .createDomain) }
      changes.items += known.subtracting(names).map { .init(Location(place, $0), .removeDomain) }
    }
    for (location, domain) in old {
      for key in Set(domain.keys).union(try places.keys(at: location)) {
        let (before, now) = (domain.entry(key), try places.find(key, at: location))
        if let edit = Self.edit(key, from: before, to: now) {
          changes.items.append(.init(location, edit))
        }
      }
    }
    return changes
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
      case .describe, .createDomain, .removeDomain: return nil
      }
    }
  }

  /// Which domains there are.
  private func note(_ notice: Notice) {
    state.withLock { state in
      for item in notice.changeset.items {
        let (place, domain) = (item.location.place, item.location.domain)
        switch item.edit {
        case .set, .createDomain: state.domains[place]?.insert(domain)
        case .removeDomain: state.domains[place]?.remove(domain)
        case .remove, .describe: break
        }
      }
    }
  }
}
