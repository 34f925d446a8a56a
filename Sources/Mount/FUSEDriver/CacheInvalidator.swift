import CFUSE
import CLinux
import Glibc
import PreferenceModel
import PreferenceTree
import StoreAccess
import Synchronization
import SystemCalls

/// Tells the kernel to drop pages and entries, and announces changes to watchers, on threads of
/// its own: there the kernel makes it wait for locks that a request of this mount may hold until it
/// is answered. One thread drops pages, and waits for locks of pages alone; the other one drops
/// entries and makes announcements, and waits for locks of files and directories too, which other
/// mounts need not wait for. An announcement is made after the pages before it are dropped. The
/// effects that wait form a set, so that a storm of changes stays bounded. ENOENT (the kernel does
/// not know the node or the name) is no error.
///
/// Each thread has a descriptor table of its own, with another device of the connection. When the
/// process is killed, the kernel releases a thread that waits for such a lock only when the request
/// that holds the lock ends: when a successor answers it, or, if the guard was killed too, when the
/// device is closed that it was read from. Until then nothing may stay open here whose end another
/// process waits for (the sockets to `prefsd` and to the guard), nor that device. So the table
/// holds nothing but the standard descriptors, a wake-up and its own device, from which no request
/// is read; and code on these threads must use no socket and no file of other threads.
///
/// While the loop holds a request in a directory, e.g. a look-up of a domain whose list hangs, the
/// kernel has the directory locked. What needs that lock alone waits here and not in the kernel,
/// where each look-up in the directory would wait behind it (`setHeld`).
///
/// Threads: any may put. Locks: the workers', `entries`, `performing`, `held` and `log`, each for a
/// look.
final class CacheInvalidator: Sendable {
  private enum Task {
    case effect(Effect)
    /// Once the tasks before this one are done, the kernel has been told of the changes up to the
    /// version.
    case settled(Settlement, UInt64)
    /// The announcements up to this number are made.
    case announced(UInt64)
  }

  /// Announcements that wait at most: what a queue of inotify(7) holds (max_queued_events). Of a
  /// larger storm the rest is left out.
  static let mostAnnouncements = 16384

  private struct Tasks: Batch {
    private(set) var all: [Task] = []
    private var known: Set<Effect> = []
    /// The last announcement of each name.
    private var announced: [String: Announcement] = [:]
    private var announcements = 0

    var isEmpty: Bool { all.isEmpty }

    /// Adds the effect if it does not wait already. A name may come and go several times, so an
    /// announcement is left out only if the last one of its name is of the same kind.
    mutating func add(_ effect: Effect) {
      if isNew(effect) { all.append(.effect(effect)) }
    }

    private mutating func isNew(_ effect: Effect) -> Bool {
      guard case .announce(let announcement) = effect else {
        return known.insert(effect).inserted
      }
      let name = announcement.directory + "/" + announcement.name
      switch (announced[name]?.kind, announcement.kind) {
      case (.changed, .changed), (.created, .created), (.removed, .removed):
        announced[name] = announcement
        return false
      default:
        guard announcements < CacheInvalidator.mostAnnouncements else { return false }
        announcements += 1
        announced[name] = announcement
        return true
      }
    }

    mutating func add(announced number: UInt64) {
      if case .announced? = all.last { all.removeLast() }
      all.append(.announced(number))
    }

    mutating func add(settled kind: Settlement, _ version: UInt64) {
      var version = version
      if case .settled(kind, let before)? = all.last {
        version = max(version, before)
        all.removeLast()
      }
      all.append(.settled(kind, version))
    }
  }

  /// Drops pages, and hands announcements on.
  private let pageWorker = BatchWorker<Tasks>()
  /// Drops entries, and makes announcements.
  private let worker = BatchWorker<Tasks>()
  private let entries = Mutex(SettledEntries())
  /// How many threads carry out a task.
  private let performing = Mutex(0)
  private let ended: Wakeup
  /// Performs operations on the mount for watchers.
  let announcer = Announcer()
  private let settled: @Sendable (Settlement, UInt64) -> Void

