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
/// order of arrival, except that a request waits while it needs a list which is not in memory, a
/// large listing, or the owner of the store, which does not answer (`RequestGate`). Everything in
/// the kernel's caches that a request made wrong is invalidated: attributes before the reply, so
/// that the very next stat(2) is right; pages and entries after it. The reply to a change is held
/// until the other mounts of the store have dropped their attributes too, so that a program which
/// reads the key there after the write has returned gets the new value; the loop goes on meanwhile.
///
/// Threads: the loop's thread runs the trees. It waits for no list, but for the answer of the
/// store's owner, 5 s at most, and for the data of a language at its first use,
/// 1 s at most. It also receives the owner's notices. The invalidator's thread invalidates pages
/// and entries, because that waits for locks that a request of this mount may hold, and performs
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
  let ownership: FileOwnership
  let log: @Sendable (LogLine) -> Void
  let mailbox: Mailbox
  /// The channel to the guard, what a predecessor has left, and what a successor will need.
  var takeover: Takeover
  /// The request that is being carried out; nil means none.
  var current: RequestContext?
  let heldReplies: HeldReplies
  /// Pages that are being dropped and announcements that wait, because of changes of others.
  var pending = PendingEffects()
  var writers = Writers()
  let gate: RequestGate
  let invalidator: CacheInvalidator
  /// Answers fsync(2) on a thread of its own: one wait for the disk serves all requests that came
  /// before it began.
  let synchroniser: BatchWorker<[HeldReply]>
  let spaceThread = BlockingThreads(name: "prefs-space", most: 1, mostWaiting: 16)
  /// libfuse's session.
  var session = SessionIO.State()

  /// The author of the mount's own changes.
  var author: Author { forest.author }

  /// Performs operations on the mount for watchers.
  var announcer: Announcer { invalidator.announcer }

  /// Creates a libfuse session; nothing is mounted yet.
  /// - Parameters:
  ///   - store: the store that is mounted.
  ///   - root: what the mount point shows.
  ///   - ownership: the user, group and permission mask that files are shown with.
  ///   - arguments: options for libfuse, as on a command line, without the program's name.
  ///   - line: the channel to the mount's guard.
  public init(
    _ store: MountedStore, _ root: Forest.Root, options: TreeOptions, ownership: FileOwnership,
    arguments: [String], line: GuardLine? = nil, log: @escaping @Sendable (LogLine) -> Void
  ) throws(DriverError) {
    takeover = Takeover(line: line)
    self.store = store
    self.ownership = ownership
    self.log = log
    forest = Forest(
      root, engine: store.engine, service: store.control, options: options,
      author: .unique(), claims: store.services, log: log)
    do throws(SystemError) {
      mailbox = try Mailbox()
      gate = RequestGate(store.lists) { [mailbox] in mailbox.wakeup.signal() }
      heldReplies = HeldReplies(ownership, ended: mailbox.wakeup)
      invalidator = CacheInvalidator(ended: mailbox.wakeup) {
        [mailbox] kind, version in
        mailbox.deliver(kind, version)
      }
      let worker = BatchWorker<[HeldReply]>()
      try worker.start(name: "prefs-sync", ended: { [mailbox] in mailbox.wakeup.signal() }) {
        replies in
        let answer = store.synchronized()
        for reply in replies { reply.send(answer, ownership) }
      }
      synchroniser = worker
    } catch {
      throw DriverError("\(error)")
    }
    session.pointer = try makeSession(arguments)
    store.lists.whenRead { [mailbox] in mailbox.wakeup.signal() }
    store.services.addMount(author)
    store.engine.observe(except: author) { [mailbox] notice in mailbox.deliver(notice) }
  }

  private func makeSession(_ arguments: [String]) throws(DriverError) -> SessionPointer {
    var operations = Operations.table
    let words = (["prefsfs"] + arguments).map { strdup($0) }
    defer { for word in words { free(word) } }
    var pointers = words
    let pointer = pointers.withUnsafeMutableBufferPointer { buffer in
      var list = fuse_args(argc: CInt(buffer.count), argv: buffer.baseAddress, allocated: 0)
      defer { fuse_opt_free_args(&list) }
      return prefsfs_fuse_session_new(
        &list, &operations, MemoryLayout.size(ofValue: operations),
        Unmanaged.passUnretained(self).toOpaque())
    }
    guard let pointer else {
      throw DriverError("libfuse refused the options \(arguments.joined(separator: " "))")
    }
    return SessionPointer(pointer)
  }

  /// Mounts at a directory. The mount answers requests once `run` is called. Where it fails, the
  /// changes of others do not wait for this mount, which never was.
  public func mount(at path: String) throws(DriverError) {
    do throws(DriverError) {
      try makeMount(at: path)
    } catch {
      store.services.removeMount(author)
      throw error
    }
  }

  private func makeMount(at path: String) throws(DriverError) {
    guard fuse_session_mount(session.raw, path) == 0 else {
      let reason = MountObstacle.present.sentence.map { ": \($0)" } ?? ""
      throw DriverError("\(path): could not be mounted\(reason)")
    }
    let mounted = announcer.setMountPoint(path)
    try useDevice(fuse_session_fd(session.raw))
    if let line = takeover.line {
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
      takeover.facts = facts
      invalidator.keepProgress(in: log)
      begin(saving: saved)
      line.give(
        device: fuse_session_fd(session.raw), state: log.descriptor.number,
        connection: facts.device == 0 ? nil : gnu_dev_minor(dev_t(facts.device)))
    } catch {
      log("the state cannot be saved; if the driver ends, so does the mount: \(error)")
    }
  }

  /// Keeps the kernel's first message for successors, once it is answered.
  func keepOpening(_ message: [UInt8]) {
    guard var facts = takeover.facts, let saved = takeover.saved, facts.opening.isEmpty else {
      return
    }
    facts.opening = message
    takeover.facts = facts
    saved.log.message = facts.bytes
    noteResending()
  }

  /// Finds out whether the kernel sends requests again (FUSE_HAS_RESEND in FUSE_INIT). If not,
  /// those under way are noted. PREFSFS_NO_RESEND has it so in any case (tests).
  func noteResending() {
    guard let facts = takeover.facts, let saved = takeover.saved else { return }
    let flags = facts.opening.dropFirst(MessageLayout.openingFlags2).first ?? 0
    if flags & SessionIO.hasResend == 0 || getenv("PREFSFS_NO_RESEND") != nil {
      session.outstanding = OutstandingRequests(saved.log, after: facts.openingNumber)
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
      try invalidator.start(session.pointer)
      var loop = try ReceiveLoop(self)
      askForUnanswered()
      takeover.line?.reportReady()
      try loop.run { self.proceedWithUpgrade() }
      if takeover.isHandingOver {
        try handOver(&loop)
        return .handedOver
      }
      // The loop goes on until the workers have ended: the kernel may keep the invalidator waiting
      // for a lock that an unanswered request holds.
      gate.beginRefusing(self)
      beginStop()
      try loop.run(drains: true) {
        self.invalidator.hasEnded && self.synchroniser.hasEnded && self.heldReplies.areSent
      }
    } catch {
      log("\(error)")
    }
    beginStop()
    unmount()
    store.services.removeMount(author)
    forest.finish(now: .now)
    invalidator.join()
    synchroniser.join()
    // A reply that is still held needs the session, which then stays until the process ends.
    if heldReplies.areSent { fuse_session_destroy(session.raw) }
    return .unmounted
  }

  /// Ends for a successor, which the guard starts when this process has ended: what has begun is
  /// finished, and the invalidator's thread, which makes requests of this mount, ends. Requests
  /// that still wait for a list or for the owner are left to the successor.
  private func handOver(_ loop: inout ReceiveLoop) throws(SystemError) {
    invalidator.beginStop()
    // A text that has begun meanwhile.
    let end = Instant.now.advanced(milliseconds: 2000)
    takeover.upgrade = .waiting(end)
    try loop.run(drains: true) {
      self.invalidator.hasEnded && (self.forest.textUnderWay == nil || end <= .now)
    }
    invalidator.join()
    // From here on no request is read, so nothing comes after what the synchroniser has to do.
    synchroniser.beginStop()
    synchroniser.join()
    heldReplies.sendAll()
    // Notices that have come meanwhile: their announcements are saved.
    runTimers(now: .now)
    if let saved = takeover.saved, saved.isIncomplete { saved.replace(trees: forest.saveAll()) }
    takeover.line?.reportHandover()
  }

  /// The most directories that a mount is taken off. It is on more than one where root has mounted
  /// it, or a part of it, elsewhere too (mount --bind).
  private static let mostDirectories = 8

  /// Takes the mount off its directory, which may have been renamed: libfuse looks for it at the
  /// old path only. Does nothing where somebody has unmounted it.
  private func unmount() {
    guard let facts = takeover.facts, facts.device != 0 else {
      return fuse_session_unmount(session.raw)
    }
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
    invalidator.beginStop()
    synchroniser.beginStop()
  }
}
