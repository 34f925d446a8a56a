import PreferenceModel
import Synchronization
import SystemCalls

/// Knows which process owns the store over the whole life of this process: this one, another, or
/// for a moment none. Finds the next owner when the present one is gone.
///
/// Promises: when the owner is gone, however it ended, this process connects to the next owner, or
/// becomes the owner if it may, or starts one if it may. An owner that is stopped (SIGSTOP) is not
/// replaced.
/// Each role that is adopted has an epoch, a number larger than that of the role before.
///
/// Threads: any; the seeker's thread looks for the next owner. Locks: two monitors, `state` and
/// `adopt`. Neither is taken under the other, and nothing blocks under them.
///
/// Half-broken states: while there is no owner, and this process cannot be one, every request that
/// needs an owner fails with ETIMEDOUT after `patience`, and the seeker goes on looking.
final class Succession: Sendable {
  /// Makes requests go to a new role, by `establish`; closes the role and throws if that is not
  /// possible.
  /// - Parameter known: the lists that this process had read, as it knew them last.
  typealias Adopt =
    @Sendable (_ role: Member.Role, _ known: [Location: DomainSnapshot]) throws(EngineError) -> Void

  private struct State {
    var role = Member.Role.seeking(nil)
    var epoch = 0
    /// The last reason for having no owner that was logged.
    var lastFailure: EngineError?
    /// Whether a request has waited for an owner in vain, so that the next ones wait less.
    var hasWaitedInVain = false
    var isClosing = false
    /// How many looks for an owner have begun, and the number of the last one that found nobody.
    var looks = 0
    var lastVainLook = 0
    /// Whether a read has waited for a look in vain, so that the next ones do not wait.
    var hasLookedInVain = false
    /// The places that this process owns until it ends. They are kept because `own` points to them.
    var owned: OwnPlaces?
  }

  /// Places in an object, to which an atomic number can point.
  private final class OwnPlaces: Sendable {
    let places: any StorePlaces

    init(_ places: any StorePlaces) { self.places = places }
  }

  private let state = Monitor(State())
  /// The places of a process that owns the store until it ends, unretained; 0: it does not. A
  /// request of a mount asks for them several times, and the role costs a lock and some references
  /// each time.
  private let own = Atomic<UInt>(0)
  /// Whether this process has mounts.
  let hasMounts = Atomic(false)
  private let search: OwnerSearch
  private let ways: Member.Ways
  private let isReadOnly: Bool
  private let log: @Sendable (String) -> Void
  private let adopt = Monitor<Adopt?>(nil)
  private let seeker = Seeker()

  /// Milliseconds until the next look after one that failed, unless it failed only because there is
  /// no owner.
  private static let errorPause: Int64 = 500
  /// Milliseconds between two looks of a process that only reads: for an owner that writes, whose
  /// changes it can follow.
  private static let followPause: Int64 = 500

  init(
    _ search: OwnerSearch, _ ways: Member.Ways, readOnly: Bool,
    log: @escaping @Sendable (String) -> Void
  ) {
    (self.search, self.ways, self.log) = (search, ways, log)
    isReadOnly = readOnly
  }

  /// Finds the first owner, for which it waits 5 s at most, and looks for the next ones from then
  /// on. Without an owner it throws, unless the process is a lasting one and there may be an owner
  /// later. Call it once.
  func begin(_ adopt: @escaping Adopt) throws(EngineError) {
    self.adopt.change { $0 = adopt }
    let deadline = Instant.now.advanced(milliseconds: RemotePlaces.patience)
    do throws(EngineError) {
      try search.find(until: deadline) { () throws(EngineError) in try adopt(look(), [:]) }
    } catch  where ways.isLasting && OwnerSearch.mayPass(error) {
      state.withLock { $0.hasWaitedInVain = true }
      if !OwnerSearch.isPassing(error) { logFailure(error) }
      seeker.wake()
    }
    seeker.start { [weak self] in self?.seek() }
  }

  /// Gives the store up: an owner saves everything first.
  func close() {
    state.change { $0.isClosing = true }
    // Before the role is closed, because the seeker may be adopting another one.
    seeker.stop()
    role.close()
  }

