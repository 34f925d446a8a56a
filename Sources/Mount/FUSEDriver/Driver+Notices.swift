import CFUSE
import PreferenceModel
import PreferenceTree
import SystemCalls

// What comes from other processes and threads, and what is due at a time.

extension Driver {
  /// Handles what has become due and what other threads have sent: notices, settlements, replies
  /// held for too long, and the tree's deadlines.
  func runTimers(now: Instant) {
    let (notices, settled) = mailbox.removeAll()
    for notice in notices { handle(notice) }
    if let due = pending.announcements, due.until <= now { announceDelayed() }
    for (kind, version) in settled {
      if kind == .attributes { pending.pages.noteDone(through: version) }
      store.services.settle(kind, through: version, by: author)
    }
    heldReplies.sendLate(now)
    dropPostponedPages()
    if let deadline = nextTick, deadline <= now, ownerAnswers() { forest.tick(now: .now) }
    perform(dropAttributes(forest.removeEffects()).rest)
    settleForPredecessor()
  }

  /// When the trees must next be asked to do what is due: at their first deadline, or later if the
  /// owner did not answer then; nil if they have no deadline.
  var nextTick: Instant? { forest.nextDeadline.map { max($0, pending.postponed ?? $0) } }

  /// Whether the owner answers: what is due in the trees may be a change, and the loop must not wait
  /// for an owner that is stopped. If it does not, what is due is postponed.
  private func ownerAnswers() -> Bool {
    let patience: Int64 = pending.postponed == nil ? 20 : 5
    let answers = store.services.isAnswering(within: patience)
    pending.postponed = answers ? nil : Instant.now.advanced(milliseconds: 50)
    return answers
  }

  /// Receives what the owner of the store has sent, if something is waited for: the loop looks while
  /// it polls for requests. Cost: some loads and a lock; a recvmsg(2) where something is waited for.
  /// - Returns: whether something had come.
  func receiveNews() -> Bool {
    guard store.services.hasNotices || !heldReplies.areChangesSent || gate.isHolding else {
      return false
    }
    return store.services.receiveNotices()
  }

  /// Handles a change that another process made: invalidates what the kernel caches of it, settles
  /// first attributes and then entries for the processes that wait for this mount, and announces
  /// the change to watchers last.
  ///
  /// Where the kernel may have pages of a file, its attributes are dropped with them, by the
  /// invalidator (fs/fuse/inode.c, fuse_reverse_inval_inode does both), and settled after that. A
  /// program that reads between the two would get an old page at the new length, or the new text
  /// cut at the old one.
  ///
  /// The kernel may keep pages locked until a reply of this mount is sent, which waits for other
  /// mounts. They are dropped after that, and settling does not wait for them; nor for what stands in
  /// the invalidator's queue behind pages that were locked meanwhile. So no two mounts wait for
  /// each other: a settlement stands behind such pages only if they were locked by a later change,
  /// and of changes that wait for each other one is the last.
  private func handle(_ notice: Notice) {
    forest.changed(notice, now: .now)
    let (effects, version) = (forest.removeEffects(), notice.changeset.version)
    var withPages: Set<NodeID> = []
    // Of a file whose pages are still being dropped, they are dropped again.
    for case .invalidateContents(let file) in effects
    where pending.pages.noteDropped(file) || pending.pages.isDropping {
      withPages.insert(file)
    }
    let locked = heldReplies.changed
    let free = withPages.subtracting(locked)
    let isBlocked = pending.pages.isDropping(anyOf: locked)
    let rest = dropAttributes(effects) { !isBlocked && free.contains($0) }.rest
    let announced = save(nil, rest)
    pending.pages.postpone(withPages.intersection(locked), version)
    dropPages(of: free, version)
    if isBlocked || !pending.pages.isDropping {
      store.services.settle(.attributes, through: version, by: author)
    }
    if pending.pages.isDropping { invalidator.enqueue(settled: .attributes, version) }
    invalidator.enqueue(rest.filter { !$0.isAnnouncement && !$0.isOfContents })
    invalidator.enqueue(settled: .entries, version)
    delay(rest.filter(\.isAnnouncement), announced)
  }

  /// Has the invalidator drop pages of files because of a change.
  private func dropPages(of files: Set<NodeID>, _ version: UInt64) {
    invalidator.enqueue(files.map { Effect.invalidateContents($0) })
    pending.pages.noteDrop(of: files, version)
  }

  /// Returns the effects of a request of this mount without those on pages that may be locked, which
  /// are dropped later. Nobody waits for this mount to settle its own change.
  func postponingPages(_ effects: [Effect]) -> [Effect] {
    guard effects.contains(where: \.isOfContents) else { return effects }
    let locked = heldReplies.changed
    return effects.filter { effect in
      guard case .invalidateContents(let file) = effect, locked.contains(file) else { return true }
      pending.pages.postpone([file], 0)
      return false
    }
  }

  /// Has pages dropped that were locked when a change came.
  private func dropPostponedPages() {
    guard pending.pages.hasPostponed else { return }
    let (files, version) = pending.pages.removePostponed(except: heldReplies.changed)
    if files.isEmpty { return }
    dropPages(of: files, version)
    if version > 0 { invalidator.enqueue(settled: .attributes, version) }
  }

  /// Has changes of others announced a moment later. Each announcement makes requests of this mount;
  /// where changes follow each other closely, other mounts wait for this one, and one announcement
  /// tells watchers of several changes of a file.
  private func delay(_ announcements: [Effect], _ number: UInt64) {
    guard !announcements.isEmpty else { return }
    if pending.announcements == nil {
      pending.announcements = PendingEffects.Announcements(
        until: Instant.now.advanced(milliseconds: Self.delay))
    }
    pending.announcements?.effects += announcements
    pending.announcements?.number = number
  }

  /// Milliseconds for which an announcement waits.
  private static let delay: Int64 = 4

  /// Hands the announcements that wait to the invalidator, before later ones.
  func announceDelayed() {
    guard let due = pending.announcements else { return }
    invalidator.enqueue(due.effects, announced: due.number)
    pending.announcements = nil
  }
}

/// What the loop has still to do: which pages are being dropped, which announcements wait, and until
/// when the deadlines of the trees are postponed.
///
/// Threads: the loop's alone.
struct PendingEffects {
  var pages = DroppedPages()
  /// Announcements that wait for a moment; nil if there are none.
  var announcements: Announcements?
  /// Until when what is due in the trees waits, because the owner does not answer; nil if it does.
  var postponed: Instant?

  /// Announcements that wait.
  struct Announcements {
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
