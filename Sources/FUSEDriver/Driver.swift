import CFUSE
import CLinux
import Glibc
import PreferenceModel
import PreferenceTree
import Synchronization
import SystemCalls

/// Connects libfuse to the trees: requests become calls of trees, and their effects become
/// notifications to the kernel.
///
/// Promises: every request gets exactly one reply. Requests are carried out one at a time, in the
/// order of arrival, with two exceptions: a request that needs a list which is not in memory, or a
/// large listing of a directory, waits until another thread has it (`ListGate`), and a change waits
/// while the owner of the store does not answer (`OwnerGate`). Everything in the kernel's caches
/// that a request made wrong is invalidated: attributes before the reply, so that the very next
/// stat(2) is right; pages and entries after it. The reply to a change is held until the other
/// mounts of the store have dropped their attributes too, so that a program which reads the key
/// there after the write has returned gets the new value; the loop goes on meanwhile.
///
/// Threads: the loop's thread runs the trees. It waits for no list (`ListGate`), but for the answer
/// of the store's owner, 5 s at most (`OwnerGate`), and for the data of a language at its first use,
/// 1 s at most. It also receives the owner's notices. The notifier's thread invalidates pages and
/// entries, because that waits for locks that a request of this mount may hold, and performs
/// operations on the mount for watchers (`Announcer`). The synchroniser's thread waits in fsync(2).
/// No lock is held while libfuse is called. A thread that waits for the owner's answer receives
/// notices too, so they are handed to the loop through `mailbox`.
///
/// "No open": OPEN and FLUSH are answered with ENOSYS, so that the kernel stops sending them and
/// opens files from its caches alone: reading an unchanged key makes no request. As there is no
/// close to wait for, a write is judged at write(2). OPENDIR is answered, because whether the
/// kernel may keep a listing depends on how long ago the directory changed.
public final class Driver {
  let forest: Forest
  let store: MountedStore
  let author = Author.unique()
  let ownership: FileOwnership
  let log: @Sendable (String) -> Void
  let mailbox: Mailbox
  let announcer = Announcer()
  /// The channel to the guard; nil: there is none, and the mount ends with this process.
  let line: GuardLine?
  /// Where a successor finds what it must know; nil: nowhere.
  var saved: SavedState?
  var facts: MountFacts?
  /// The requests that a predecessor has left; nil: this driver has none.
  var resent: ResentRequests?
  /// The predecessor's mount, for which changes of others wait; nil: there is none.
  var lostMount: LostMount?
  /// The request that is being carried out, and whether a predecessor has made its changes.
  var current: CurrentRequest?
  var isRepeating = false
  let heldReplies: HeldReplies
  var droppedPages = DroppedPages()
  /// Announcements that wait for a moment; nil: there are none.
  private(set) var delayed: Delayed?
  /// The last change after which pages were to be dropped, and the last for which that was done.
  private var (lastDrop, droppedThrough): (UInt64, UInt64) = (0, 0)
  var ownerGate = OwnerGate()
  let gate: ListGate
  /// The version of a directory's entries that is new enough for the request that is being carried
  /// out, because the request has waited for a listing of it.
  var listingVersion: UInt64?
  /// The mount ends: a request that would have to wait is refused.
  private(set) var isEnding = false
  /// Whether the guard has asked this driver to end for a successor.
  var isHandingOver = false
  let notifier: Notifier
  private let synchroniser: Synchroniser
  private let spaceThread = BlockingThreads(name: "prefs-space", most: 1, mostWaiting: 16)
  private(set) var session: SessionPointer
  var io = SessionIO.State()
  /// The error that every request is answered with, without reaching the tree; nil: requests are
  /// carried out.
  var refusal: Errno?

