import PreferenceModel
import PreferenceProtocol
import Synchronization
import SystemCalls

/// Keeps this process connected to the owner of the store over the whole life of the process.
///
/// Promises: when the owner is gone, however it ended, this process connects to the next owner, and
/// starts one if it may. An owner that is stopped (SIGSTOP) is not replaced.
/// Each owner that is adopted has an epoch, a number larger than that of the owner before.
///
/// Threads: any; the seeker looks for the next owner, a thread that ends when there is one. Locks:
/// one monitor, under which nothing blocks.
///
/// A process that asks a few things and ends (`StoreClient.Manner.isBrief`) starts no thread: it looks for
/// an owner with its first request, and for the next one when it asks again. Nothing is adopted.
///
/// Half-broken states: while there is no owner, and none can be started, every request that needs an
/// owner fails with ETIMEDOUT after `patience`, and the seeker goes on looking. In a process that asks
/// a few things and ends, the first such request waits 5 s, and all fail with the same `.ownerGone`.
final class Succession: Sendable {
  /// Makes requests go to a new owner, by `establish`; closes the connection and throws if that is
  /// not possible.
  /// - Parameter known: the lists that this process had read, as it knew them last.
  typealias Adopt =
    @Sendable (_ owner: OwnerConnection, _ known: [Location: LocationSnapshot]) throws(EngineError)
    ->
    Void

  private struct State {
    /// The places to read from: those of the present owner, else of the last one, of which the
    /// locations that are loaded can be read; nil: there has been no owner yet.
    var readable: OwnerConnection?
    /// Whether there is no owner at the moment, so that this process looks for the next one.
    var isSeeking = true
    var epoch = 0
    /// The last reason for having no owner that was logged; that no owner could be had, in a process
    /// that asks a few things and ends.
    var lastFailure: EngineError?
    /// Whether a request has waited for an owner in vain, so that the next ones wait less.
    var hasWaitedInVain = false
    var isClosing = false
    /// Whether a read has waited for an owner in vain, so that the next ones do not wait.
    var hasReadInVain = false
    /// Makes requests go to a new owner; nil before `begin`.
    var adopt: Adopt?
    /// Whether a thread looks for an owner: the one that calls `begin`, or the seeker.
    var hasSeeker: Bool
    /// Whether that thread is to look once more.
    var isAsked = false

    /// The places of the present owner; nil if there is none.
    var places: OwnerConnection? { isSeeking ? nil : readable }

    /// Whether the owner has ended, so that another process may own the store.
    var mayBeReplaced: Bool { isSeeking ? readable != nil : readable?.isOrphaned == true }
  }

  private let state: Monitor<State>
  /// Whether this process has mounts.
  let hasMounts = Atomic(false)
  let search: OwnerSearch
  private let isLasting: Bool
  private let log: @Sendable (LogLine) -> Void

  /// Milliseconds until the next look after one that failed, unless it failed only because there is
  /// no owner.
  private static let errorPause: Int64 = 500

  init(_ search: OwnerSearch, isLasting: Bool, log: @escaping @Sendable (LogLine) -> Void) {
    (self.search, self.isLasting, self.log) = (search, isLasting, log)
    state = Monitor(State(hasSeeker: !search.isBrief))
  }

  /// Finds the first owner, for which it waits 5 s at most, and looks for the next ones from then
  /// on. Without an owner it throws, unless the process is a lasting one and there may be an owner
  /// later. Call it once.
  func begin(_ adopt: @escaping Adopt) throws(EngineError) {
    state.withLock { $0.adopt = adopt }
    let deadline = Instant.now.advanced(milliseconds: OwnerConnection.patience)
    do throws(EngineError) {
      try search.find(until: deadline) { () throws(EngineError) in try adopt(look(), [:]) }
    } catch  where isLasting && OwnerSearch.mayPass(error) {
      state.withLock { ($0.hasWaitedInVain, $0.isAsked) = (true, true) }
      if OwnerSearch.isPassing(error) { log(Self.line(of: error)) } else { logFailure(error) }
    }
    if mustSeekAgain(false) { startSeeker() }
  }

  /// Ends the connection, and looks for no other owner.
  func close() {
    state.change { $0.isClosing = true }
    // Before the owner's places are closed, because the seeker may be adopting another owner.
    _ = state.wait { $0.hasSeeker ? nil : true }
    readable?.close()
  }

  // MARK: - The present

  /// `places`, `readable` and the epoch of the present owner, read together.
  var present: (places: OwnerConnection?, readable: OwnerConnection?, epoch: Int) {
    state.withLock { ($0.places, $0.readable, $0.epoch) }
  }

  /// The places of the present owner; nil if there is none.
  var places: OwnerConnection? { state.withLock { $0.places } }