  // MARK: - The present

  /// The present role of this process.
  var role: Member.Role { state.withLock { $0.role } }

  /// The present role and its epoch, read together.
  var present: (role: Member.Role, epoch: Int) { state.withLock { ($0.role, $0.epoch) } }

  /// The places of this process, if it owns the store until it ends; else nil. Cost: a load.
  var ownPlaces: (any StorePlaces)? {
    guard let pointer = UnsafeRawPointer(bitPattern: own.load(ordering: .acquiring)) else {
      return nil
    }
    return Unmanaged<OwnPlaces>.fromOpaque(pointer)._withUnsafeGuaranteedRef { $0.places }
  }

  /// `Role.places` of the present role.
  var places: (any StorePlaces)? { ownPlaces ?? role.places }

  /// `Role.readable` of the present role.
  var readable: (any StorePlaces)? { ownPlaces ?? role.readable }

  /// Milliseconds that a request waits for the next owner: 5 s, or 200 ms after another has waited
  /// in vain. None while there has never been an owner and the last look failed: a program that can
  /// start none must not wait at each of its requests.
  var patience: Int64 {
    state.withLock { state in
      if case .seeking(nil) = state.role, state.lastFailure != nil { return 0 }
      return state.hasWaitedInVain ? RemotePlaces.readPatience : RemotePlaces.patience
    }
  }

  /// ETIMEDOUT: there is no owner.
  static let noOwnerError = EngineError(
    .system(.timedOut), "the owner of the store is gone, and no other process has taken over")

  /// EPERM: this process is a copy that fork(2) has made.
  static let copyError = EngineError(
    .system(.notPermitted),
    "this process is a copy that fork(2) has made of a program; it must call execve(2) before it "
      + "uses preferences")

  /// Calls the body with the present places, and again with those of the next owner if they have
  /// lost theirs. Throws ETIMEDOUT if there is no next owner before the deadline (nil: `patience`),
  /// EPERM in a copy of the process.
  func ask<Result>(
    until deadline: Instant? = nil,
    _ body: (any StorePlaces) throws(EngineError) -> Result
  ) throws(EngineError) -> Result {
    if ForkedProcess.isCopy { throw Self.copyError }
    if let ownPlaces { return try body(ownPlaces) }
    var deadline = deadline
    while true {
      let (role, epoch) = present
      do {
        if let places = role.readable { return try body(places) }
      } catch  where error.reason == .ownerGone {}
      let end = deadline ?? Instant.now.advanced(milliseconds: patience)
      deadline = end
      seeker.startAgain()
      let isOther = state.wait(until: end) { $0.epoch != epoch || $0.isClosing ? true : nil }
      guard isOther == true, !state.withLock({ $0.isClosing }) else {
        state.withLock { $0.hasWaitedInVain = $0.role.places == nil }
        throw Self.noOwnerError
      }
    }
  }

  /// Calls the body with places to read from: `ask`, once `awaitLook` has returned.
  func read<Result>(
    _ body: (any StorePlaces) throws(EngineError) -> Result
  ) throws(EngineError) -> Result {
    if !ForkedProcess.isCopy, ownPlaces == nil { awaitLook() }
    return try ask(body)
  }

  /// Where the owner has ended: returns when there is another one, or when a look that began during
  /// this call has found nobody and every change of the last owner is known. Until then there may
  /// be a next owner that has acknowledged a change of which this process has not heard. (An owner
  /// that comes and ends between two looks is missed.)
  ///
  /// Waits `lookPatience` at most. After a wait that ended so, reads wait no more until there is an
  /// owner. They do not wait either once a look has failed for another reason than that there is no
  /// owner; nor in a process with mounts, because the next owner waits for them.
  private func awaitLook() {
    let (epoch, looks, isUseful) = state.withLock { state in
      let isUseful = !state.hasLookedInVain && state.lastFailure == nil
      return (state.epoch, state.looks, state.role.mayBeReplaced && isUseful)
    }
    guard isUseful, !hasMounts.load(ordering: .relaxed) else { return }
    handleLostOwner()
    seeker.wake()
    let deadline = Instant.now.advanced(milliseconds: Self.lookPatience)
    let isOver = state.wait(until: deadline) { state -> Bool? in
      let isFound = state.epoch != epoch || state.isClosing || state.lastFailure != nil
      return isFound || state.lastVainLook > looks && state.role.hasAll ? true : nil
    }
    guard isOver == nil else { return }
    state.withLock { if $0.epoch == epoch { $0.hasLookedInVain = true } }
  }