  /// Creates a libfuse session; nothing is mounted yet.
  /// - Parameters:
  ///   - store: the store that is mounted.
  ///   - root: what the mount point shows.
  ///   - ownership: the user, group and permission mask that files are shown with.
  ///   - arguments: options for libfuse, as on a command line, without the program's name.
  ///   - line: the channel to the mount's guard.
  public init(
    _ store: MountedStore, _ root: Forest.Root, options: TreeOptions, ownership: FileOwnership,
    arguments: [String], line: GuardLine? = nil, log: @escaping @Sendable (String) -> Void
  ) throws(DriverError) {
    self.line = line
    self.store = store
    self.ownership = ownership
    self.log = log
    forest = Forest(
      root, engine: store.engine, service: store.control, options: options, author: author,
      log: log)
    do throws(SystemError) {
      mailbox = try Mailbox()
      gate = ListGate(store.lists) { [mailbox] in mailbox.bell.ring() }
      heldReplies = HeldReplies(ownership, ended: mailbox.bell)
      notifier = Notifier(ended: mailbox.bell, announcer: announcer) {
        [mailbox] kind, version in
        mailbox.put(kind, version)
      }
      synchroniser = try Synchroniser(
        store: store.services, ownership: ownership, ended: mailbox.bell)
    } catch {
      throw DriverError("\(error)")
    }
    session = SessionPointer(nil)
    session = try makeSession(arguments)
    store.lists.whenRead { [mailbox] in mailbox.bell.ring() }
    store.services.addMount(author)
    store.engine.observe(except: author) { [mailbox] notice in mailbox.put(notice) }
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
    guard let pointer else {
      throw DriverError("libfuse refused the options \(arguments.joined(separator: " "))")
    }
    return SessionPointer(pointer)
  }

  /// Mounts at a directory. The mount answers requests once `run` is called.
  public func mount(at path: String) throws(DriverError) {
    guard fuse_session_mount(session.raw, path) == 0 else {
      throw DriverError("\(path): could not be mounted")
    }
    let mounted = announcer.setMountPoint(path)
    try useDevice(fuse_session_fd(session.raw))
    if let line {
      prepareSuccession(
        line,
        MountFacts(
          path: path, device: UInt64(mounted?.device ?? 0), store: store.volume))
    }
  }

  /// Gives the guard what a successor needs.
  private func prepareSuccession(_ line: GuardLine, _ facts: MountFacts) {
    do throws(SystemError) {
      let log = try SharedLog(name: "prefsfs-state")
      log.message = facts.bytes
      let saved = SavedState(log)
      saved[.format] = SavedState.format
      saved[.client] = store.changes?.client ?? 0
      saved[.mounted] = UInt64(bitPattern: Timestamp.now.nanoseconds)
      saved[.author] = author.number
      self.facts = facts
      notifier.note(in: log)
      begin(saving: saved)
      line.give(
        device: fuse_session_fd(session.raw), state: log.descriptor.number,
        connection: facts.device == 0 ? nil : prefsfs_minor(UInt(facts.device)))
    } catch {
      log("no state can be saved: if the driver ends, the mount ends too: \(error)")
    }
  }

  /// Keeps the kernel's first message for successors, once it is answered.
  func keepOpening(_ message: [UInt8]) {
    guard var facts, let saved, facts.opening.isEmpty else { return }
    facts.opening = message
    self.facts = facts
    saved.log.message = facts.bytes
    noteResending()
  }

  /// Finds out whether the kernel sends requests again (FUSE_HAS_RESEND in FUSE_INIT). If not,
  /// those under way are noted. PREFSFS_NO_RESEND has it so in any case (tests).
  func noteResending() {
    guard let facts, let saved else { return }
    let flags = facts.opening.dropFirst(56).first ?? 0
    if flags & 0x80 == 0 || getenv("PREFSFS_NO_RESEND") != nil {
      io.outstanding = OutstandingRequests(saved.log, after: facts.openingNumber)
    }
  }

  /// How a driver has ended.
  public enum End {
    /// The mount is over.
    case unmounted
    /// A successor goes on with the mount.
    case handedOver
  }

