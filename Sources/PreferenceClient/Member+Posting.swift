import PreferenceModel
import PreferenceProtocol
import PropertyList
import Synchronization
import SystemCalls

// Changes that are not waited for.
//
// Promises: they are sent one after the other (`isPosting` is the turn), carried out in that order, and before
// what is asked for afterwards. Each is sent to the owner, and again to the next one where the owner is gone
// before he has answered: in the same order, before anybody else asks him, and it is carried out once. Until
// it is over this process reads what it will make. The owner's `ordered` serials tell him what he has had.
//
// Half-broken states: no owner: what is set waits in this process for the next one, at most so many; where
// there has never been one it is refused, because whoever sets without having read would undo what is there.

extension Member {
  public func post(
    _ intents: [Intent], by author: Author, done: @escaping @Sendable (EngineError?) -> Void
  ) {
    if isReadOnly { return done(EngineError(.readOnly, "mounted with -o ro")) }
    takeTurn()
    let (serial, role, epoch) = state.withLock { state in
      state.lastPosted += 1
      let request = PostedChanges.Request(
        serial: state.lastPosted, intents: intents, author: author, done: done)
      state.posted.add(request)
      hasPosted.store(true, ordering: .releasing)
      return (state.lastPosted, state.role, state.epoch)
    }
    let sent = role.places.map { transmit(serial, to: $0, epoch) } ?? .ended
    giveTurn()
    switch sent {
    case .sent: break
    case .late: giveUp(serial, Link.late)
    case .tooLarge: giveUp(serial, Link.tooLarge)
    case .ended: awaitNextOwner(serial, canKeep: role.hasBeenAsked)
    }
  }

  private func takeTurn() {
    _ = state.wait { state -> Bool? in
      guard !state.isPosting else { return nil }
      state.isPosting = true
      return true
    }
  }

  private func giveTurn() { state.change { $0.isPosting = false } }

  /// Sends a request, whose turn it is.
  private func transmit(
    _ serial: UInt64, to places: any PersistentPlaces, _ epoch: Int
  ) -> Link.Transmission {
    guard let request = state.withLock({ $0.posted.requests[serial] }) else { return .sent }
    guard let remote = places as? RemotePlaces else { return apply(request, to: places, epoch) }
    let deadline = Instant.now.advanced(milliseconds: patience)
    let sent = remote.post(
      request.intents, by: request.author, serial: serial, until: deadline
    ) { [weak self] message in self?.take(message, of: serial, epoch) }
    state.change { state in
      // The answer may have come already.
      if sent == .sent { state.posted.noteSent(serial, to: epoch) }
      if sent != .ended { state.isMissing = sent == .late }
    }
    return sent
  }

  /// The process itself is the owner.
  private func apply(
    _ request: PostedChanges.Request, to places: any PersistentPlaces, _ epoch: Int
  ) -> Link.Transmission {
    var outcome = PostedChanges.Outcome()
    do throws(EngineError) {
      let origin = Origin(client: client, serial: request.serial | Origin.ordered)
      let never = Instant(nanoseconds: .max)
      _ = try places.apply(request.intents, by: request.author, origin: origin, until: never)
    } catch {
      outcome.error = error
    }
    state.change { $0.posted.noteSent(request.serial, to: epoch) }
    finish(request.serial, outcome, epoch)
    return .sent
  }

  /// The owner's answer; nil: he is gone, and the next one is asked.
  private func take(_ message: Message?, of serial: UInt64, _ epoch: Int) {
    switch message {
    case nil: break
    case .failed(let error): finish(serial, PostedChanges.Outcome(error: error), epoch)
    default: finish(serial, PostedChanges.Outcome(), epoch)
    }
  }

  /// What an owner says whom nobody asks yet counts when he is asked: until then this process reads what
  /// it knew of the last one.
  private func finish(_ serial: UInt64, _ outcome: PostedChanges.Outcome, _ epoch: Int) {
    let isEarly = state.withLock { state in
      guard epoch > state.epoch else { return false }
      state.posted.note(outcome, of: serial)
      return true
    }
    if !isEarly { end(serial, outcome) }
  }

  private func giveUp(_ serial: UInt64, _ error: EngineError) {
    end(serial, PostedChanges.Outcome(error: error))
  }

  /// Who asked looks again: a reader may have kept what he found while it was on its way.
  private func end(_ serial: UInt64, _ outcome: PostedChanges.Outcome) {
    let request = state.change { state in
      defer { if state.posted.requests.isEmpty { hasPosted.store(false, ordering: .releasing) } }
      return state.posted.remove(serial, isRefused: outcome.error != nil)
    }
    request?.done(outcome.error)
  }

  /// Until the seeker has sent it to another owner.
  private func awaitNextOwner(_ serial: UInt64, canKeep: Bool) {
    let deadline = Instant.now.advanced(milliseconds: patience)
    let isSent = state.wait(until: deadline) { state -> Bool? in
      guard let request = state.posted.requests[serial] else { return true }
      return request.epoch != nil || state.isClosing ? true : nil
    }
    guard isSent == nil else { return }
    takeTurn()
    defer { giveTurn() }
    let (isNews, count, isUnsent) = state.withLock { state in
      defer { state.isMissing = true }
      let request = state.posted.requests[serial]
      return (
        !state.isMissing, state.posted.requests.count, request != nil && request?.epoch == nil
      )
    }
    // The seeker may have sent it in the last moment.
    guard isUnsent else { return }
    if !canKeep || count > Self.mostWaiting { return giveUp(serial, Self.ownerless) }
    if isNews { log("no owner of the store answers: what is set waits for one in this process") }
  }

  /// Changes that wait for an owner, at most.
  private static let mostWaiting = 10_000

  /// Sends the new owner what the last one has not answered, and lets the body make him the owner: nobody
  /// posts meanwhile. Throws where he does not take it.
  func sendPosted<Result>(
    to places: any PersistentPlaces, _ body: (_ epoch: Int) -> Result
  ) throws(EngineError) -> Result {
    takeTurn()
    defer { giveTurn() }
    let (epoch, unsent) = state.withLock { state in
      // Another one for each attempt: who has had a part of it may not be the owner in the end.
      state.lastEpoch += 1
      return (state.lastEpoch, state.posted.unsent(to: state.lastEpoch))
    }
    for request in unsent {
      switch transmit(request.serial, to: places, epoch) {
      case .sent: break
      case .late: throw Link.late
      case .ended: throw Link.gone
      case .tooLarge: giveUp(request.serial, Link.tooLarge)
      }
    }
    let result = body(epoch)
    for serial in state.withLock({ $0.posted.over }) {
      if let outcome = state.withLock({ $0.posted.requests[serial]?.outcome }) {
        end(serial, outcome)
      }
    }
    return result
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
  func keys(
    _ known: [Key], at location: Location, with changes: [Key: PostedChanges.Change]
  ) throws(EngineError) -> [Key] {
    guard [.host, .user].contains(location.place) else { return known }
    var keys = Set(known)
    for (key, change) in changes where try target(of: key, in: location.domain) == location.place {
      if change.value == nil { keys.remove(key) } else { keys.insert(key) }
    }
    return Array(keys)
  }
}
