import PreferenceModel
import PreferenceProtocol
import PropertyList
import Synchronization
import SystemCalls

// Changes whose answers no caller waits for. Their serials have the bit `Origin.ordered`, by which
// an owner knows which of them it has carried out.

extension StoreClient {
  /// The most changes that may wait for an owner.
  private static let mostWaiting = 10_000

  public func post(
    _ intents: [Intent], by author: Author, done: @escaping @Sendable (EngineError?) -> Void
  ) {
    if isReadOnly { return done(EngineError(.readOnly, "mounted with -o ro")) }
    if search.manner.isBrief {
      do throws(EngineError) { _ = try apply(intents, by: author) } catch { return done(error) }
      return done(nil)
    }
    if ForkedProcess.isCopy { return done(Self.copyError.about(intents)) }
    waitForTurn()
    // The owner does not change here: a new one is established only under the turn.
    let (request, owner, canKeep) = state.withLock { state in
      state.lastPosted += 1
      let request = PostedChanges.Posted(
        serial: state.lastPosted, intents: intents, author: author, done: done)
      state.posted.add(request)
      hasPosted.store(true, ordering: .releasing)
      return (request, state.owner, state.readable != nil)
    }
    let serial = request.serial
    let sent = owner.map { transmit(request, to: $0) } ?? .ended
    let refusal = sent.refusal
    let refused = state.change { state -> PostedChanges.Posted? in
      // The answer may have come already.
      if sent == .sent { state.posted.noteSent(serial) }
      state.isSending = false
      // In the same step: who sends what is left must not find a request that was refused.
      return refusal == nil ? nil : remove(serial, isRefused: true, &state)
    }
    refused?.done(refusal?.about(intents))
    switch sent {
    case .sent, .late, .tooLarge: break
    case .ended: awaitSending(of: serial, canKeep: canKeep)
    }
  }

  /// Waits until no other thread sends, and takes the turn.
  private func waitForTurn() {
    _ = state.wait { state -> Bool? in
      guard !state.isSending else { return nil }
      state.isSending = true
      return true
    }
  }

  private func endTurn() { state.change { $0.isSending = false } }

  // MARK: - Sending

  /// Sends a request. The caller has the turn, and then notes that the request was sent.
  private func transmit(
    _ request: PostedChanges.Posted, to owner: OwnerConnection
  ) -> Link.Transmission {
    let (serial, epoch) = (request.serial, owner.epoch)
    if let obstacle = owner.obstacle.present {
      receive(.failed(obstacle), for: serial, epoch)
      state.withLock { $0.hasWaitedInVain = false }
      return .sent
    }
    // The owner carries it out however late.
    let change = Request.apply(
      serial: serial | Origin.ordered, request.author, deadline: Instant(nanoseconds: .max),
      .atOnce, request.intents)
    let deadline = Instant.now.advanced(milliseconds: state.withLock { $0.patience })
    let sent = owner.link.post(change, until: deadline) { [weak self] message in
      self?.receive(message, for: serial, epoch)
    }
    if sent != .ended { state.withLock { $0.hasWaitedInVain = sent == .late } }
    return sent
  }

  /// Sends a candidate owner the changes that the last owner has not answered, and then makes
  /// requests go to it. No thread posts meanwhile. Throws if the candidate does not receive the
  /// changes.
  /// - Parameter domains: the domains of each place that this process knows of from then on.
  /// - Returns: the mounts of this process at that moment, and what they have claimed.
  func establish(
    _ owner: OwnerConnection, _ domains: [Place: Set<DomainName>]
  ) throws(EngineError) -> [Author: Set<Key>] {
    waitForTurn()
    defer { endTurn() }
    // One that is over meanwhile is not sent: its poster was told that it was refused.
    for request in state.withLock({ $0.posted.inOrder })
    where state.withLock({ $0.posted.requests[request.serial] != nil }) {
      switch transmit(request, to: owner) {
      case .sent: state.change { $0.posted.noteSent(request.serial) }
      case .late: throw Link.late
      case .ended: throw Link.gone
      case .tooLarge: end(request.serial, Link.tooLarge)
      }
    }
    let (mounts, early) = state.change { state in
      state.establish(owner)
      state.domains = domains
      return (state.mounts, state.posted.inOrder.filter { $0.outcome != nil })
    }
    search.noteFound()
    for request in early { end(request.serial, request.outcome?.error) }
    return mounts
  }