  /// Serves requests until the mount is gone, or one of SIGTERM, SIGINT and SIGHUP arrives, which
  /// the caller must have blocked (`blockEndingSignals`). Then unmounts and waits for the worker
  /// threads. Or ends for a successor, if the guard asks for that.
  public func run() throws(DriverError) -> End {
    do throws(SystemError) {
      try notifier.start(session)
      let loop = try ReceiveLoop(self)
      askForUnanswered()
      line?.reportReady()
      try loop.run { self.isHandingOver }
      if isHandingOver {
        try handOver(loop)
        return .handedOver
      }
      // The loop goes on until the workers have ended: the kernel may keep the notifier waiting for
      // a lock that an unanswered request holds.
      ownerGate.refuse(self)
      gate.refuse(self)
      isEnding = true
      beginStop()
      try loop.run(drains: true) {
        self.notifier.hasEnded && self.synchroniser.hasEnded && self.heldReplies.areSent
      }
    } catch {
      log("\(error)")
    }
    beginStop()
    unmount()
    store.services.removeMount(author)
    forest.finish(now: .now)
    notifier.join()
    synchroniser.join()
    // A reply that is still held needs the session, which then stays until the process ends.
    if heldReplies.areSent { fuse_session_destroy(session.raw) }
    return .unmounted
  }

  /// Ends for a successor, which the guard starts when this process has ended: what has begun is
  /// finished, and the notifier's thread, which makes requests of this mount, ends. Requests that
  /// still wait for a list or for the owner are left to the successor.
  private func handOver(_ loop: borrowing ReceiveLoop) throws(SystemError) {
    notifier.beginStop()
    try loop.run(drains: true) { self.notifier.hasEnded }
    notifier.join()
    // From here on no request is read, so nothing comes after what the synchroniser has to do.
    synchroniser.beginStop()
    synchroniser.join()
    heldReplies.sendAll()
    // Notices that have come meanwhile: their announcements are saved.
    runTimers(now: .now)
    line?.reportHandover()
  }

  /// The most directories that a mount is taken off. It is on more than one where root has mounted
  /// it, or a part of it, elsewhere too (mount --bind).
  private static let mostDirectories = 8

  /// Takes the mount off its directory, which may have been renamed: libfuse looks for it at the
  /// old path only. Does nothing where somebody has unmounted it.
  private func unmount() {
    guard let facts, facts.device != 0 else { return fuse_session_unmount(session.raw) }
    let (number, connection) = (
      dev_t(facts.device), KernelConnection(device: fuse_session_fd(session.raw))
    )
    for _ in 0..<Self.mostDirectories {
      guard let point = connection.mountPoint(number) else { return }
      guard KernelConnection.unmount(point, number) else {
        return log("\(point) is still mounted; fusermount3 -u -z \(point)")
      }
    }
  }

  private func beginStop() {
    notifier.beginStop()
    synchroniser.beginStop()
  }

  // MARK: - Requests

  /// Answers a request of the kernel with the result of `body`. Attributes are dropped before the
  /// reply, everything else after it; the reply to a change is held while other mounts must settle.
  func answer(_ reply: consuming Reply, _ body: () throws(TreeError) -> Answer) {
    if let refusal { return reply.send(.error(refusal), ownership: ownership) }
    let answer = carryOut(body)
    let (rest, version) = dropAttributes(forest.removeEffects())
    let announced = save(answer, rest)
    if announced > 0 { announceDelayed() }
    if let version, !store.services.isSettled(through: version) {
      let number = heldReplies.hold(reply, answer)
      store.services.whenSettled(through: version) { [heldReplies] in heldReplies.send(number) }
    } else {
      reply.send(answer, ownership: ownership)
    }
    notifier.put(rest, announced: announced)
  }

  /// Answers statfs(2), by a thread that may wait for the file system of the lists. The reply is held
  /// meanwhile; one that does not answer has no space.
  func answerSpace(_ reply: consuming Reply) {
    let number = heldReplies.hold(reply, .space(MountedStore.shown(nil)), isOfChange: false)
    let isBegun = spaceThread.run { [store, heldReplies] in
      heldReplies.send(number, .space(store.space))
    }
    if !isBegun { heldReplies.send(number) }
  }

