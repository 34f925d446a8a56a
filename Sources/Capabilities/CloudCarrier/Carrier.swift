import EtcdClient
import PreferenceCloud
import PreferenceModel
import PropertyList
import StoreAccess
import SystemCalls

/// Carries changes between the cloud's place of one store and the servers, or the directory, of the
/// cloud.
///
/// Promises:
/// - What the state machine has decided (`Synchroniser`) is saved in the transaction that changes
///   the place, before anything is sent: `kill -9` at any moment loses and repeats nothing. What
///   the user changed while no `prefs-cloud` ran is found when one begins.
/// - A change of the user's that comes between is never overwritten: the transaction expects the
///   values that the decision was made from, and the decision is made again.
/// - Where the store's owner does not answer, the carrier waits and tries again. Where the server
///   does not, changes are saved as pending.
///
/// Threads: `run` has one, the only one that touches anything but `arrivals`. Observers of the
/// store put what has changed there and signal the wake-up.
final class Carrier {
  let places: any PersistentPlaces
  let place: CloudPlace
  let author = Author.unique()
  let userName: String
  let log: @Sendable (LogLine) -> Void
  let dropped: @Sendable (DomainName) -> Void
  let arrivals: Arrivals

  var machine: Synchroniser
  var session: CloudSession?
  var transport: (any CloudTransport)?
  var patterns = KeyPatterns()
  /// The keys that stay on this machine.
  var local = KeyPatterns()
  var lastError: String?
  /// The status that was noted last.
  var status = CloudStatus()
  /// Since when it is so; nil if nothing was noted.
  var statusSince: AbsoluteTime?
  /// Tells of changes of the network; nil where this process may not hear of them.
  private let network = try? NetworkWatch()
  /// The request that somebody waits for; nil if nobody waits.
  var sync: SyncRequest?
  /// Slows down keys that two writers change in turns.
  var pace = PushPace()
  /// When old removals are looked for.
  var nextTick = Instant.now

  /// Creates the carrier of a store.
  /// - Parameters:
  ///   - host: the name of this host in stamps and in the log of replaced values.
  ///   - log: receives lines for people. They have no values and no passwords.
  init(
    _ places: any PersistentPlaces, _ layout: StoreLayout, host: String, userName: String,
    log: @escaping @Sendable (LogLine) -> Void
  ) throws(EngineError) {
    (self.places, self.userName, self.log) = (places, userName, log)
    dropped = Self.noting(log)
    place = CloudPlace(places, author: author)
    arrivals = try EngineError.wrapping { () throws(SystemError) in try Arrivals() }
    machine = Synchroniser(CloudState(host: host))
    places.observe(except: author) { [arrivals] notice in arrivals.hear(notice) }
    machine = Synchroniser(CloudState(try place.savedState(layout, log: log), host: host))
    arrivals.noteAll()
    show(CloudStatus())
    let present = try place.domains()
    let removed = try place.removals()
    // A list that is gone as a whole was lost, unless the owner has noted that the user removed it.
    try restore(
      Set(machine.state.keys.map(\.domain)).subtracting(present).subtracting(removed.keys))
    try scan(present.union(removed.keys), removed)
    try place.forgetRemovals()
  }

  /// Returns what logs a dropped record, once for each domain, of 16 at most.
  private static func noting(
    _ log: @escaping @Sendable (LogLine) -> Void
  ) -> @Sendable (DomainName) -> Void {
    let known = Monitor<Set<DomainName>>([])
    return { domain in
      let isNew = known.withLock { $0.count < 16 && $0.insert(domain).inserted }
      if isNew {
        log("the server has keys of \(domain), which are ignored: they are those of one machine")
      }
    }
  }

  // MARK: - The loop