  // MARK: - Answers

  /// Receives the owner's answer; nil, or that it gives the store up: the owner is gone, and the
  /// change is sent to the next one.
  private func receive(_ message: Message?, for serial: UInt64, _ epoch: Int) {
    switch message {
    case nil: break
    case .failed(let error) where error.reason == .ownerGone: break
    case .failed(let error): finish(serial, PostedChanges.Outcome(error: error), epoch)
    default: finish(serial, PostedChanges.Outcome(), epoch)
    }
  }

  /// Ends a request with the outcome that the owner of the epoch gives. The answer of a candidate
  /// owner counts only once it is the owner, because until then this process reads what it knew of
  /// the last one.
  private func finish(_ serial: UInt64, _ outcome: PostedChanges.Outcome, _ epoch: Int) {
    let isEarly = state.withLock { state in
      guard epoch > state.epoch else { return false }
      state.posted.note(outcome, of: serial)
      return true
    }
    if !isEarly { end(serial, outcome.error) }
  }

  /// Ends a request, and calls its `done`. That happens also on success, because a reader may have
  /// cached what it found while the request was not over.
  private func end(_ serial: UInt64, _ error: EngineError?) {
    let request = state.change { remove(serial, isRefused: error != nil, &$0) }
    request?.done(request.flatMap { error?.about($0.intents) })
  }

  private func remove(
    _ serial: UInt64, isRefused: Bool, _ state: inout State
  ) -> PostedChanges.Posted? {
    defer { if state.posted.requests.isEmpty { hasPosted.store(false, ordering: .releasing) } }
    return state.posted.remove(serial, isRefused: isRefused)
  }

  /// Waits until the seeker has sent the request to another owner. If none comes in time, the
  /// request stays for a later one, or is refused.
  /// - Parameter canKeep: whether it may stay.
  private func awaitSending(of serial: UInt64, canKeep: Bool) {
    let deadline = Instant.now.advanced(milliseconds: state.withLock { $0.patience })
    let isSent = state.wait(until: deadline) { state -> Bool? in
      guard let request = state.posted.requests[serial] else { return true }
      return request.isSent || state.isClosing ? true : nil
    }
    guard isSent == nil else { return }
    waitForTurn()
    defer { endTurn() }
    let (wasMissing, count, request) = state.withLock { state in
      defer { state.hasWaitedInVain = true }
      return (state.hasWaitedInVain, state.posted.requests.count, state.posted.requests[serial])
    }
    // The seeker may have sent the request before this thread got the turn.
    guard let request, !request.isSent else { return }
    if !canKeep || count > Self.mostWaiting { return end(serial, Self.noOwnerError) }
    if !wasMissing {
      let waiting = EngineError(
        .owned,
        "no owner of the store answers; this change and the next ones wait in this process until one "
          + "does, and are lost if the process ends before")
      log("\(waiting.about(request.intents))")
    }
  }

  // MARK: - Reading posted changes

  /// Returns what the changes that are not over will make of the key; nil if there are none. Cost
  /// where there are none: one load.
  func postedChange(of key: Key, in domain: DomainName) -> PostedChanges.Change? {
    guard hasPosted.load(ordering: .acquiring) else { return nil }
    return state.withLock { $0.posted.change(of: key, in: domain) }
  }

  /// Returns what the changes that are not over will make of keys of the domain; nil if there are
  /// none. Cost: O(keys); where there are none, one load.
  func postedChanges(of domain: DomainName) -> [Key: PostedChanges.Change]? {
    guard hasPosted.load(ordering: .acquiring) else { return nil }
    return state.withLock { $0.posted.changes(of: domain) }
  }
}

extension Link.Transmission {
  /// Why a request that was not sent is refused; nil if it was sent, or waits for the next owner.
  fileprivate var refusal: EngineError? {
    switch self {
    case .late: Link.late
    case .tooLarge: Link.tooLarge
    case .sent, .ended: nil
    }
  }
}
