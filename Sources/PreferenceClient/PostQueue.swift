import PreferenceModel
import PreferenceProtocol
import PropertyList
import Synchronization
import SystemCalls

/// Changes that are not waited for, on their way to the owner.
///
/// Promises: they are sent one after the other, carried out in that order, and before whatever is
/// asked for afterwards. Each is sent to the owner, and again to the next one if the owner is gone
/// before it has answered: in the same order, before anybody else asks the new owner, and it is
/// carried out once. Until a change is over this process reads what the change will make. Serials
/// with the `ordered` bit tell an owner what it has had.
///
/// Threads: any. Locks: the turn (`isSending`), which is waited for and held while something is
/// sent; the monitor's, for a look; the succession's is taken under neither.
///
/// Half-broken states: no owner: what is set waits in this process for the next one, up to
/// `mostWaiting` changes. If there has never been an owner it is refused, because a program that
/// sets without having read would undo what is there.
final class PostQueue: Sendable {
  private struct State {
    var posted = PostedChanges()
    var lastSerial: UInt64 = 0
    /// A thread has the turn: it sends, and nobody else does.
    var isSending = false
    /// Epochs are counted by attempt: an owner that received only a part may not become the owner.
    var lastEpoch = 0
    /// The epoch of the owner whose answers count.
    var epoch = 0
    var isClosing = false
  }

  private let succession: Succession
  private let client: UInt64
  private let log: @Sendable (String) -> Void
  private let state = Monitor(State())
  /// Whether changes are on their way; readers look at it without a lock.
  private let hasPosted = Atomic<Bool>(false)

  /// Changes that may wait for an owner.
  private static let mostWaiting = 10_000

  init(_ succession: Succession, client: UInt64, log: @escaping @Sendable (String) -> Void) {
    (self.succession, self.client, self.log) = (succession, client, log)
  }

  /// Nobody is waited for any more.
  func close() { state.change { $0.isClosing = true } }

  /// See `PersistentPlaces.post`.
  func post(
    _ intents: [Intent], by author: Author, done: @escaping @Sendable (EngineError?) -> Void
  ) {
    waitForTurn()
    let serial = state.withLock { state in
      state.lastSerial += 1
      let request = PostedChanges.Request(
        serial: state.lastSerial, intents: intents, author: author, done: done)
      state.posted.add(request)
      hasPosted.store(true, ordering: .releasing)
      return state.lastSerial
    }
    // A new owner is established under the turn only.
    let (role, epoch) = succession.present
    let sent = role.places.map { transmit(serial, to: $0, epoch) } ?? .ended
    endTurn()
    switch sent {
    case .sent: break
    case .late: end(serial, Link.late)
    case .tooLarge: end(serial, Link.tooLarge)
    case .ended: awaitNextOwner(serial, canKeep: role.hasHadOwner)
    }
  }

  private func waitForTurn() {
    _ = state.wait { state -> Bool? in
      guard !state.isSending else { return nil }
      state.isSending = true
      return true
    }
  }

  private func endTurn() { state.change { $0.isSending = false } }

  // MARK: - Sending

  /// Sends a request whose turn it is.
  private func transmit(
    _ serial: UInt64, to places: any StorePlaces, _ epoch: Int
  ) -> Link.Transmission {
    guard let request = state.withLock({ $0.posted.requests[serial] }) else { return .sent }
    guard let remote = places as? RemotePlaces else { return apply(request, to: places, epoch) }
    let deadline = Instant.now.advanced(milliseconds: succession.patience)
    let sent = remote.post(
      request.intents, by: request.author, serial: serial, until: deadline
    ) { [weak self] message in self?.receive(message, for: serial, epoch) }
    // The answer may have come already.
    if sent == .sent { state.change { $0.posted.noteSent(serial, to: epoch) } }
    if sent != .ended { succession.noteMissing(sent == .late) }
    return sent
  }

  /// Carries a request out where this process is the owner.
  private func apply(
    _ request: PostedChanges.Request, to places: any StorePlaces, _ epoch: Int
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

  /// Sends a new owner what the last one has not answered, then lets the body establish it: nobody
  /// posts meanwhile. Throws if the new owner does not receive it.
  func sendUnanswered<Result>(
    to places: any StorePlaces, _ establish: (_ epoch: Int) -> Result
  ) throws(EngineError) -> Result {
    waitForTurn()
    defer { endTurn() }
    let (epoch, unsent) = state.withLock { state in
      state.lastEpoch += 1
      return (state.lastEpoch, state.posted.unsent(to: state.lastEpoch))
    }
    for request in unsent {
      switch transmit(request.serial, to: places, epoch) {
      case .sent: break
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

  /// The owner's answer; nil: the owner is gone, and the next one is asked.
  private func receive(_ message: Message?, for serial: UInt64, _ epoch: Int) {
    switch message {
    case nil: break
    case .failed(let error): finish(serial, PostedChanges.Outcome(error: error), epoch)
    default: finish(serial, PostedChanges.Outcome(), epoch)
    }
  }

  /// The answer of a candidate owner counts only once it is the owner: until then this process reads
  /// what it knew of the last one.
  private func finish(_ serial: UInt64, _ outcome: PostedChanges.Outcome, _ epoch: Int) {
    let isEarly = state.withLock { state in
      guard epoch > state.epoch else { return false }
      state.posted.note(outcome, of: serial)
      return true
    }
    if !isEarly { end(serial, outcome.error) }
  }

  /// The request is over. Whoever posted it looks again: a reader may have kept what it found while
  /// the request was on its way.
  private func end(_ serial: UInt64, _ error: EngineError?) {
    let request = state.change { state in
      defer { if state.posted.requests.isEmpty { hasPosted.store(false, ordering: .releasing) } }
      return state.posted.remove(serial, isRefused: error != nil)
    }
    request?.done(error)
  }

  /// Waits until the seeker has sent the request to another owner. If none comes, the request stays
  /// for one that does, or is refused.
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
    let (count, isUnsent) = state.withLock { state in
      let request = state.posted.requests[serial]
      return (state.posted.requests.count, request != nil && request?.epoch == nil)
    }
    // The seeker may have sent it at the last moment.
    guard isUnsent else { return }
    if !canKeep || count > Self.mostWaiting { return end(serial, Succession.ownerless) }
    if !wasMissing {
      log("no owner of the store answers: what is set waits for one in this process")
    }
  }

  // MARK: - Reading what is on its way

  /// What the changes that are on their way make of keys of the domain; nil: none is.
  func changes(of domain: DomainName) -> [Key: PostedChanges.Change]? {
    guard hasPosted.load(ordering: .acquiring) else { return nil }
    return state.withLock { $0.posted.changes[domain] }
  }
}
