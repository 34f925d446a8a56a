import PreferenceModel
import PreferenceProtocol
import PropertyList
import Synchronization
import SystemCalls

/// Sends changes to the owner whose answer no caller waits for, and keeps them until they are over:
/// answered or refused. A caller waits only for its turn, and while there is no owner, 5 s at most.
///
/// Promises: changes are sent one after the other, and carried out in that order and before
/// whatever this process asks for later. If the owner is gone before it has answered a change, the
/// change is sent again to the next owner: in the same order, before any other request of this
/// process, and it is carried out once. Until a change is over, this process reads what the change
/// will make. The serials of these changes have the bit `Origin.ordered`, by which an owner knows
/// which of them it has carried out.
///
/// Threads: any. Locks: the turn (`isSending`), which a thread holds while it sends; and the monitor,
/// under which nothing blocks. The succession's lock may be taken under the turn, but not under the monitor.
///
/// Without an owner: changes wait in this process for the next one, up to `mostWaiting` of them. If
/// there has never been an owner, a change is refused, because nobody knows then whether it is
/// allowed (a forced key), or whether the key has that value already.
final class PostQueue: Sendable {
  private struct State {
    var posted = PostedChanges()
    var lastSerial: UInt64 = 0
    /// Whether a thread has the turn. No other thread sends meanwhile.
    var isSending = false
    /// The epoch of the last candidate owner. Each attempt has a new one, because a candidate that
    /// received only some of the changes may not become the owner.
    var lastEpoch = 0
    /// The epoch of the present owner, whose answers count.
    var epoch = 0
    var isClosing = false
  }

  private let succession: Succession
  private let client: UInt64
  private let log: @Sendable (LogLine) -> Void
  private let state = Monitor(State())
  /// Whether there are changes that are not over; readers load it without a lock.
  private let hasPosted = Atomic<Bool>(false)

  /// The most changes that may wait for an owner.
  private static let mostWaiting = 10_000

  init(_ succession: Succession, client: UInt64, log: @escaping @Sendable (LogLine) -> Void) {
    (self.succession, self.client, self.log) = (succession, client, log)
  }

  /// Whether there are changes that are not over. Cost: a load.
  var hasChanges: Bool { hasPosted.load(ordering: .acquiring) }

  /// Ends all waiting for a next owner.
  func close() { state.change { $0.isClosing = true } }