  private let log = Mutex<SharedLog?>(nil)
  /// The nodes of the requests that the loop holds.
  private let held = Mutex<Set<NodeID>>([])

  /// Tells which nodes the loop holds requests of.
  func setHeld(_ nodes: Set<NodeID>) { held.withLock { $0 = nodes } }

  /// Waits while the loop holds a request in the directory, as long as such a request may wait for a
  /// list.
  private func awaitHeldRequests(in directory: NodeID?) {
    guard let directory else { return }
    let end = Instant.now.advanced(milliseconds: ListReader.patience)
    while held.withLock({ $0.contains(directory) }), !worker.isStopping, Instant.now < end {
      Instant.sleep(microseconds: 2000)
    }
  }

  /// Has the thread note in the log, for a successor, what it does.
  func keepProgress(in log: SharedLog) { self.log.withLock { $0 = log } }

  private func note(_ number: SavedState.Number, _ value: UInt64) {
    log.withLock { $0 }?[number.rawValue] = value
  }

  /// - Parameters:
  ///   - ended: rung when the thread ends.
  ///   - settled: called on the thread when the kernel has been told of the changes up to a
  ///     version.
  init(
    ended: Wakeup, settled: @escaping @Sendable (Settlement, UInt64) -> Void
  ) {
    (self.ended, self.settled) = (ended, settled)
  }

  /// Starts the threads, for a session that is mounted.
  func start(_ session: SessionPointer) throws(SystemError) {
    try start(pageWorker, "prefs-pages", session) { [self] task in
      switch task {
      case .effect(.announce(let announcement)): worker.put { $0.add(.announce(announcement)) }
      case .effect(let effect): perform(effect, session)
      case .settled(.entries, let version): settleEntries { $0.note(pages: version) }
      case .settled(let kind, let version): settled(kind, version)
      case .announced(let number): worker.put { $0.add(announced: number) }
      }
    }
    try start(worker, "prefs-entries", session) { [self] task in
      switch task {
      case .effect(let effect):
        awaitHeldRequests(in: effect.directory)
        perform(effect, session)
      case .settled(_, let version): settleEntries { $0.note(entries: version) }
      case .announced(let number): note(.announced, number)
      }
    }
  }

  private func start(
    _ worker: BatchWorker<Tasks>, _ name: String, _ session: SessionPointer,
    _ carryOut: @escaping @Sendable (Task) -> Void
  ) throws(SystemError) {
    let device = fuse_session_fd(session.raw)
    try worker.start(
      name: name, prepare: { [self] in isolate(device) }, ended: { [ended] in ended.signal() }
    ) { [self] tasks in
      for task in tasks.all where !worker.isStopping {
        note(performing: 1)
        carryOut(task)
        note(performing: -1)
      }
    }
  }

  /// Notes that one more thread carries out a task (1), or one fewer (-1): a crash meanwhile writes
  /// no core dump.
  private func note(performing change: Int) {
    performing.withLock { count in
      count += change
      assert((0...2).contains(count), "each of the two threads carries out one task")
      CrashReport.forbidDumps(count > 0)
    }
  }

  /// Notes how far one of the threads is, and says so if entries are settled for more changes now.
  private func settleEntries(_ note: (inout SettledEntries) -> UInt64?) {
    if let version = entries.withLock({ note(&$0) }) { settled(.entries, version) }
  }

  /// Gives the thread a descriptor table of its own. It keeps the standard descriptors, the
  /// wake-up, and a second device in the place of the session's; everything else is closed there.
  private func isolate(_ device: CInt) {
    guard prefsfs_unshare_descriptors() == 0 else { return }
    // If no second device can be made, at least no socket stays open here.
    _ = prefsfs_clone_device(device)
    var next = 3
    for kept in [ended.number, device].sorted() {
      if Int(kept) > next { prefsfs_close_range(UInt32(next), UInt32(kept) - 1) }
      next = max(next, Int(kept) + 1)
    }
    prefsfs_close_range(UInt32(next), .max)
  }