  /// Answers fsync(2). `body` decides, on the loop's thread, whether the file can be synchronised;
  /// the synchroniser's thread then waits for the disk.
  func synchronize(_ reply: consuming Reply, _ body: () throws(TreeError) -> Void) {
    if let refusal { return reply.send(.error(refusal), ownership: ownership) }
    var refusal: TreeError?
    do { try body() } catch { refusal = error }
    perform(dropAttributes(forest.removeEffects()).rest)
    if let refusal {
      reply.send(.error(refusal.errno), ownership: ownership)
    } else {
      synchroniser.put(reply)
    }
  }

  /// Performs the effects on attributes, which take no kernel lock that a request may hold.
  /// - Parameter isLater: whether the attributes of a file are dropped later, with its pages.
  /// - Returns: the other effects, and the version that the other mounts must have settled before
  ///   the reply is sent; nil: none.
  private func dropAttributes(
    _ effects: [Effect], isLater: (NodeID) -> Bool = { _ in false }
  ) -> (rest: [Effect], awaited: UInt64?) {
    var awaited: UInt64?
    let rest = effects.filter { effect in
      switch effect {
      case .invalidateAttributes(let node):
        if isLater(node) { return false }
        // The kernel does not know the node. A reply that introduces it may be on its way, so the
        // notifier tries again a little later.
        return fuse_lowlevel_notify_inval_inode(session.raw, node.rawValue, -1, 0) == -ENOENT
      case .awaitSettlement(let version):
        awaited = max(awaited ?? 0, version)
        return false
      case .invalidateContents, .invalidateEntry, .announce: return true
      }
    }
    return (rest, awaited)
  }

  /// Handles what has become due and what other threads have sent: notices, settlements, replies
  /// held for too long, and the tree's deadlines.
  func runTimers(now: Instant) {
    let (notices, settled) = mailbox.removeAll()
    for notice in notices { handle(notice) }
    if let delayed, delayed.until <= now { announceDelayed() }
    for (kind, version) in settled {
      if kind == .attributes { droppedThrough = max(droppedThrough, version) }
      store.services.settle(kind, through: version, by: author)
    }
    if settled[.entries] != nil { removeLostMount() }
    heldReplies.sendLate(now)
    if let deadline = forest.nextDeadline, deadline <= now, resent == nil || !gate.holdsResent {
      forest.tick(now: .now)
    }
    perform(dropAttributes(forest.removeEffects()).rest)
    settleLostMount()
  }

  /// Receives what the owner of the store has sent, if something is waited for: the loop looks while
  /// it polls for requests. Cost: some loads and a lock; a recvmsg(2) where something is waited for.
  /// - Returns: whether something had come.
  func receiveNews() -> Bool {
    guard store.services.hasNotices || !heldReplies.areChangesSent else { return false }
    return store.services.receiveNotices()
  }

  /// Saves what has changed, and hands the effects to the notifier.
  private func perform(_ effects: [Effect]) {
    let announced = save(nil, effects)
    if announced > 0 { announceDelayed() }
    notifier.put(effects, announced: announced)
  }

  /// Handles a change that another process made: invalidates what the kernel caches of it, settles
  /// first attributes and then entries for the processes that wait for this mount, and announces
  /// the change to watchers last.
  ///
  /// Where the kernel may have pages of a file, its attributes are dropped with them, by the notifier
  /// (fs/fuse/inode.c, fuse_reverse_inval_inode does both), and settled after that. A program that
  /// reads between the two would get an old page at the new length, or the new text cut at the old
  /// one. While a
  /// reply of this mount is held, settling does not wait for the pages: the kernel may keep a page
  /// locked until that reply, and that reply waits for the other mounts.
  private func handle(_ notice: Notice) {
    forest.changed(notice, now: .now)
    let (effects, version) = (forest.removeEffects(), notice.changeset.version)
    var withPages: Set<NodeID> = []
    // Of a file whose pages are still being dropped, they are dropped again.
    for case .invalidateContents(let file) in effects
    where droppedPages.noteDropped(file) || lastDrop > droppedThrough {
      withPages.insert(file)
    }
    let isHolding = !heldReplies.areChangesSent
    let rest = dropAttributes(effects) { !isHolding && withPages.contains($0) }.rest
    let announced = save(nil, rest)
    let contents = withPages.map { Effect.invalidateContents($0) }
    notifier.put(contents)
    if !contents.isEmpty { lastDrop = max(lastDrop, version) }
    if lastDrop <= droppedThrough || isHolding {
      store.services.settle(.attributes, through: version, by: author)
    } else {
      notifier.put(settled: .attributes, version)
    }
    notifier.put(rest.filter { !$0.isAnnouncement && !$0.isOfContents })
    notifier.put(settled: .entries, version)
    delay(rest.filter(\.isAnnouncement), announced)
  }