  /// See `PersistentPlaces.post`.
  func post(
    _ intents: [Intent], by author: Author, done: @escaping @Sendable (EngineError?) -> Void
  ) {
    waitForTurn()
    let request = state.withLock { state in
      state.lastSerial += 1
      let request = PostedChanges.Request(
        serial: state.lastSerial, intents: intents, author: author, done: done)
      state.posted.add(request)
      hasPosted.store(true, ordering: .releasing)
      return request
    }
    let serial = request.serial
    // The owner does not change here: a new one is established only under the turn.
    let (owner, readable, epoch) = succession.present
    let sent = owner.map { transmit(request, to: $0, epoch) } ?? .ended
    let refusal = sent.refusal
    let refused = state.change { state -> PostedChanges.Request? in
      // The answer may have come already.
      if sent == .sent { state.posted.noteSent(serial, to: epoch) }
      state.isSending = false
      // In the same step: who sends what is left must not find a request that was refused.
      return refusal == nil ? nil : remove(serial, isRefused: true, &state)
    }
    refused?.done(refusal?.about(intents))
    switch sent {
    case .sent, .late, .tooLarge: break
    case .ended: awaitNextOwner(serial, canKeep: readable != nil)
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
    _ request: PostedChanges.Request, to places: OwnerConnection, _ epoch: Int
  ) -> Link.Transmission {
    let serial = request.serial
    if let obstacle = places.obstacle.present {
      receive(.failed(obstacle), for: serial, epoch)
      return .sent
    }
    // The owner carries it out however late.
    let change = Request.apply(
      serial: serial | Origin.ordered, request.author, deadline: Instant(nanoseconds: .max),
      .atOnce, request.intents)
    let deadline = Instant.now.advanced(milliseconds: succession.patience)
    let sent = places.link.post(change, until: deadline) { [weak self] message in
      self?.receive(message, for: serial, epoch)
    }
    if sent != .ended { succession.noteMissing(sent == .late) }
    return sent
  }

  /// Sends a candidate owner the changes that the last owner has not answered, and then calls
  /// `establish`, which makes it the owner. No thread posts meanwhile. Throws if the candidate does
  /// not receive the changes.
  func sendUnanswered<Result>(
    to places: OwnerConnection, _ establish: (_ epoch: Int) -> Result
  ) throws(EngineError) -> Result {
    waitForTurn()
    defer { endTurn() }
    let (epoch, unsent) = state.withLock { state in
      state.lastEpoch += 1
      return (state.lastEpoch, state.posted.unsent(to: state.lastEpoch))
    }
    // One that is over meanwhile is not sent: its poster was told that it was refused.
    for request in unsent where state.withLock({ $0.posted.requests[request.serial] != nil }) {
      switch transmit(request, to: places, epoch) {
      case .sent: state.change { $0.posted.noteSent(request.serial, to: epoch) }
      case .late: throw Link.late
      case .ended: throw Link.gone
      case .tooLarge: end(request.serial, Link.tooLarge)
      }
    }
    let result = establish(epoch)
    let early = state.withLock { state in
      state.epoch = epoch
      return state.posted.over.map { ($0, state.posted.requests[$0]?.outcome?.error) }
    }
    for (serial, error) in early { end(serial, error) }
    return result
  }

  // MARK: - Answers

  /// Receives the owner's answer; nil, or that it gives the store up: the owner is gone, and the change is sent to the next one.
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
  ) -> PostedChanges.Request? {
    defer { if state.posted.requests.isEmpty { hasPosted.store(false, ordering: .releasing) } }
    return state.posted.remove(serial, isRefused: isRefused)
  }

  /// Waits until the seeker has sent the request to another owner. If none comes in time, the
  /// request stays for a later one, or is refused.
  /// - Parameter canKeep: whether it may stay.
  private func awaitNextOwner(_ serial: UInt64, canKeep: Bool) {
    let deadline = Instant.now.advanced(milliseconds: succession.patience)
    let isSent = state.wait(until: deadline) { state -> Bool? in
      guard let request = state.posted.requests[serial] else { return true }
      return request.epoch != nil || state.isClosing ? true : nil
    }
    guard isSent == nil else { return }
    waitForTurn()
    defer { endTurn() }
    let wasMissing = succession.noteMissing(true)
    let (count, request) = state.withLock { ($0.posted.requests.count, $0.posted.requests[serial]) }
    // The seeker may have sent the request before this thread got the turn.
    guard let request, request.epoch == nil else { return }
    if !canKeep || count > Self.mostWaiting { return end(serial, Succession.noOwnerError) }
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
  func change(of key: Key, in domain: DomainName) -> PostedChanges.Change? {
    guard hasChanges else { return nil }
    return state.withLock { $0.posted.change(of: key, in: domain) }
  }

  /// Returns what the changes that are not over will make of keys of the domain; nil if there are
  /// none. Cost: O(keys); where there are none, one load.
  func changes(of domain: DomainName) -> [Key: PostedChanges.Change]? {
    guard hasChanges else { return nil }
    return state.withLock { $0.posted.changes(of: domain) }
  }
}

extension Link.Transmission {
  /// Why a request that was not sent is refused; nil: it was sent, or waits for the next owner.
  fileprivate var refusal: EngineError? {
    switch self {
    case .late: Link.late
    case .tooLarge: Link.tooLarge
    case .sent, .ended: nil
    }
  }
}
