import CFUSE
import CLinux
import Glibc
import PreferenceModel
import PreferenceTree
import Synchronization
import SystemCalls

/// Tells the kernel to drop pages and entries, on a thread of its own: the kernel waits there for
/// locks that a request of ours may hold until it is answered. Effects that wait are a set, so
/// that a storm of changes stays bounded. What the kernel does not know (ENOENT) is no error.
///
/// The thread has a table of descriptors of its own, and in it another device of the connection. When the
/// process is killed, the kernel lets go of a thread that waits for such a lock only when the
/// request that holds it ends, and ends the request only when the device that it was read from is
/// closed: it must not be this thread that keeps it open. Therefore nothing of the engine's, no
/// socket and no file of other threads, may be used here.
final class Notifier: Sendable {
  private enum Task {
    case effect(Effect)
    /// Everything of that kind before it was for changes up to the version.
    case settled(Settlement, UInt64)
  }

  private struct State {
    var waiting: [Task] = []
    var known: Set<Effect> = []
    var isStopping = false
    var hasEnded = false
    var session = SessionPointer(nil)
    /// What waits to be announced last of each name.
    var announced: [String: Announcement] = [:]

    /// Whether the effect must wait its turn; one that waits already need not wait twice. A name
    /// may come and go several times.
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
  ///   - settled: called, on the thread, when the kernel knows of the changes up to a version.
  init(
    ended: Wakeup, announcer: Announcer,
    settled: @escaping @Sendable (Settlement, UInt64) -> Void
  ) throws(SystemError) {
    self.ended = ended
    self.announcer = announcer
    self.settled = settled
    bell = try Wakeup()
  }

  /// Begins to perform effects, on a session that is mounted.
  func start(_ session: SessionPointer) throws(SystemError) {
    state.withLock { $0.session = session }
    let device = fuse_session_fd(session.raw)
    // The same holds for a crash: a core dump would wait for this thread before anything is closed.
    prefsfs_forbid_dumps()
    let worker = try WorkerThread(name: "prefs-notifier") { [self] in
      isolate(device)
      run()
    }
    thread.withLock { $0 = worker }
  }

  /// Leaves the thread the bells, and a device of its own under the number of the session's.
  private func isolate(_ device: CInt) {
    guard prefsfs_unshare_descriptors() == 0 else { return }
    // Where there can be no other device, at least no lock and no socket stays open here.
    _ = prefsfs_clone_device(device)
    var next = 3
    for kept in [bell.number, ended.number, device].sorted() {
      if Int(kept) > next { prefsfs_close_range(UInt32(next), UInt32(kept) - 1) }
      next = max(next, Int(kept) + 1)
    }
    prefsfs_close_range(UInt32(next), .max)
  }

  func put(_ effects: [Effect]) {
    if effects.isEmpty { return }
    state.withLock { state in
      for effect in effects where state.isNew(effect) { state.waiting.append(.effect(effect)) }
    }
    bell.ring()
  }

  /// What was put before was for changes up to the version.
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

  /// Asks the thread to end after the effect it is at. Requests must be answered until it has.
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
      // What the loop could not drop: see `Driver`.
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

/// Answers fsync(2): one wait for the disk serves all requests that came before it began.
final class Synchroniser: Sendable {
  private struct State {
    var requests: [HeldReply] = []
    var isStopping = false
    var hasEnded = false
  }

  private let engine: any Engine
  private let owner: Owner
  private let bell: Wakeup
  private let ended: Wakeup
  private let waiting = Mutex(State())
  private let thread = Mutex<WorkerThread?>(nil)

  /// - Parameter ended: rung when the thread ends.
  init(engine: any Engine, owner: Owner, ended: Wakeup) throws(SystemError) {
    self.ended = ended
    self.engine = engine
    self.owner = owner
    bell = try Wakeup()
    let worker = try WorkerThread(name: "prefs-sync") { [self] in run() }
    thread.withLock { $0 = worker }
  }

  func put(_ reply: consuming Reply) {
    let request = HeldReply(reply)
    waiting.withLock { $0.requests.append(request) }
    bell.ring()
  }

  /// Asks the thread to end once it has answered what waits.
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
      try engine.makeDurable()
      return .done
    } catch {
      if case .system(let errno) = error.reason { return .error(errno) }
      return .error(.inputOutput)
    }
  }
}