  /// Has changes of others announced a moment later. Each announcement makes requests of this mount;
  /// where changes follow each other closely, other mounts wait for this one, and one announcement
  /// tells watchers of several changes of a file.
  private func delay(_ announcements: [Effect], _ number: UInt64) {
    guard !announcements.isEmpty else { return }
    if delayed == nil { delayed = Delayed(until: Instant.now.advanced(milliseconds: Self.delay)) }
    delayed?.effects += announcements
    delayed?.number = number
  }

  /// Milliseconds for which an announcement waits.
  private static let delay: Int64 = 4

  /// Hands the announcements that wait to the notifier, before later ones.
  private func announceDelayed() {
    guard let due = delayed else { return }
    notifier.put(due.effects, announced: due.number)
    delayed = nil
  }

  /// Announcements that wait.
  struct Delayed {
    var until: Instant
    var effects: [Effect] = []
    /// The number of the last one.
    var number: UInt64 = 0
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

/// Why a mount could not be made.
public struct DriverError: Error, CustomStringConvertible {
  /// The reason, as a sentence for people.
  public let description: String

  init(_ description: String) { self.description = description }
}

/// A pointer to libfuse's session. Its functions may be called from any thread: the session locks
/// what its threads share, and a notification is one write(2).
struct SessionPointer: @unchecked Sendable {
  let raw: OpaquePointer?

  init(_ raw: OpaquePointer?) { self.raw = raw }
}

/// Collects what other threads send to the loop. Any thread may put. Locks: `state`, for one look.
final class Mailbox: Sendable {
  private struct State {
    var notices: [Notice] = []
    var settled: [Settlement: UInt64] = [:]
    var awaitsMissed = false
  }

  private let state = Mutex(State())
  /// Rung when the loop has something to do, here or elsewhere.
  let bell: Wakeup

  init() throws(SystemError) { bell = try Wakeup() }

  func put(_ notice: Notice) {
    state.withLock { $0.notices.append(notice) }
    bell.ring()
  }

  /// Whether nothing was put.
  var isEmpty: Bool { state.withLock { $0.notices.isEmpty && $0.settled.isEmpty } }

  /// Whether the changes that others made before this driver began are still being looked for.
  var awaitsMissed: Bool { state.withLock(\.awaitsMissed) }

  /// Notes that changes from before this driver are being looked for; `put(missed:)` follows.
  func awaitMissed() { state.withLock { $0.awaitsMissed = true } }

  /// Hands over the events of changes from before this driver.
  func put(missed events: [KeyEvent]) {
    state.withLock { state in
      state.awaitsMissed = false
      if !events.isEmpty {
        state.notices.append(Notice(changeset: Changeset(), events: events, author: nil))
      }
    }
    bell.ring()
  }

  /// Records that the kernel has dropped what it cached before the changes up to the version.
  func put(_ settled: Settlement, _ version: UInt64) {
    state.withLock { $0.settled[settled] = max($0.settled[settled] ?? 0, version) }
    bell.ring()
  }

  /// Removes and returns everything that was put.
  func removeAll() -> (notices: [Notice], settled: [Settlement: UInt64]) {
    state.withLock { state in
      defer { (state.notices, state.settled) = ([], [:]) }
      return (state.notices, state.settled)
    }
  }
}
