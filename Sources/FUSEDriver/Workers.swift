import CFUSE
import CLinux
import Glibc
import PreferenceModel
import PreferenceTree
import Synchronization
import SystemCalls

/// Tells the kernel to drop pages and entries, and announces changes to watchers, on a thread of
/// its own: there the kernel makes it wait for locks that a request of this mount may hold until it
/// is answered. The effects that wait form a set, so that a storm of changes stays bounded. ENOENT
/// (the kernel does not know the node or the name) is no error.
///
/// The thread has a descriptor table of its own, with a second device of the connection. When the
/// process is killed, the kernel releases a thread that waits for such a lock only when the request
/// that holds the lock ends, and ends that request only when the device that it was read from is
/// closed; this thread must not be the one that keeps that device open. So its table holds nothing
/// but the standard descriptors, the bells and its own device, and code on this thread must use no
/// socket and no file of the engine or of other threads.
///
/// Threads: any may put. Locks: `state`, for one look; `thread`.
final class Notifier: Sendable {
  private enum Task {
    case effect(Effect)
    /// Once the tasks before this one are done, the kernel has been told of the changes up to the
    /// version.
    case settled(Settlement, UInt64)
  }

  private struct State {
    var waiting: [Task] = []
    var known: Set<Effect> = []
    var isStopping = false
    var hasEnded = false
    var session = SessionPointer(nil)
    /// The last announcement of each name in `waiting`.
    var announced: [String: Announcement] = [:]

    /// Notes the effect, and returns whether it must be added to `waiting`. An effect that already
    /// waits is not added again; but a name may come and go several times, so an announcement is
    /// left out only if the last one of its name is of the same kind.
    mutating func isNew(_ effect: Effect) -> Bool {
      guard case .announce(let announcement) = effect else {
        return known.insert(effect).inserted
      }
      let name = announcement.domain + "/" + (announcement.key ?? "")
      defer { announced[name] = announcement }
      switch (announced[name]?.kind, announcement.kind) {
      case (.changed, .changed), (.created, .created), (.removed, .removed): return false
      default: return true
      }
    }
  }

  private let state = Mutex(State())
  private let bell: Wakeup
  private let ended: Wakeup
  private let announcer: Announcer
  private let settled: @Sendable (Settlement, UInt64) -> Void
  private let thread = Mutex<WorkerThread?>(nil)

  /// - Parameters:
  ///   - ended: rung when the thread ends.
  ///   - settled: called on the thread when the kernel has been told of the changes up to a
  ///     version.
  init(
    ended: Wakeup, announcer: Announcer,
    settled: @escaping @Sendable (Settlement, UInt64) -> Void
  ) throws(SystemError) {
    self.ended = ended
    self.announcer = announcer
    self.settled = settled
    bell = try Wakeup()
  }

  /// Starts the thread, for a session that is mounted.
  func start(_ session: SessionPointer) throws(SystemError) {
    state.withLock { $0.session = session }
    let device = fuse_session_fd(session.raw)
    // Nor may a crash write a core dump: that would wait for this thread before any device is
    // closed.
    prefsfs_forbid_dumps()
    let worker = try WorkerThread(name: "prefs-notifier") { [self] in
      isolate(device)
      run()
    }
    thread.withLock { $0 = worker }
  }

  /// Gives the thread a descriptor table of its own. It keeps the standard descriptors, the bells,
  /// and a second device in the place of the session's; everything else is closed there.
  private func isolate(_ device: CInt) {
    guard prefsfs_unshare_descriptors() == 0 else { return }
    // If no second device can be made, at least no lock file and no socket stays open here.
    _ = prefsfs_clone_device(device)
    var next = 3
    for kept in [bell.number, ended.number, device].sorted() {
      if Int(kept) > next { prefsfs_close_range(UInt32(next), UInt32(kept) - 1) }
      next = max(next, Int(kept) + 1)
    }
    prefsfs_close_range(UInt32(next), .max)
  }

  /// Hands effects to the thread, which performs them in order.
  func put(_ effects: [Effect]) {
    if effects.isEmpty { return }
    state.withLock { state in
      for effect in effects where state.isNew(effect) { state.waiting.append(.effect(effect)) }
    }
    bell.ring()
  }