  /// Milliseconds that a read waits for a look.
  private static let lookPatience: Int64 = 1000

  /// Waits for an owner, and returns its places; nil if there is none before the deadline.
  func places(until deadline: Instant) -> (any StorePlaces)? {
    seeker.startAgain()
    return state.wait(until: deadline) { $0.role.places }
  }

  /// Notes whether a request has waited for an owner in vain.
  /// - Returns: what was noted before.
  @discardableResult
  func noteMissing(_ hasWaitedInVain: Bool) -> Bool {
    state.withLock { state in
      defer { state.hasWaitedInVain = hasWaitedInVain }
      return state.hasWaitedInVain
    }
  }

  // MARK: - Roles change

  /// Makes requests go to the role.
  func establish(_ role: Member.Role, epoch: Int) {
    state.change { state in
      (state.role, state.epoch) = (role, epoch)
      (state.lastFailure, state.hasWaitedInVain, state.hasLookedInVain) = (nil, false, false)
      // A process that only reads may own the store many times.
      guard case .owner(let owned) = role, !isReadOnly else { return }
      let places = OwnPlaces(owned.places)
      state.owned = places
      let pointer = Unmanaged.passUnretained(places).toOpaque()
      own.store(UInt(bitPattern: pointer), ordering: .releasing)
    }
    search.noteFound()
  }

  /// Ends the adoption of the role that was established last. Looks for the next owner if the role
  /// has lost its owner meanwhile, or if this process only reads and can follow another's changes.
  func finishAdoption(_ role: Member.Role) {
    if case .client(let remote) = role, remote.hasEnded { handleLostOwner() }
    if case .owner = role, isReadOnly { seeker.wake() }
  }

  /// Connects to the owner, or becomes the owner. Throws `.owned` if neither is possible at the
  /// moment.
  private func look() throws(EngineError) -> Member.Role {
    let number = state.withLock { state in
      state.looks += 1
      return state.looks
    }
    if let remote = try connect() { return .client(remote) }
    if let own = ways.own { return .owner(try own()) }
    if !search.isAnyoneListening { state.change { $0.lastVainLook = number } }
    throw search.unanswered
  }

  private func connect() throws(EngineError) -> RemotePlaces? {
    try search.connect { [weak self] in self?.handleLostOwner() }
  }

  /// Has the seeker look for the next owner, if the present one is gone.
  private func handleLostOwner() {
    let isNews = state.change { state in
      guard case .client(let remote) = state.role, remote.hasEnded || remote.isOrphaned else {
        return false
      }
      state.role = .seeking(remote)
      return true
    }
    if isNews { seeker.wake() }
  }

  /// Looks for the next owner once.
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
      case .seeking(let last):
        let next = try look()
        last?.receiveRest()
        try adopt(next, role.loaded)
      }
      role.close()
      return isReadOnly ? Self.followPause : nil
    } catch {
      return startOwnerAndPause(after: error)
    }
  }

  /// Starts an owner if there is none, and returns the milliseconds until the next look.
  private func startOwnerAndPause(after error: EngineError) -> Int64 {
    var error = error
    if OwnerSearch.isPassing(error) {
      do throws(EngineError) {
        let isStarted = try search.startOwner()
        let hasFailed = state.withLock { $0.lastFailure != nil }
        return isStarted || !hasFailed ? OwnerSearch.pause : Self.errorPause
      } catch let failure {
        error = failure
      }
    }
    logFailure(error)
    return Self.errorPause
  }

  /// Logs why there is no owner, unless that was the last reason that was logged.
  private func logFailure(_ error: EngineError) {
    let isNews = state.change { state in
      defer { state.lastFailure = error }
      return state.lastFailure != error
    }
    if isNews { log("no owner of the store yet: \(error)") }
  }
}
