import PreferenceModel
import PreferenceStore
import StoreAccess
import Synchronization
import SystemCalls

/// Rewrites lists, coalesced, on a thread of its own, and adopts what other programs change in
/// them and in configuration profiles.
///
/// A list is rewritten once per interval after its first unsaved change, however many changes there
/// were. The interval of a list that takes long grows to ten times what its last rewrite took. A
/// rewrite that fails is tried again after a pause that doubles, up to 10 s; only the first failure
/// in a row is logged. While another process holds the lock of a list's directory, the rewrite is
/// tried again after 5 ms, doubling up to 1 s: the thread waits for no other process's lock. The
/// thread also notes the mounts, and wakes up when a profile ends. It makes a removed state
/// directory anew; where that fails, it tries again each second.
///
/// Threads: `wake` and `save` may be called by any thread; `start` and `stop` belong to
/// `LocalPlaces`, the rest to the writer's thread. Locks: `isStopping`, `urgent`, `thread`,
/// `doubtful` and `lastIdentity`, each for a look, with no lock inside of it. The schedule needs
/// none: only the writer's thread has it.
final class Writer: Sendable {
  private let store: Store
  private let interval: Double
  private let settlements: Settlements
  private let log: @Sendable (LogLine) -> Void
  private let wakeup: Wakeup
  private let isStopping = Mutex(false)
  /// The lists that `save` asked for (nil means all), and the bodies to call.
  private let urgent = Mutex<[(location: Location?, body: @Sendable (EngineError?) -> Void)]>([])
  private let thread = Mutex<WorkerThread?>(nil)
  private let lastIdentity: Mutex<StoreIdentity>
  /// The managed places that are new, so that their directories must be watched, or whose additions
  /// may be different ones.
  private let doubtful = Mutex<Set<Place>>([])

  /// When one location is to be rewritten.
  private struct Schedule {
    /// Seconds that the last rewrite took.
    var lastRewrite = 0.0
    /// How many rewrites in a row have failed.
    var failures = 0
    /// The next try, after a failure or a lock of another process.
    var notBefore: Instant?
    /// Since when another process has held the directory's lock; nil if none does.
    var blockedSince: Instant?
    /// Milliseconds between the last two tries for the lock.
    var pause: Int64 = 0

    var isBlocked: Bool { blockedSince != nil }

    /// Notes that another process holds the directory's lock: the next try comes after 5 ms,
    /// doubling up to 1 s. Once that has lasted 5 s, it is reported.
    mutating func noteBlocked(_ now: Instant, _ report: () -> Void) {
      let since = blockedSince ?? now
      let before = notBefore ?? now
      pause = isBlocked ? min(pause * 2, 1000) : 5
      (blockedSince, notBefore) = (since, now.advanced(milliseconds: pause))
      let limit: Int64 = 5_000_000_000
      if now.nanoseconds(after: since) >= limit,
        before.nanoseconds(after: since) < limit + 1_000_000
      {
        report()
      }
    }
  }

  /// Milliseconds after which the state directory is noted as used: other machines remove one that
  /// nobody uses for long.
  private static let usePause: Int64 = 86_400_000

  /// What became of the last attempt to make a removed state directory anew.
  private struct Revival {
    /// Why it failed; nil if it did not.
    private var failure: SystemError?
    /// The next attempt; nil if nothing is left to do.
    private(set) var due: Instant?

    /// Makes the directory anew if the attempt is due. Logs each new reason of a failure.
    mutating func attempt(_ store: Store, _ log: (LogLine) -> Void) {
      let last = failure
      (failure, due) = (nil, nil)
      do throws(SystemError) {
        try store.revive()
      } catch {
        if error != last { log("the state directory cannot be created again yet: \(error)") }
        (failure, due) = (error, Instant.now.advanced(milliseconds: 1000))
      }
    }
  }

  /// - Parameter wakeup: wakes the thread up: a list lacks a change, or there are other mounts.
  init(
    store: Store, wakeup: Wakeup, interval: Double, settlements: Settlements,
    log: @escaping @Sendable (LogLine) -> Void
  ) {
    self.store = store
    self.wakeup = wakeup
    self.interval = interval
    self.settlements = settlements
    self.log = log
    lastIdentity = Mutex(store.layout.identity)
  }

  /// Starts the thread.
  /// - Parameter changed: called by the thread when the store may have changed what readers see.
  func start(changed: @escaping @Sendable () -> Void) throws(SystemError) {
    let worker = try WorkerThread(name: "prefs-writer") { [self] in run(changed) }
    thread.withLock { $0 = worker }
  }