  /// Carries changes until the process ends, which does no harm at any moment.
  func run() -> Never {
    while true {
      do throws(EngineError) {
        try serveArrivals()
        try tick()
        try release()
        try answerSyncRequest()
      } catch {
        note(error)
        arrivals.wakeup.wait(until: Instant.now.advanced(milliseconds: 1000))
        continue
      }
      guard let transport else {
        arrivals.wakeup.wait(until: nil)
        continue
      }
      let due = [session?.deadline, pace.deadline(at: .now)].compactMap { $0 }
      let deadline = (due + [nextTick]).min() ?? nextTick
      let wakeups = [arrivals.wakeup.number] + (network.map { [$0.number] } ?? [])
      let inputs = transport.wait(until: deadline, or: wakeups)
      arrivals.wakeup.clear()
      for input in inputs {
        handle(input)
        // The others are of the connection that has just ended.
        if session?.isPaused == true { break }
      }
      if network?.hasChanged() == true { handle(.networkChanged) }
      if let due = session?.deadline, due <= .now { handle(.timeout) }
    }
  }

  /// Logs an error of the store once, until another one comes.
  func note(_ error: EngineError) {
    if lastError != "\(error)" { log("the store: \(error)") }
    lastError = "\(error)"
  }

  /// Pushes keys that need not wait any longer.
  private func release() throws(EngineError) {
    let held = pace.held(at: .now)
    guard held != machine.held else { return }
    let actions = try feed { $0.release(holding: held) }
    notePushes(actions)
    carryOut(session?.perform(actions) ?? [])
  }

  private func tick() throws(EngineError) {
    guard nextTick <= .now else { return }
    nextTick = Instant.now.advanced(milliseconds: 3_600_000)
    carryOut(try feed(.tick, server: nil))
    // Until when this host has heard of the server.
    if machine.state.revision > 0 {
      try place.commit([:], machine.removeUnsaved(), newAccount: nil)
    }
  }

  /// Takes over what observers have heard of. What it cannot do now stays for the next call.
  private func serveArrivals() throws(EngineError) {
    var taken = arrivals.removeAll()
    do throws(EngineError) {
      while let change = taken.changes.first {
        _ = try readable { () throws(EngineError) in
          try scan(change.keys, time: change.time)
        }
        taken.changes.removeFirst()
      }
      try restore(taken.invalidated)
      try scan(taken.domains.union(taken.invalidated))
      if !taken.domains.isEmpty { try place.forgetRemovals() }
      (taken.domains, taken.invalidated) = ([], [])
      if taken.hasSyncRequest { try beginSync() }
      taken.hasSyncRequest = false
      if taken.hasNewSettings { try configure() }
      if taken.hasNewSettings {
        taken.others.formUnion(try place.schemaDomains().union(patterns.patterns.keys))
      }
      taken.hasNewSettings = false
      while let domain = taken.others.first {
        try adopt(domain)
        taken.others.remove(domain)
      }
    } catch {
      arrivals.putBack(taken)
      throw error
    }
  }

  // MARK: - Synchronisation that somebody waits for

  /// Asks the server for everything, where a request was noted.
  private func beginSync() throws(EngineError) {
    guard let request = try place.note(CloudNotes.syncRequest),
      try place.note(CloudNotes.syncAnswer) != request
    else { return }
    sync = SyncRequest(value: request)
    // A connection that begins lists everything anyway. Somebody who waits may have mended what
    // kept it from being there, or the key by which values are read: the settings and their files
    // are read again.
    if session?.isAnswering(now: .now) == true, machine.unreadable.isEmpty {
      handle(.probe)
      carryOut(session?.perform([.list]) ?? [])
      sync?.listsAwaited = session?.listsWaiting ?? 1
    } else {
      try configure()
    }
  }

  /// A request for synchronisation.
  struct SyncRequest {
    let value: Value
    /// How many lists must come before it is answered.
    var listsAwaited = 1
  }

  private func answerSyncRequest() throws(EngineError) {
    guard let sync, sync.listsAwaited == 0,
      machine.state.pending.keys.allSatisfy(machine.unreadable.contains)
    else { return }
    try place.note(CloudNotes.syncAnswer, sync.value)
    self.sync = nil
  }
}
