import CFUSE
import CLinux
import Glibc
import PreferenceModel
import PreferenceTree
import Synchronization
import SystemCalls

/// libfuse in, libfuse out: requests become calls of the tree, effects become notifications.
///
/// Promises: every request gets exactly one reply, in the order of arrival but for fsync. What the
/// kernel must be told of a request is told: attributes before the reply (so that the very next
/// stat(2) is right), pages and entries after it. A reply to a change waits until the other mounts of
/// the store have dropped their attributes too (law 7); the loop does not.
///
/// Threads: the loop's, which runs the tree and never waits for a disk (`ListGate`); the notifier's, because
/// dropping pages or entries waits for locks that a request of ours may hold, and because it performs
/// operations on the mount for watchers (`Announcer`); the synchroniser's,
/// which waits in fsync(2). No lock is held while libfuse is called. Notices of the engine come on
/// any thread and are handed to the loop through `mailbox`.
///
/// "No open": OPEN and FLUSH are answered with ENOSYS, so that the kernel stops sending them and
/// opens from its caches alone (law 5); that is why a write is judged at write(2). OPENDIR is
/// answered, because whether a listing may be kept depends on how long ago it changed.
public final class Driver {
  let tree: Tree
  let engine: any Engine
  private let author = Author.unique()
  let owner: Owner
  private let log: @Sendable (String) -> Void
  let mailbox: Mailbox
  let announcer = Announcer()
  private var post: Guard.Post?
  private var mounted: MountInformation.Mount?
  let heldReplies: HeldReplies
  var parking = Parking()
  let gate: ListGate
  private let notifier: Notifier
  private let synchroniser: Synchroniser
  private(set) var session: SessionPointer
  var io = SessionIO.State()
  /// What requests are answered with, without being looked at; nil: they are carried out.
  var refusal: Errno?

  /// Makes a session; nothing is mounted yet.
  /// - Parameters:
  ///   - lists: has the engine's lists read, so that the loop need not wait for one.
  ///   - arguments: options for libfuse, as on a command line, without the program's name.
  public init(
    engine: any Engine, lists: ListReader, options: TreeOptions, owner: Owner, arguments: [String],
    log: @escaping @Sendable (String) -> Void
  ) throws(DriverError) {
    self.engine = engine
    self.owner = owner
    self.log = log
    gate = ListGate(lists)
    tree = Tree(engine: engine, options: options, author: author, now: .now, log: log)
    do throws(SystemError) {
      mailbox = try Mailbox()
      heldReplies = HeldReplies(owner, ended: mailbox.bell)
      notifier = try Notifier(ended: mailbox.bell, announcer: announcer) {
        [mailbox] kind, version in
        mailbox.put(kind, version)
      }
      synchroniser = try Synchroniser(engine: engine, owner: owner, ended: mailbox.bell)
    } catch {
      throw DriverError("\(error)")
    }
    session = SessionPointer(nil)
    session = try makeSession(arguments)
    lists.whenRead { [mailbox] in mailbox.bell.ring() }
    engine.addMount(author)
    engine.observe(except: author) { [mailbox] notice in mailbox.put(notice) }
  }

  private func makeSession(_ arguments: [String]) throws(DriverError) -> SessionPointer {
    var operations = Operations.table
    let words = (["prefsfs"] + arguments).map { strdup($0) }
    defer { for word in words { free(word) } }
    var pointers = words
    let pointer = pointers.withUnsafeMutableBufferPointer { buffer in
      var list = prefsfs_fuse_args(CInt(buffer.count), buffer.baseAddress)
      defer { fuse_opt_free_args(&list) }
      return fuse_session_new(
        &list, &operations, MemoryLayout.size(ofValue: operations),
        Unmanaged.passUnretained(self).toOpaque())
    }
    guard let pointer else { throw DriverError("libfuse refused the options") }
    return SessionPointer(pointer)
  }

  /// Mounts; the mount answers once `run` is called.
  public func mount(at path: String) throws(DriverError) {
    guard fuse_session_mount(session.raw, path) == 0 else {
      throw DriverError("\(path): could not be mounted")
    }
    mounted = announcer.setMountPoint(path)
    if let device = mounted?.device {
      do throws(SystemError) {
        post = try Guard.post(for: prefsfs_minor(UInt(device)))
      } catch {
        log("the mount has no guard: \(error)")
      }
    }
    var io = SessionIO.table
    guard fuse_session_custom_io(session.raw, &io, fuse_session_fd(session.raw)) == 0 else {
      throw DriverError("\(path): no memory")
    }
  }

  /// Serves requests until the mount is gone or a signal asks for the end (SIGTERM, SIGINT,
  /// SIGHUP, which the caller has blocked); then unmounts and waits for the workers.
  public func run() throws(DriverError) {
    do throws(SystemError) {
      try notifier.start(session)
      let loop = try ReceiveLoop(self)
      try loop.run { false }
      // The kernel may hold the notifier in a lock of a request that is still to be answered.
      parking.refuse(self)
      gate.refuse(self)
      beginStop()
      try loop.run {
        self.notifier.hasEnded && self.synchroniser.hasEnded && self.heldReplies.areSent
      }
    } catch {
      log("\(error)")
    }
    beginStop()
    fuse_session_unmount(session.raw)
    unmountWhereItIs()
    post?.dismiss()
    tree.finish(now: .now)
    notifier.join()
    synchroniser.join()
    // A reply that is still held needs the session; the process ends anyway.
    if heldReplies.areSent { fuse_session_destroy(session.raw) }
  }