  /// The directories that the thread has last seen under the store's names.
  var identity: StoreIdentity { lastIdentity.withLock { $0 } }

  /// Wakes the thread: a list lacks a change.
  func wake() { wakeup.signal() }

  /// Rewrites every list that lacks a change, and ends the thread.
  func stop() {
    isStopping.withLock { $0 = true }
    wakeup.signal()
    thread.withLock { $0.take() }?.join()
  }

  /// Rewrites a list (nil means every list) at once, if it lacks a change. Calls the body with the
  /// error or nil: on the writer's thread, and on this one where the store is only read.
  func save(_ location: Location?, _ body: @escaping @Sendable (EngineError?) -> Void) {
    if store.isReadOnly { return body(store.savingObstacle(location)) }
    urgent.withLock { $0.append((location, body)) }
    wakeup.signal()
  }

  private func run(_ changed: @Sendable () -> Void) {
    var schedules: [Location: Schedule] = [:]
    var revival = Revival()
    var (tidying, version) = (Memory.Tidying(), store.lists.version)
    var forgetting: Instant?
    var nextUse = Instant.now.advanced(milliseconds: Self.usePause)
    var watcher = ListWatcher(store.layout, report: log)
    store.lists.onDoubtfulPlace { [weak self] place in
      self?.doubtful.withLock { _ = $0.insert(place) }
      self?.wakeup.signal()
    }
    for place in Place.forced { store.lists.loadAdditions(of: place) }
    watcher.begin(store.lists.managedPlaces, report: log)
    watchGroups(&watcher)
    store.lists.noteExisting()
    // Lists that were read before their directories were watched may have changed in between.
    for location in store.lists.loadedLocations { store.lists.refresh(location) }
    while !isStopping.withLock({ $0 }) {
      look(&watcher, &revival)
      changed()
      let now = Instant.now
      settlements.writeNote()
      store.journal.releaseIfDue(now)
      // Memory is freed by a change, and once the last of what is kept for a while is forgotten.
      let forgettingNext = store.lists.forgetOld(now)
      if store.lists.version != version || forgettingNext == nil && forgetting != nil {
        tidying.note(now)
      }
      (version, forgetting) = (store.lists.version, forgettingNext)
      tidying.attempt(now)
      if nextUse <= now {
        store.noteUse()
        nextUse = now.advanced(milliseconds: Self.usePause)
      }
      let due = [
        watcher.deadline, revival.due, tidying.due, profilesDeadline(now), groupsDue(now), nextUse,
        store.journal.releaseDeadline,
        forgetting,
        historyDue(now),
        store.isReadOnly ? nil : rewriteDue(&schedules, now, changed),
      ]
      let haveMountsChanged = wakeup.wait(
        until: due.compactMap { $0 }.min(), or: watcher.number, urgent: watcher.mountsNumber)
      if haveMountsChanged { watcher.noteMounts() }
    }
    finish(&schedules)
    settlements.writeNote()
    changed()
  }

  /// Rewrites the lists that are due, and those that `save` asked for.
  /// - Returns: when the next one is due; nil if none is unsaved.
  private func rewriteDue(
    _ schedules: inout [Location: Schedule], _ now: Instant, _ changed: () -> Void
  ) -> Instant? {
    let asked = urgent.withLock { urgent in
      defer { urgent = [] }
      return urgent
    }
    let isUrgent = Set(asked.map(\.location))
    var next: Instant?
    for (location, since) in store.unsaved() {
      let isAsked = isUrgent.contains(location) || isUrgent.contains(nil)
      let due = isAsked ? now : deadline(location, since, schedules[location])
      if due <= now {
        rewrite(location, &schedules[location, default: Schedule()])
        changed()
      }
      let then = due <= now ? deadline(location, now, schedules[location]) : due
      next = min(next ?? then, then)
    }
    store.journal.makeReleaseDurable()
    for (location, body) in asked {
      // While another process holds the lock, the body goes on waiting.
      let isBlocked = schedules.contains {
        ($0.key == location || location == nil) && $0.value.isBlocked
      }
      if isBlocked {
        urgent.withLock { $0.append((location, body)) }
      } else {
        body(location.flatMap { store.lists.failure(at: $0) })
      }
    }
    guard store.hasPending else { return next }
    let later = now.advanced(seconds: 1)
    return min(next ?? later, later)
  }

