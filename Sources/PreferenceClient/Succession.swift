import PreferenceModel
import SystemCalls

/// Which process owns the store, over the whole life of this one: this process, another, or nobody
/// for a moment.
///
/// Promises: when the owner is gone, however it ended, this process becomes the owner if it can,
/// else connects to the next one, which it may start. An owner that is stopped is not replaced. Each
/// role that is adopted has an epoch, a number larger than that of the role before.
///
/// Threads: any; the seeker's looks for the next owner. One lock, the monitor's, under which nothing
/// blocks.
///
/// Half-broken states: no owner, and this process cannot be one: every request that needs an owner
/// fails with ETIMEDOUT after `patience`, and the seeker goes on looking.
final class Succession: Sendable {
  /// Makes a new role the one that requests go to, with `establish`; closes it and throws if that
  /// cannot be done.
  /// - Parameter known: what this process knew of the store until now.
  typealias Adopt =
    @Sendable (_ role: Member.Role, _ known: [Location: DomainSnapshot]) throws(EngineError) -> Void

  private struct State {
    var role = Member.Role.seeking(nil)
    var epoch = 0
    /// Why there is no owner, as it was logged last.
    var lastFailure: EngineError?
    /// Somebody has waited for an owner in vain: the next one does not wait for long.
    var isMissing = false
    var isClosing = false
  }

  private let state = Monitor(State())
  private let search: OwnerSearch
  private let ways: Member.Ways
  private let isReadOnly: Bool
  private let log: @Sendable (String) -> Void
  private let adopt = Monitor<Adopt?>(nil)
  private let seeker = Seeker()

  /// Milliseconds after a look that failed for another reason than that there is no owner.
  private static let errorPause: Int64 = 500
  /// Milliseconds between two looks of a process that only reads, for an owner whose changes it
  /// could follow.
  private static let followPause: Int64 = 500

  init(
    _ search: OwnerSearch, _ ways: Member.Ways, readOnly: Bool,
    log: @escaping @Sendable (String) -> Void
  ) {
    (self.search, self.ways, self.log) = (search, ways, log)
    isReadOnly = readOnly
  }

  /// Gets the first owner, within 5 s unless the process is a lasting one, and looks for the next
  /// ones from then on. Call it once.
  func begin(_ adopt: @escaping Adopt) throws(EngineError) {
    self.adopt.change { $0 = adopt }
    let deadline = Instant.now.advanced(milliseconds: RemotePlaces.patience)
    do throws(EngineError) {
      try search.find(until: deadline) { () throws(EngineError) in try adopt(look(), [:]) }
    } catch  where ways.isLasting && OwnerSearch.isPassing(error) {
      state.withLock { $0.isMissing = true }
      seeker.ask()
    }
    seeker.start { [weak self] in self?.seek() }
  }

  /// Gives the store up: an owner saves everything first.
  func close() {
    state.change { $0.isClosing = true }
    // The seeker may be about to adopt a role.
    seeker.stop()
    role.close()
  }

  // MARK: - The present

  /// What this process is to the store now.
  var role: Member.Role { state.withLock { $0.role } }

  /// The role and its epoch, of one moment.
  var present: (role: Member.Role, epoch: Int) { state.withLock { ($0.role, $0.epoch) } }

  /// Milliseconds that a request waits for the next owner: few after others have waited in vain.
  var patience: Int64 {
    state.withLock { $0.isMissing } ? RemotePlaces.readPatience : RemotePlaces.patience
  }

  /// ETIMEDOUT: there is no owner.
  static let ownerless = EngineError(
    .system(.timedOut), "the owner of the store is gone, and no other process has taken over")

  /// Asks the present places, and the next ones if these have lost their owner.
  func ask<Result>(
    until deadline: Instant? = nil,
    _ body: (any StorePlaces) throws(EngineError) -> Result
  ) throws(EngineError) -> Result {
    var deadline = deadline
    while true {
      let (role, epoch) = present
      do {
        if let places = role.readable { return try body(places) }
      } catch  where error.reason == .ownerGone {}
      let end = deadline ?? Instant.now.advanced(milliseconds: patience)
      deadline = end
      let isOther = state.wait(until: end) { $0.epoch != epoch || $0.isClosing ? true : nil }
      guard isOther == true, !state.withLock({ $0.isClosing }) else {
        state.withLock { $0.isMissing = $0.role.places == nil }
        throw Self.ownerless
      }
    }
  }

  /// The places of an owner, waited for until the deadline.
  func places(until deadline: Instant) -> (any StorePlaces)? {
    state.wait(until: deadline) { $0.role.places }
  }

  /// Notes whether somebody has waited for an owner in vain.
  /// - Returns: whether that was known already.
  @discardableResult
  func noteMissing(_ isMissing: Bool) -> Bool {
    state.withLock { state in
      defer { state.isMissing = isMissing }
      return state.isMissing
    }
  }

  // MARK: - Roles change

  /// Requests go to the role from now on.
  func establish(_ role: Member.Role, epoch: Int) {
    state.change { state in
      (state.role, state.epoch) = (role, epoch)
      (state.lastFailure, state.isMissing) = (nil, false)
    }
    search.noteFound()
  }

  /// The role that was established last serves now. It may have lost its owner meanwhile; a process
  /// that only reads looks for an owner whose changes it can follow.
  func noteServing(_ role: Member.Role) {
    if case .client(let remote) = role, remote.hasEnded { ownerIsGone() }
    if case .owner = role, isReadOnly { seeker.ask() }
  }

  /// Connects to the owner, or becomes it. Throws `.owned` if neither is possible now.
  private func look() throws(EngineError) -> Member.Role {
    if let remote = try connect() { return .client(remote) }
    if let own = ways.own { return .owner(try own()) }
    throw search.unanswered
  }

  private func connect() throws(EngineError) -> RemotePlaces? {
    try search.connect { [weak self] in self?.ownerIsGone() }
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
  /// - Returns: milliseconds until the next look; nil: none is needed.
  private func seek() -> Int64? {
    let (role, isClosing) = state.withLock { ($0.role, $0.isClosing) }
    guard !isClosing, let adopt = adopt.withLock({ $0 }) else { return nil }
    do throws(EngineError) {
      switch role {
      case .client: return nil
      case .owner:
        guard isReadOnly else { return nil }
        guard let next = try connect() else { return Self.followPause }
        try adopt(.client(next), role.loaded)
      case .seeking: try adopt(look(), role.loaded)
      }
      role.close()
      return isReadOnly ? Self.followPause : nil
    } catch {
      return pause(after: error)
    }
  }

  private func pause(after error: EngineError) -> Int64 {
    var error = error
    if OwnerSearch.isPassing(error) {
      do throws(EngineError) {
        try search.startOwner()
        return OwnerSearch.pause
      } catch let failure {
        error = failure
      }
    }
    logFailure(error)
    return Self.errorPause
  }

  /// Logs why there is no owner, once for each reason.
  private func logFailure(_ error: EngineError) {
    let isNews = state.withLock { state in
      defer { state.lastFailure = error }
      return state.lastFailure != error
    }
    if isNews { log("no owner of the store yet: \(error)") }
  }
}
