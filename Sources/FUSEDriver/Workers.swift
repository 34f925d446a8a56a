import CFUSE
import Glibc
import PreferenceModel
import PreferenceTree
import Synchronization
import SystemCalls

/// Tells the kernel to drop pages and entries, on a thread of its own: the kernel waits there for
/// locks that a request of ours may hold until it is answered. Effects that wait are a set, so
/// that a storm of changes stays bounded. What the kernel does not know (ENOENT) is no error.
final class Notifier: Sendable {
  private struct State {
    var waiting: [Effect] = []
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
  private let thread = Mutex<WorkerThread?>(nil)

  /// - Parameter ended: rung when the thread ends.
  init(ended: Wakeup, announcer: Announcer) throws(SystemError) {
    self.ended = ended
    self.announcer = announcer
    bell = try Wakeup()
    let worker = try WorkerThread(name: "prefs-notifier") { [self] in run() }
    thread.withLock { $0 = worker }
  }

  /// Set once, before the first effect.
  var session: SessionPointer {
    get { state.withLock { $0.session } }
    set { state.withLock { $0.session = newValue } }
  }

  func put(_ effects: [Effect]) {
    if effects.isEmpty { return }
    state.withLock { state in
      for effect in effects where state.isNew(effect) { state.waiting.append(effect) }
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
      let (effects, session) = state.withLock { state in
        defer { (state.waiting, state.known, state.announced) = ([], [], [:]) }
        return (state.waiting, state.session)
      }
      for effect in effects where !state.withLock({ $0.isStopping }) { perform(effect, session) }
      if state.withLock({ $0.isStopping }) { break }
      if effects.isEmpty { bell.wait(until: nil) }
    }
    state.withLock { $0.hasEnded = true }
    ended.ring()
  }

  private func perform(_ effect: Effect, _ session: SessionPointer) {
    switch effect {
    case .dropAttributes(let node):
      fuse_lowlevel_notify_inval_inode(session.raw, node.rawValue, -1, 0)
    case .dropContents(let node):
      fuse_lowlevel_notify_inval_inode(session.raw, node.rawValue, 0, 0)
    case .dropEntry(let parent, let name):
      fuse_lowlevel_notify_inval_entry(session.raw, parent.rawValue, name, name.utf8.count)
    case .announce(let announcement): announcer.perform(announcement)
    }
  }
}

/// Answers fsync(2): one wait for the disk serves all requests that came before it began.
final class Synchroniser: Sendable {
  /// A reply in an array: a class, because arrays hold copyable elements only. Sent once.
  private final class Waiting: Sendable {
    private let reply: Mutex<Reply?>

    init(_ reply: consuming Reply) { self.reply = Mutex(consume reply) }

    func send(_ answer: Answer, _ owner: Owner) {
      reply.withLock { $0.take() }?.send(answer, owner: owner)
    }
  }

  private struct State {
    var requests: [Waiting] = []
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
    let request = Waiting(reply)
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
      try engine.synchronize()
      return .done
    } catch {
      if case .system(let errno) = error.reason { return .error(errno) }
      return .error(.inputOutput)
    }
  }
}