  /// The places to read from: those of the present owner, else of the last one, of which the
  /// locations that are loaded can be read; nil: there has been no owner yet.
  var readable: OwnerConnection? { state.withLock { $0.readable } }

  /// Milliseconds that a request waits for the next owner: 5 s, or 200 ms after another has waited
  /// in vain. None while there has never been an owner and the last look failed: a program that can
  /// start none must not wait at each of its requests.
  var patience: Int64 {
    state.withLock { state in
      if state.readable == nil, state.lastFailure != nil { return 0 }
      return state.hasWaitedInVain ? OwnerConnection.readPatience : OwnerConnection.patience
    }
  }

  /// ETIMEDOUT: there is no owner.
  static let noOwnerError = EngineError(
    .system(.timedOut), "the owner of the store is gone, and no other process has taken over")

  /// ETIMEDOUT: there has never been an owner. The log has said why.
  static let unansweredError = EngineError(
    .system(.timedOut), "no owner of the store has answered yet")

  /// EPERM: this process is a copy that fork(2) has made.
  static let copyError = EngineError(
    .system(.notPermitted),
    "this process is a copy that fork(2) has made of a program; it must call execve(2) before it "
      + "uses preferences")

  /// Calls the body with the present places, and again with those of the next owner if they have
  /// lost theirs. Throws ETIMEDOUT if there is no next owner before the deadline (nil: `patience`),
  /// EPERM in a copy of the process.
  /// - Parameter first: the request that the body makes first, if it is known. A process that asks a
  ///   few things and ends sends it with its greeting.
  func ask<Result>(
    until deadline: Instant? = nil, first: Request? = nil,
    _ body: (OwnerConnection) throws(EngineError) -> Result
  ) throws(EngineError) -> Result {
    if search.isBrief {
      return try askBriefly(until: deadline ?? OwnerConnection.deadline, first, body)
    }
    if ForkedProcess.isCopy { throw Self.copyError }
    var deadline = deadline
    while true {
      let (_, readable, epoch) = present
      do {
        if let places = readable { return try body(places) }
      } catch  where error.reason == .ownerGone {}
      let end = deadline ?? Instant.now.advanced(milliseconds: patience)
      deadline = end
      startSeekerAgain()
      let isOther = state.wait(until: end) { $0.epoch != epoch || $0.isClosing ? true : nil }
      guard isOther == true, !state.withLock({ $0.isClosing }) else {
        let isNever = state.withLock { state in
          state.hasWaitedInVain = state.places == nil
          return state.readable == nil
        }
        throw isNever ? Self.unansweredError : Self.noOwnerError
      }
    }
  }

  /// Does what `ask` does in a process that asks a few things and ends.
  private func askBriefly<Result>(
    until deadline: Instant, _ first: Request?,
    _ body: (OwnerConnection) throws(EngineError) -> Result
  ) throws(EngineError) -> Result {
    while true {
      let places = try connected(until: deadline, first)
      do {
        return try body(places)
      } catch  where error.reason == .ownerGone && Instant.now < deadline {
        places.close()
      }
    }
  }

  /// The places of the owner that this process is connected to, or else of one that it finds before
  /// the deadline.
  private func connected(
    until deadline: Instant, _ first: Request?
  ) throws(EngineError) -> OwnerConnection {
    let (known, failure) = state.withLock { ($0.readable, $0.lastFailure) }
    if let failure { throw failure }
    if let known, !known.hasEnded { return known }
    do throws(EngineError) {
      let found = try search.find(until: deadline) { () throws(EngineError) in try look(first) }
      establish(found, epoch: 1)
      known?.close()
      return found
    } catch {
      // Callers pass over a list that cannot be read, but not over this.
      let failure = EngineError(.ownerGone, error.sentence)
      state.withLock { $0.lastFailure = failure }
      throw failure
    }
  }

  /// Calls the body with places to read from: `ask`, once `awaitOwner` has returned. Where no owner
  /// has ever answered, and something has waited for one in vain, it throws at once: a program reads
  /// hundreds of keys while it starts, with a stopped owner too.
  func read<Result>(
    first: Request? = nil, _ body: (OwnerConnection) throws(EngineError) -> Result
  ) throws(EngineError) -> Result {
    if search.isBrief { return try ask(first: first, body) }
    if !ForkedProcess.isCopy { awaitOwner() }
    let isInVain = state.withLock { $0.hasWaitedInVain && $0.readable == nil }
    return try ask(until: isInVain ? .now : nil, body)
  }

