import PreferenceModel
import PreferenceStore
import Synchronization
import SystemCalls

/// Rewrites lists, coalesced, on a thread of its own, and takes in what others change in them.
///
/// A list is rewritten at most once per interval after its first unsaved change, however many
/// changes there were; for lists that take long the interval grows to ten times what the last
/// rewrite took. A rewrite that fails is tried again, each time after twice the time, at most
/// 10 s; the first failure of a row is logged. A list whose directory another process has locked is
/// tried again after a moment: the thread waits for nobody's lock. It is also the thread that tells
/// when a mount was waited for long enough, and that sees when the state directory was removed.
///
/// Threads: `wake` and `save` from any, the rest from the owner. Locks: those of the stop flag, of the
/// lists that somebody waits for, and of the thread, each for one look; the schedule belongs to the
/// thread.
final class Writer: Sendable {
  private let store: Store
  private let interval: Double
  private let settlements: Settlements
  private let log: @Sendable (String) -> Void
  private let bell: Wakeup
  private let isStopping = Mutex(false)
  /// Lists that somebody waits for.
  private let urgent = Mutex<[(location: Location, body: @Sendable (EngineError?) -> Void)]>([])
  private let thread = Mutex<WorkerThread?>(nil)

  /// What the thread knows of one location.
  private struct Schedule {
    var lastRewrite = 0.0
    var failures = 0
    var notBefore: Instant?
    /// Since when another process has had the lock; nil: none has.
    var blockedSince: Instant?
    var pause: Int64 = 0

    var isBlocked: Bool { blockedSince != nil }

    /// Another process rewrites there: again in 5 ms, at most in a second. After five seconds it is said.
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

  init(
    store: Store, interval: Double, settlements: Settlements,
    log: @escaping @Sendable (String) -> Void
  ) throws(SystemError) {
    self.store = store
    self.interval = interval
    self.settlements = settlements
    self.log = log
    bell = try Wakeup()
  }

  /// Starts the thread.
  /// - Parameter changed: called when somebody else may be found to have changed something.
  func start(changed: @escaping @Sendable () -> Void) throws(SystemError) {
    let worker = try WorkerThread(name: "prefs-writer") { [self] in run(changed) }
    thread.withLock { $0 = worker }
  }

  /// Something was changed.
  func wake() { bell.ring() }

  /// Rewrites what is unsaved, and ends the thread.
  func stop() {
    isStopping.withLock { $0 = true }
    bell.ring()
    thread.withLock { $0.take() }?.join()
  }

  /// Rewrites a list at once, if it is unsaved; the body gets what was in the way.
  func save(_ location: Location, _ body: @escaping @Sendable (EngineError?) -> Void) {
    urgent.withLock { $0.append((location, body)) }
    bell.ring()
  }

  private func run(_ changed: @Sendable () -> Void) {
    var schedules: [Location: Schedule] = [:]
    var watcher = ListWatcher(store.layout, report: log)
    watcher.begin(report: log)
    // What was read before the directories were watched.
    for location in store.loadedLocations { store.refresh(location) }
    while !isStopping.withLock({ $0 }) {
      look(&watcher)
      changed()
      let now = Instant.now
      settlements.expire(now)
      store.releaseIfDue(now)
      let due = [
        watcher.deadline, settlements.deadline, store.releaseDeadline, store.forgetOld(now),
        store.isReadOnly ? nil : rewriteDue(&schedules, now, changed),
      ]
      bell.wait(until: due.compactMap { $0 }.min(), or: watcher.number)
    }
    finish(&schedules)
    changed()
  }

  /// Rewrites the lists whose time has come, and those that somebody waits for.
  /// - Returns: when the next one's time comes.
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
      let isAsked = isUrgent.contains(location)
      let due = isAsked ? now : deadline(location, since, schedules[location])
      if due <= now {
        rewrite(location, &schedules[location, default: Schedule()])
        changed()
      }
      let then = due <= now ? deadline(location, now, schedules[location]) : due
      next = min(next ?? then, then)
    }
    for (location, body) in asked {
      // While another process rewrites there, whoever asked waits on.
      if schedules[location]?.isBlocked == true {
        urgent.withLock { $0.append((location, body)) }
      } else {
        body(store.failure(at: location))
      }
    }
    guard store.hasPending else { return next }
    let later = now.advanced(seconds: 1)
    return min(next ?? later, later)
  }

  /// Everything is saved at the end. What another process keeps from that for two seconds stays in the
  /// journal.
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
      store.releaseIfDue()
    }
    for (location, body) in urgent.withLock({ $0 }) { body(store.failure(at: location)) }
  }

  /// Takes in what somebody else changed.
  private func look(_ watcher: inout ListWatcher) {
    let known = { [store] in store.loadedLocations }
    for location in watcher.changes(known: known, report: log) { store.refresh(location) }
    guard watcher.isStateInDoubt else { return }
    store.revive()
    watcher.watchState()
  }

  /// Other users see the machine's lists change within a second: they wait half of it at most.
  private func deadline(
    _ location: Location, _ since: Instant, _ schedule: Schedule?
  ) -> Instant {
    let isShared = location.place == .anyUser || location.place == .managed
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