  /// Has `settled` called for the version when everything that was put before has been done.
  func put(settled kind: Settlement, _ version: UInt64) {
    state.withLock { state in
      var version = version
      if case .settled(kind, let before)? = state.waiting.last {
        version = max(version, before)
        state.waiting.removeLast()
      }
      state.waiting.append(.settled(kind, version))
    }
    bell.ring()
  }

  /// Asks the thread to end after its present task. The loop must answer requests until it has
  /// ended.
  func beginStop() {
    state.withLock { $0.isStopping = true }
    bell.ring()
  }

  var hasEnded: Bool { state.withLock { $0.hasEnded } }

  func join() { thread.withLock { $0.take() }?.join() }

  private func run() {
    while true {
      let (tasks, session) = state.withLock { state in
        defer { (state.waiting, state.known, state.announced) = ([], [], [:]) }
        return (state.waiting, state.session)
      }
      for task in tasks where !state.withLock({ $0.isStopping }) {
        switch task {
        case .effect(let effect): perform(effect, session)
        case .settled(let kind, let version): settled(kind, version)
        }
      }
      if state.withLock({ $0.isStopping }) { break }
      if tasks.isEmpty { bell.wait(until: nil) }
    }
    state.withLock { $0.hasEnded = true }
    ended.ring()
  }

  private func perform(_ effect: Effect, _ session: SessionPointer) {
    switch effect {
    case .invalidateAttributes(let node):
      // The loop has tried this before the kernel knew the node. The pause lets the reply arrive
      // that introduces it.
      Instant.sleep(microseconds: 500)
      fuse_lowlevel_notify_inval_inode(session.raw, node.rawValue, -1, 0)
    case .invalidateContents(let node):
      fuse_lowlevel_notify_inval_inode(session.raw, node.rawValue, 0, 0)
    case .invalidateEntry(let parent, let name):
      fuse_lowlevel_notify_inval_entry(session.raw, parent.rawValue, name, name.utf8.count)
    case .announce(let announcement): announcer.perform(announcement)
    case .awaitSettlement: break
    }
  }
}

/// Answers fsync(2) on a thread of its own. One wait for the disk serves all requests that came
/// before it began.
final class Synchroniser: Sendable {
  private struct State {
    var requests: [HeldReply] = []
    var isStopping = false
    var hasEnded = false
  }

  private let store: any DurabilityService
  private let owner: Owner
  private let bell: Wakeup
  private let ended: Wakeup
  private let waiting = Mutex(State())
  private let thread = Mutex<WorkerThread?>(nil)

  /// - Parameter ended: rung when the thread ends.
  init(store: any DurabilityService, owner: Owner, ended: Wakeup) throws(SystemError) {
    self.ended = ended
    self.store = store
    self.owner = owner
    bell = try Wakeup()
    let worker = try WorkerThread(name: "prefs-sync") { [self] in run() }
    thread.withLock { $0 = worker }
  }

  /// Hands a request over, to be answered when the disk has everything that was changed before.
  func put(_ reply: consuming Reply) {
    let request = HeldReply(reply)
    waiting.withLock { $0.requests.append(request) }
    bell.ring()
  }

  /// Asks the thread to end once it has answered the requests that wait.
  func beginStop() {
    waiting.withLock { $0.isStopping = true }
    bell.ring()
  }

  var hasEnded: Bool { waiting.withLock { $0.hasEnded } }

  func join() { thread.withLock { $0.take() }?.join() }

  private func run() {
    while true {
      let (requests, isStopping) = waiting.withLock { state in
        defer { state.requests = [] }
        return (state.requests, state.isStopping)
      }
      if !requests.isEmpty {
        let answer = synchronize()
        for request in requests { request.send(answer, owner) }
      } else if isStopping {
        break
      } else {
        bell.wait(until: nil)
      }
    }
    waiting.withLock { $0.hasEnded = true }
    ended.ring()
  }

  private func synchronize() -> Answer {
    do {
      try store.makeDurable()
      return .done
    } catch {
      if case .system(let errno) = error.reason { return .error(errno) }
      return .error(.inputOutput)
    }
  }
}