  /// A mount point whose directory was renamed is not where libfuse looks for it.
  private func unmountWhereItIs() {
    guard let mounted, let path = MountInformation.path(of: mounted),
      umount2(path, CInt(MNT_DETACH)) != 0
    else { return }
    // A plain user's mounts end with the set-uid program.
    do { _ = try Child.run("fusermount3", ["-u", "-z", path]) } catch { log("\(error)") }
  }

  private func beginStop() {
    notifier.beginStop()
    synchroniser.beginStop()
  }

  // MARK: - Requests

  /// Answers a request of the kernel with what `body` gives.
  func answer(_ reply: consuming Reply, _ body: () throws(TreeError) -> Answer) {
    if let refusal { return reply.send(.error(refusal), owner: owner) }
    let answer: Answer
    do {
      answer = try body()
    } catch {
      answer = .error(error.errno)
    }
    let (rest, version) = dropAttributes()
    if let version, engine.isShared {
      let number = heldReplies.hold(reply, answer)
      engine.whenSettled(.attributes, through: version, except: author) { [heldReplies] in
        heldReplies.send(number)
      }
    } else {
      reply.send(answer, owner: owner, isShared: engine.isShared)
    }
    notifier.put(rest)
  }

  /// fsync(2): the tree decides, the disk is waited for elsewhere.
  func synchronize(_ reply: consuming Reply, _ body: () throws(TreeError) -> Void) {
    var refusal: TreeError?
    do { try body() } catch { refusal = error }
    notifier.put(dropAttributes().rest)
    if let refusal {
      reply.send(.error(refusal.errno), owner: owner)
    } else {
      synchroniser.put(reply)
    }
  }

  /// Performs the effects on attributes, which take no lock of the kernel's that a request holds;
  /// gives back the others, and what the reply must wait for.
  private func dropAttributes() -> (rest: [Effect], awaited: UInt64?) {
    var awaited: UInt64?
    let rest = tree.removeEffects().filter { effect in
      switch effect {
      case .invalidateAttributes(let node):
        // Of a node that the kernel does not know yet, an answer may be on its way: again, later.
        return fuse_lowlevel_notify_inval_inode(session.raw, node.rawValue, -1, 0) == -ENOENT
      case .awaitSettlement(let version):
        awaited = max(awaited ?? 0, version)
        return false
      case .invalidateContents, .invalidateEntry, .announce: return true
      }
    }
    return (rest, awaited)
  }

  /// What came due, or from other threads.
  func runTimers(now: Instant) {
    let (notices, settled) = mailbox.take()
    for notice in notices { take(notice) }
    for (kind, version) in settled { engine.settle(kind, through: version, by: author) }
    heldReplies.sendLate(now)
    if let deadline = tree.nextDeadline, deadline <= now { tree.tick(now: .now) }
    notifier.put(dropAttributes().rest)
  }

  /// A change that others made: those who wait for this mount hear when it has dropped attributes and pages,
  /// and when it has dropped entries; watchers hear of it after that.
  ///
  /// Pages are dropped before the change is answered, because that makes the kernel ignore attributes which it
  /// is asking for at that moment (fs/fuse/inode.c, fuse_reverse_inval_inode): whoever read just then would
  /// get the new text cut at its old length. But a mount whose own reply is held does not make others wait for
  /// its pages: the kernel may keep one locked until that reply, which waits for those others.
  private func take(_ notice: Notice) {
    tree.changed(notice, now: .now)
    let (rest, version) = (dropAttributes().rest, notice.changeset.version)
    let contents = rest.filter(\.isOfContents)
    notifier.put(contents)
    if contents.isEmpty || !heldReplies.areSent {
      engine.settle(.attributes, through: version, by: author)
    } else {
      notifier.put(settled: .attributes, version)
    }
    notifier.put(rest.filter { !$0.isAnnouncement && !$0.isOfContents })
    notifier.put(settled: .entries, version)
    notifier.put(rest.filter(\.isAnnouncement))
  }
}

extension Effect {
  fileprivate var isOfContents: Bool {
    if case .invalidateContents = self { true } else { false }
  }

  fileprivate var isAnnouncement: Bool {
    if case .announce = self { true } else { false }
  }
}

/// Why a mount cannot be made.
public struct DriverError: Error, CustomStringConvertible {
  /// A sentence for people.
  public let description: String

  init(_ description: String) { self.description = description }
}

/// libfuse's session. Its functions may be called from any thread: the session locks what its
/// threads share, and a notification is one write(2).
struct SessionPointer: @unchecked Sendable {
  let raw: OpaquePointer?

  init(_ raw: OpaquePointer?) { self.raw = raw }
}

/// What other threads have for the loop.
final class Mailbox: Sendable {
  private struct State {
    var notices: [Notice] = []
    var settled: [Settlement: UInt64] = [:]
  }

  private let state = Mutex(State())
  /// Rung when there is something.
  let bell: Wakeup

  init() throws(SystemError) { bell = try Wakeup() }

  func put(_ notice: Notice) {
    state.withLock { $0.notices.append(notice) }
    bell.ring()
  }

  /// The kernel has dropped what it knew before the changes up to the version.
  func put(_ settled: Settlement, _ version: UInt64) {
    state.withLock { $0.settled[settled] = max($0.settled[settled] ?? 0, version) }
    bell.ring()
  }

  func take() -> (notices: [Notice], settled: [Settlement: UInt64]) {
    state.withLock { state in
      defer { state = State() }
      return (state.notices, state.settled)
    }
  }
}