  /// Where the owner has ended: returns when there is another one, which may have acknowledged a
  /// change of which this process has not heard.
  ///
  /// Waits 1 s at most, and 200 ms where this process starts none. After a wait that ended so, reads
  /// wait no more until there is an owner. They do not wait either once a look has failed for
  /// another reason than that there is no owner; nor in a process with mounts, because the next
  /// owner waits for them.
  private func awaitOwner() {
    let (epoch, isUseful) = state.withLock { state in
      let isUseful = !state.hasReadInVain && state.lastFailure == nil
      return (state.epoch, state.mayBeReplaced && isUseful)
    }
    guard isUseful, !hasMounts.load(ordering: .relaxed) else { return }
    handleLostOwner()
    wakeSeeker()
    let patience = search.startsOwners ? 1000 : OwnerConnection.readPatience
    let deadline = Instant.now.advanced(milliseconds: patience)
    let isOver = state.wait(until: deadline) { state in
      state.epoch != epoch || state.isClosing || state.lastFailure != nil ? true : nil
    }
    guard isOver == nil else { return }
    state.withLock { if $0.epoch == epoch { $0.hasReadInVain = true } }
  }

  /// Waits for an owner, and returns its places; nil if there is none before the deadline.
  func places(until deadline: Instant) -> OwnerConnection? {
    startSeekerAgain()
    return state.wait(until: deadline) { $0.places }
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

  // MARK: - The owner changes

  /// Makes requests go to the owner.
  func establish(_ owner: OwnerConnection, epoch: Int) {
    state.change { state in
      (state.readable, state.isSeeking, state.epoch) = (owner, false, epoch)
      (state.lastFailure, state.hasWaitedInVain, state.hasReadInVain) = (nil, false, false)
    }
    search.noteFound()
  }

  /// Ends the adoption of the owner that was established last. Looks for the next one if that has
  /// gone meanwhile.
  func finishAdoption(_ owner: OwnerConnection) { if owner.hasEnded { handleLostOwner() } }

  /// Connects to the owner. Throws `.owned` if none answers at the moment.
  private func look(_ first: Request? = nil) throws(EngineError) -> OwnerConnection {
    let remote = try search.connect(first: first) { [weak self] in
      if self?.search.isBrief == false { self?.handleLostOwner() }
    }
    guard let remote else { throw search.unanswered }
    return remote
  }

  /// Has the seeker look for the next owner, if the present one is gone.
  private func handleLostOwner() {
    let isNews = state.change { state in
      guard !state.isSeeking, let remote = state.readable, remote.hasEnded || remote.isOrphaned
      else { return false }
      state.isSeeking = true
      return true
    }
    if isNews { wakeSeeker() }
  }

  /// Looks for the next owner once.
  /// - Returns: milliseconds until the next look; nil: none is needed.
  private func seek() -> Int64? {
    let (last, isSeeking, adopt, isClosing) = state.withLock {
      ($0.readable, $0.isSeeking, $0.adopt, $0.isClosing)
    }
    guard !isClosing, isSeeking, let adopt else { return nil }
    do throws(EngineError) {
      let next = try look()
      last?.link.receiveRest(until: .now.advanced(milliseconds: OwnerConnection.readPatience))
      try adopt(next, last?.replica.loaded ?? [:])
      last?.close()
      return nil
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
    if isNews { log(Self.line(of: error)) }
  }

  private static func line(of error: EngineError) -> LogLine {
    "no owner of the store yet: \(error)"
  }

  // MARK: - The seeker

  /// Has a thread look for the next owner at once.
  private func wakeSeeker() {
    let starts = state.change { state in
      if state.hasSeeker {
        state.isAsked = true
        return false
      }
      state.hasSeeker = !state.isClosing
      return state.hasSeeker
    }
    if starts { startSeeker() }
  }

  /// Starts the seeker if it is needed and could not be started before.
  private func startSeekerAgain() {
    if state.withLock({ $0.isSeeking && !$0.hasSeeker }) { wakeSeeker() }
  }

  /// Starts the seeker, which `hasSeeker` counts already.
  private func startSeeker() {
    let thread = try? WorkerThread(name: "prefs-seeker") { [weak self] in self?.runSeeker() }
    thread?.detach()
    if thread == nil { state.change { $0.hasSeeker = false } }
  }

  /// The seeker's thread: looks until there is an owner, or none is needed any more.
  private func runSeeker() {
    var pause: Int64?
    repeat {
      pause = seek()
      if let pause {
        let end = Instant.now.advanced(milliseconds: pause)
        _ = state.wait(until: end) { $0.isAsked || $0.isClosing ? true : nil }
      }
    } while mustSeekAgain(pause != nil)
  }

  /// Whether the thread that looks goes on. If not, it no longer counts as one.
  /// - Parameter isDue: whether its last look was to be followed by another one.
  private func mustSeekAgain(_ isDue: Bool) -> Bool {
    state.change { state in
      defer { state.isAsked = false }
      state.hasSeeker = !state.isClosing && (state.isAsked || isDue)
      return state.hasSeeker
    }
  }
}