  /// Saves every list at the end. Where another process holds a directory's lock for two seconds,
  /// the changes stay in the journal.
  private func finish(_ schedules: inout [Location: Schedule]) {
    let end = Instant.now.advanced(milliseconds: 2000)
    if !store.isReadOnly {
      repeat {
        for (location, _) in store.unsaved() {
          rewrite(location, &schedules[location, default: Schedule()])
        }
        guard schedules.values.contains(where: \.isBlocked) else { break }
        Instant.sleep(milliseconds: 10)
      } while Instant.now < end
      store.history.record()
      store.journal.releaseIfDue()
      store.journal.makeReleaseDurable()
    }
    for (location, body) in urgent.withLock({ $0 }) {
      body(location.flatMap { store.lists.failure(at: $0) })
    }
  }

  /// Writes the history if it is due.
  /// - Returns: when it is due next; nil if not before the next change.
  private func historyDue(_ now: Instant) -> Instant? {
    if let due = store.history.deadline, due <= now { store.history.record() }
    return store.history.deadline
  }

  /// When the thread must look whether a configuration profile has ended: at its end, but within a
  /// minute, because the clock may be set; nil if none ends.
  private func profilesDeadline(_ now: Instant) -> Instant? {
    guard let end = store.lists.profilesEnd else { return nil }
    let wait = end.nanoseconds(after: .now) / 1_000_000 + 1
    return now.advanced(milliseconds: min(max(wait, 1), 60_000))
  }

  /// Has the name service asked again which groups the user is in, if that is due.
  /// - Returns: when it is due next; nil if not before it has answered, or a directory comes.
  private func groupsDue(_ now: Instant) -> Instant? {
    if let due = store.lists.groupsDeadline, due <= now {
      store.lists.refreshAdditions(of: [.ownManaged])
    }
    return store.lists.groupsDeadline
  }

  /// Watches the directories of groups that have come to count. What changed before is seen too.
  private func watchGroups(_ watcher: inout ListWatcher) {
    if watcher.add(store.lists.groupPlaces, report: log) {
      store.lists.refreshAdditions(of: [.ownManaged])
    }
  }

  /// Adopts what other programs have changed in lists and profiles, drops profiles that have ended,
  /// and makes a removed state directory anew.
  private func look(_ watcher: inout ListWatcher, _ revival: inout Revival) {
    let known = { [store] in store.lists.loadedLocations }
    let doubtful = doubtful.withLock { places in
      defer { places = [] }
      return places
    }
    if !doubtful.isEmpty {
      watcher.add(doubtful, report: log)
      store.lists.refreshAdditions(of: doubtful)
    }
    for location in watcher.changes(known: known, report: log) { store.lists.refresh(location) }
    if watcher.hasBegun {
      let identity = store.layout.identity
      lastIdentity.withLock { $0 = identity }
    }
    if watcher.removeDoubtOfAdditions() || store.lists.areProfilesOutdated {
      store.lists.refreshAdditions()
    }
    watchGroups(&watcher)
    if watcher.removeDoubtOfSettings() { store.lists.forgetMachineSchemas() }
    guard watcher.isStateInDoubt || revival.due.map({ $0 <= .now }) == true else { return }
    revival.attempt(store, log)
    watcher.watchState()
    let identity = store.layout.identity
    lastIdentity.withLock { $0 = identity }
  }

  /// When the list is to be rewritten. The machine's lists wait 0.5 s at most (more if they take
  /// long), because other users must see their changes within a second.
  private func deadline(
    _ location: Location, _ since: Instant, _ schedule: Schedule?
  ) -> Instant {
    let isShared = location.place.isMachineWide
    let interval = isShared ? min(interval, 0.5) : interval
    let due = since.advanced(seconds: max(interval, 10 * (schedule?.lastRewrite ?? 0)))
    return max(due, schedule?.notBefore ?? due)
  }

  private func rewrite(_ location: Location, _ schedule: inout Schedule) {
    let start = Instant.now
    do {
      try store.checkpoint(location)
      schedule = Schedule(lastRewrite: Double(Instant.now.nanoseconds(after: start)) / 1e9)
    } catch  where error.reason == .system(.wouldBlock) {
      schedule.noteBlocked(start) { log("\(error); its changes stay in the journal until then") }
    } catch {
      schedule.blockedSince = nil
      if schedule.failures == 0 { log("\(error); its changes stay in the journal") }
      schedule.failures += 1
      let pause = min(10, max(interval, 0.1) * Double(1 << min(schedule.failures, 10)))
      schedule.notBefore = Instant.now.advanced(seconds: pause)
    }
  }
}
