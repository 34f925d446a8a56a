import PreferenceModel
import PreferenceProtocol
import PropertyList
import Synchronization
import SystemCalls

// Changes that are not waited for.
//
// Promises: those of one thread are carried out in their order, and before what it asks for afterwards.
// Each is sent to the owner, and again to the next one where the owner is gone before he has answered; it is
// carried out once. Until then this process reads what the change will make.

/// The changes that are not answered yet.
struct PostedChanges: Sendable {
  struct Request: Sendable {
    var serial: UInt64
    var intents: [Intent]
    var author: Author
    /// The epoch of the owner to whom it was sent.
    var epoch: Int
    var refused: @Sendable (EngineError) -> Void
  }

  /// What a key is going to be.
  struct Change: Sendable {
    var serial: UInt64
    var value: StoredValue?
  }

  private(set) var requests: [UInt64: Request] = [:]
  private(set) var changes: [DomainName: [Key: Change]] = [:]

  mutating func add(_ request: Request) {
    requests[request.serial] = request
    for intent in request.intents {
      switch intent {
      case .set(let key, let domain, let value, _):
        let stored = StoredValue(value, Metadata(text: nil, modified: .now))
        changes[domain, default: [:]][key] = Change(serial: request.serial, value: stored)
      case .remove(let key, let domain):
        changes[domain, default: [:]][key] = Change(serial: request.serial, value: nil)
      default: break
      }
    }
  }

  /// The request is answered, or given up.
  mutating func remove(_ serial: UInt64) -> Request? {
    guard let request = requests.removeValue(forKey: serial) else { return nil }
    for case .set(let key, let domain, _, _) in request.intents { forget(key, domain, serial) }
    for case .remove(let key, let domain) in request.intents { forget(key, domain, serial) }
    return request
  }

  private mutating func forget(_ key: Key, _ domain: DomainName, _ serial: UInt64) {
    guard changes[domain]?[key]?.serial == serial else { return }
    changes[domain]?[key] = nil
    if changes[domain]?.isEmpty == true { changes[domain] = nil }
  }

  /// Whether the owner of the epoch has been sent all of them.
  func isSent(to epoch: Int) -> Bool { requests.values.allSatisfy { $0.epoch == epoch } }

  /// The requests that the owner of the epoch has not been sent, in their order; they are taken for sent.
  mutating func takeUnsent(for epoch: Int) -> [Request] {
    let unsent = requests.values.filter { $0.epoch != epoch }.sorted { $0.serial < $1.serial }
    for request in unsent { requests[request.serial]?.epoch = epoch }
    return unsent
  }
}

extension Member {
  public func post(
    _ intents: [Intent], by author: Author, refused: @escaping @Sendable (EngineError) -> Void
  ) {
    if isReadOnly { return refused(EngineError(.readOnly, "mounted with -o ro")) }
    let (request, role) = state.withLock { state in
      state.lastSerial += 1
      let request = PostedChanges.Request(
        serial: state.lastSerial, intents: intents, author: author, epoch: state.epoch,
        refused: refused)
      state.posted.add(request)
      hasPosted.store(true, ordering: .releasing)
      return (request, state.role)
    }
    guard let places = role.places else { return awaitNextOwner(request) }
    send(request, to: places)
  }

  /// Sends it; where its owner is gone, it waits for the next one.
  private func send(_ request: PostedChanges.Request, to places: any PersistentPlaces) {
    if transmit(request, to: places) == .ended { awaitNextOwner(request) }
  }

  private func transmit(
    _ request: PostedChanges.Request, to places: any PersistentPlaces
  ) -> Link.Transmission {
    let serial = request.serial
    if let remote = places as? RemotePlaces {
      let sent = remote.post(request.intents, by: request.author, serial: serial) {
        [weak self] message in self?.answered(serial, message)
      }
      if sent == .late { giveUp(serial, Link.late) }
      return sent
    }
    do throws(EngineError) {
      let origin = Origin(client: client, serial: serial)
      let never = Instant(nanoseconds: .max)
      _ = try places.apply(request.intents, by: request.author, origin: origin, until: never)
      answered(serial, .done)
    } catch {
      giveUp(serial, error)
    }
    return .sent
  }

  private func answered(_ serial: UInt64, _ message: Message?) {
    switch message {
    case nil: break  // The next owner is asked.
    case .failed(let error): giveUp(serial, error)
    default: forget(serial)
    }
  }

  private func giveUp(_ serial: UInt64, _ error: EngineError) { forget(serial)?.refused(error) }

  @discardableResult
  private func forget(_ serial: UInt64) -> PostedChanges.Request? {
    state.change { state in
      defer { if state.posted.requests.isEmpty { hasPosted.store(false, ordering: .releasing) } }
      return state.posted.remove(serial)
    }
  }

  /// Until the seeker has sent it to another owner. Where there is none for long it stays here, and is sent
  /// when there is one.
  private func awaitNextOwner(_ request: PostedChanges.Request) {
    let deadline = Instant.now.advanced(milliseconds: patience)
    let isSent = state.wait(until: deadline) { state -> Bool? in
      guard let waiting = state.posted.requests[request.serial] else { return true }
      return waiting.epoch != request.epoch || state.isClosing ? true : nil
    }
    guard isSent == nil else { return }
    let (isNews, isFull) = state.withLock { state in
      defer { state.isMissing = true }
      return (!state.isMissing, state.posted.requests.count > Self.mostWaiting)
    }
    if isNews { log("no owner of the store answers: what is set waits for one in this process") }
    if isFull { giveUp(request.serial, Self.ownerless) }
  }

  /// Changes that wait for an owner, at most.
  private static let mostWaiting = 10_000

  /// Sends the new owner what the last one has not answered, before anybody else asks him.
  func sendPosted(to places: any PersistentPlaces, _ epoch: Int) {
    while true {
      let unsent = state.withLock { $0.posted.takeUnsent(for: epoch) }
      if unsent.isEmpty { return }
      for request in unsent { _ = transmit(request, to: places) }
      state.change { _ in }
    }
  }
}

// MARK: - Reading what is on its way

extension Member {
  /// What a change that is on its way makes of the key there; nil: nothing is on its way.
  func posted(_ key: Key, at location: Location) throws(EngineError) -> PostedChanges.Change? {
    guard hasPosted.load(ordering: .acquiring), [.host, .user].contains(location.place),
      let change = state.withLock({ $0.posted.changes[location.domain]?[key] }),
      try target(of: key, in: location.domain) == location.place
    else { return nil }
    return change
  }

  /// Where a change goes: the host's list if the key stands there.
  private func target(of key: Key, in domain: DomainName) throws(EngineError) -> Place {
    try stored(key, at: Location(.host, domain)) == nil ? .user : .host
  }

  /// The keys of a location, with those that are on their way.
  func keys(_ known: [Key], withPostedAt location: Location) throws(EngineError) -> [Key] {
    guard hasPosted.load(ordering: .acquiring),
      let changes = state.withLock({ $0.posted.changes[location.domain] })
    else { return known }
    var keys = Set(known)
    for key in changes.keys {
      guard let change = try posted(key, at: location) else { continue }
      if change.value == nil { keys.remove(key) } else { keys.insert(key) }
    }
    return Array(keys)
  }
}