  /// Hands effects to the threads, each of which performs its own in order.
  /// - Parameter number: that of the last announcement among them; 0 if there is none, or it is not
  ///   saved.
  func enqueue(_ effects: [Effect], announced number: UInt64 = 0) {
    let (entries, others) = (effects.filter(\.isOfEntry), effects.filter { !$0.isOfEntry })
    if !entries.isEmpty { worker.put { tasks in for effect in entries { tasks.add(effect) } } }
    if others.isEmpty { return }
    pageWorker.put { tasks in
      for effect in others { tasks.add(effect) }
      if number > 0 { tasks.add(announced: number) }
    }
  }

  /// Has `settled` called for the version when everything that was put before has been done; for
  /// attributes, the pages.
  func enqueue(settled kind: Settlement, _ version: UInt64) {
    pageWorker.put { $0.add(settled: kind, version) }
    if kind == .entries { worker.put { $0.add(settled: kind, version) } }
  }

  /// Asks the threads to end after their present tasks. The loop must answer requests until they
  /// have ended.
  func beginStop() {
    pageWorker.beginStop()
    worker.beginStop()
  }

  var hasEnded: Bool { pageWorker.hasEnded && worker.hasEnded }

  func join() {
    pageWorker.join()
    worker.join()
  }

  /// Lets a reply arrive that introduces a node to the kernel.
  private static func awaitIntroduction() { Instant.sleep(microseconds: 500) }

  private func perform(_ effect: Effect, _ session: SessionPointer) {
    switch effect {
    case .invalidateAttributes(let node):
      // The loop has tried this before the kernel knew the node.
      Self.awaitIntroduction()
      fuse_lowlevel_notify_inval_inode(session.raw, node.rawValue, -1, 0)
    case .invalidateContents(let node):
      // This drops the attributes first, and then the pages.
      guard fuse_lowlevel_notify_inval_inode(session.raw, node.rawValue, 0, 0) == -ENOENT else {
        return
      }
      Self.awaitIntroduction()
      fuse_lowlevel_notify_inval_inode(session.raw, node.rawValue, 0, 0)
    case .invalidateEntry(let parent, let name):
      fuse_lowlevel_notify_inval_entry(session.raw, parent.rawValue, name, name.utf8.count)
    case .announce(let announcement):
      announcer.perform(announcement, session) { note(.announcer, UInt64(clamping: $0)) }
    case .awaitSettlement: break
    }
  }
}

extension Effect {
  fileprivate var isOfEntry: Bool { if case .invalidateEntry = self { true } else { false } }

  /// The directory that the kernel locks for it.
  fileprivate var directory: NodeID? {
    switch self {
    case .invalidateEntry(let parent, _): parent
    case .announce(let announcement): announcement.parent
    default: nil
    }
  }
}

/// Up to which change the two threads of a `CacheInvalidator` have done what was put before entries
/// settled. Entries are settled for a change when both have, so that whoever waits for that reads
/// no old page.
///
/// What a driver finds that has changed before it has no version (0), and takes nothing back.
struct SettledEntries {
  private var (pages, entries): (UInt64, UInt64) = (0, 0)

  /// Notes how far pages are dropped.
  /// - Returns: up to which change entries are settled now; nil means as before.
  mutating func note(pages version: UInt64) -> UInt64? {
    note { $0.pages = max($0.pages, version) }
  }

  /// Notes how far entries are dropped.
  /// - Returns: as `note(pages:)`.
  mutating func note(entries version: UInt64) -> UInt64? {
    note { $0.entries = max($0.entries, version) }
  }

  private mutating func note(_ change: (inout SettledEntries) -> Void) -> UInt64? {
    let before = min(pages, entries)
    change(&self)
    let now = min(pages, entries)
    return now > before ? now : nil
  }
}
