import PreferenceModel
import PreferenceProtocol
import Synchronization
import SystemCalls

// The client stays connected to the owner of its store, from one owner to the next.

extension StoreClient {
  /// Milliseconds until the next look after one that failed, unless it failed only because there is
  /// no owner.
  private static let errorPause: Int64 = 500

  /// Finds the first owner, for which it waits 5 s at most, and looks for the next ones from then
  /// on. Without an owner it throws, unless the process is a lasting one and there may be an owner
  /// later. Call it once.
  func begin() throws(EngineError) {
    do throws(EngineError) {
      try search.find(until: Patience.end) { () throws(EngineError) in
        try adopt(look(), [:])
      }
    } catch  where search.manner.isLasting && OwnerSearch.mayPass(error) {
      state.withLock { ($0.hasWaitedInVain, $0.isAsked) = (true, true) }
      if OwnerSearch.isPassing(error) { log(Self.line(of: error)) } else { logFailure(error) }
    }
    if mustSeekAgain(false) { startSeeker() }
  }

  // MARK: - The present

  /// See `State`.
  var owner: OwnerConnection? { state.withLock { $0.owner } }

  /// See `State`.
  var readable: OwnerConnection? { state.withLock { $0.readable } }

  /// ETIMEDOUT: there is no owner.
  static let noOwnerError = EngineError(
    .system(.timedOut), "the owner of the store is gone, and no other process has taken over")

  /// ETIMEDOUT: there has never been an owner. The log has said why.
  static let unanswered = EngineError(
    .system(.timedOut), "no owner of the store has answered yet")

  /// EPERM: this process is a copy that fork(2) has made.
  static let copyError = EngineError(
    .system(.notPermitted),
    "this process is a copy that fork(2) has made of a program; it must call execve(2) before it "
      + "uses preferences")

  /// Calls the body with the present connection, and again with that to the next owner if this one
  /// is gone. Throws ETIMEDOUT if there is no next owner before the deadline (nil means
  /// `patience`), EPERM in a copy of the process.
  /// - Parameter first: the request that the body makes first, if it is known. A process that asks
  ///   a few things and ends sends it with its greeting.
  func ask<Result>(
    until deadline: Instant? = nil, first: Request? = nil,
    _ body: (OwnerConnection) throws(EngineError) -> Result
  ) throws(EngineError) -> Result {
    if search.manner.isBrief {
      return try askBriefly(until: deadline ?? Patience.end, first, body)
    }
    if ForkedProcess.isCopy { throw Self.copyError }
    var deadline = deadline
    while true {
      let readable = readable
      do {
        if let places = readable { return try body(places) }
      } catch  where error.reason == .ownerGone {}
      let end = deadline ?? Instant.now.advanced(milliseconds: state.withLock { $0.patience })
      deadline = end
      startSeekerAgain()
      let isOther = state.wait(until: end) { state in
        state.isClosing ? false : state.readable !== readable ? true : nil
      }
      if isOther == true { continue }
      throw state.withLock { state in
        state.hasWaitedInVain = state.owner == nil
        return state.readable == nil ? Self.unanswered : Self.noOwnerError
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

  /// The connection to the owner, or else to one that this process finds before the deadline.
  private func connected(
    until deadline: Instant, _ first: Request?
  ) throws(EngineError) -> OwnerConnection {
    let (known, failure) = state.withLock { ($0.readable, $0.lastFailure) }
    if let failure { throw failure }
    if let known, !known.hasEnded { return known }
    do throws(EngineError) {
      let found = try search.find(until: deadline) { () throws(EngineError) in try look(first) }
      state.change { $0.establish(found) }
      search.noteFound()
      known?.close()
      return found
    } catch {
      // Callers pass over a list that cannot be read, but not over this.
      let failure = EngineError(.ownerGone, error.sentence)
      state.withLock { $0.lastFailure = failure }
      throw failure
    }
  }

  /// Calls the body with a connection to read from: `ask`, once `awaitNextOwner` has returned.
  /// Where no owner has ever answered, and something has waited for one in vain, it throws at once:
  /// a program reads hundreds of keys while it starts, with a stopped owner too.
  func read<Result>(
    first: Request? = nil, _ body: (OwnerConnection) throws(EngineError) -> Result
  ) throws(EngineError) -> Result {
    if search.manner.isBrief { return try ask(first: first, body) }
    if !ForkedProcess.isCopy { awaitNextOwner() }
    let isInVain = state.withLock { $0.hasWaitedInVain && $0.readable == nil }
    return try ask(until: isInVain ? .now : nil, body)
  }

  /// Where the owner has ended: returns when there is another one, which may have acknowledged a
  /// change of which this process has not heard.
  ///
  /// Waits 1 s at most, and 200 ms where this process starts none. After a wait that ended so,
  /// reads wait no more until there is an owner. They do not wait either once a look has failed for
  /// another reason than that there is no owner; nor in a process with mounts, because the next
  /// owner waits for them.
  private func awaitNextOwner() {
    let (readable, isUseful) = state.withLock { state in
      let mayBeReplaced = state.owner.map(\.isOrphaned) ?? (state.readable != nil)
      let isUseful = !state.hasReadInVain && !state.hasMounts && state.lastFailure == nil
      return (state.readable, mayBeReplaced && isUseful)
    }
    guard isUseful else { return }
    handleLostOwner()
    wakeSeeker()
    let patience = search.manner.start != nil ? 1000 : Patience.read
    let deadline = Instant.now.advanced(milliseconds: patience)
    let isOver = state.wait(until: deadline) { state in
      state.readable !== readable || state.isClosing || state.lastFailure != nil ? true : nil
    }
    guard isOver == nil else { return }
    state.withLock { if $0.readable === readable { $0.hasReadInVain = true } }
  }

  /// Waits for an owner; nil if there is none before the deadline.
  func owner(until deadline: Instant) -> OwnerConnection? {
    startSeekerAgain()
    return state.wait(until: deadline) { $0.owner }
  }

  // MARK: - The owner changes

  /// Connects to the owner. Throws `.owned` if none answers at the moment.
  private func look(_ first: Request? = nil) throws(EngineError) -> OwnerConnection {
    let remote = try search.connect(first: first) { [weak self] in
      if self?.search.manner.isBrief == false { self?.handleLostOwner() }
    }
    guard let remote else { throw search.unanswered }
    return remote
  }

  /// Has the seeker look for the next owner, if the present one is gone.
  func handleLostOwner() {
    let isNews = state.change { state in
      guard let owner = state.owner, owner.hasEnded || owner.isOrphaned else { return false }
      state.phase = .orphaned(owner)
      return true
    }
    if isNews { wakeSeeker() }
  }

  /// Looks for the next owner once.
  /// - Returns: milliseconds until the next look; nil if none is needed.
  private func seek() -> Int64? {
    let (last, isNeeded) = state.withLock { ($0.readable, $0.owner == nil && !$0.isClosing) }
    guard isNeeded else { return nil }
    do throws(EngineError) {
      let next = try look()
      last?.link.receiveRest(until: .now.advanced(milliseconds: Patience.read))
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
    if state.withLock({ $0.owner == nil && !$0.hasSeeker }) { wakeSeeker() }
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
