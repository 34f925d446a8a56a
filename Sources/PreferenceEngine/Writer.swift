import PreferenceModel
import PreferenceStore
import Synchronization
import SystemCalls

/// Rewrites lists, coalesced, on a thread of its own, and takes in what others change in them.
///
/// A list is rewritten at most once per interval after its first unsaved change, however many
/// changes there were; for lists that take long the interval grows to ten times what the last
/// rewrite took. A rewrite that fails is tried again, each time after twice the time, at most
/// 10 s; the first failure of a row is logged. It is also the thread that tells when a mount was
/// waited for long enough.
///
/// Threads: `wake` from any, the rest from the owner. No lock but the stop flag's; the schedule
/// belongs to the thread.
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
    var watcher = makeWatcher()
    // What was read before the directories were watched.
    for location in store.loadedLocations { store.refresh(location) }
    while !isStopping.withLock({ $0 }) {
      look(&watcher)
      changed()
      let now = Instant.now
      settlements.expire(now)
      var next = [watcher?.deadline, settlements.deadline].compactMap { $0 }.min()
      let asked = urgent.withLock { urgent in
        defer { urgent = [] }
        return urgent
      }
      let isUrgent = Set(asked.map(\.location))
      for (location, since) in store.isReadOnly ? [] : store.unsaved() {
        let due =
          isUrgent.contains(location) ? now : deadline(location, since, schedules[location])
        if due <= now {
          rewrite(location, &schedules[location, default: Schedule()])
          changed()
        }
        let then = due <= now ? deadline(location, now, schedules[location]) : due
        next = min(next ?? then, then)
      }
      for (location, body) in asked { body(store.failure(at: location)) }
      if store.hasPending, !store.isReadOnly { next = min(next ?? now.after(1), now.after(1)) }
      bell.wait(until: next, or: watcher?.number ?? -1)
    }
    for (location, _) in store.isReadOnly ? [] : store.unsaved() {
      rewrite(location, &schedules[location, default: Schedule()])
    }
    for (location, body) in urgent.withLock({ $0 }) { body(store.failure(at: location)) }
    changed()
  }

  /// Without inotify (the user has too many watches) lists are looked at before rewrites alone.
  private func makeWatcher() -> ListWatcher? {
    do {
      var watcher = try ListWatcher(store.layout)
      watcher.begin(report: log)
      return watcher
    } catch {
      log("changes by other programs are not seen at once: \(error)")
      return nil
    }
  }

  /// Takes in what somebody else changed.
  private func look(_ watcher: inout ListWatcher?) {
    let known = { [store] in store.loadedLocations }
    for location in watcher?.changes(known: known, report: log) ?? [] {
      store.refresh(location)
    }
  }

  /// Other users see the machine's lists change within a second: they wait half of it at most.
  private func deadline(
    _ location: Location, _ since: Instant, _ schedule: Schedule?
  ) -> Instant {
    let isShared = location.place == .anyUser || location.place == .managed
    let interval = isShared ? min(interval, 0.5) : interval
    let due = since.after(max(interval, 10 * (schedule?.lastRewrite ?? 0)))
    return max(due, schedule?.notBefore ?? due)
  }

  private func rewrite(_ location: Location, _ schedule: inout Schedule) {
    let start = Instant.now
    do {
      try store.checkpoint(location)
      schedule = Schedule(lastRewrite: Instant.now.seconds(after: start))
    } catch {
      if schedule.failures == 0 { log("\(error); its changes stay in the journal") }
      schedule.failures += 1
      let pause = min(10, max(interval, 0.1) * Double(1 << min(schedule.failures, 10)))
      schedule.notBefore = Instant.now.after(pause)
    }
  }
}

extension Instant {
  fileprivate func after(_ seconds: Double) -> Instant {
    Instant(nanoseconds: nanoseconds + Int64(seconds * 1e9))
  }

  fileprivate func seconds(after start: Instant) -> Double {
    Double(nanoseconds - start.nanoseconds) / 1e9
  }
}
