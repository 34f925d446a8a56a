import PreferenceModel
import PropertyList
import Synchronization
import SystemCalls

/// Tracks up to which change each mount has settled (its kernel has dropped what changes made
/// stale), and calls the bodies that wait for that.
///
/// A mount that a body has waited for in vain for a second is silent: nothing waits for it until it
/// reports a later settlement.
///
/// A mount whose last connection ends is lost: its driver has crashed, and until there is another
/// one its kernel goes on showing what it has cached. Bodies wait until a successor (`succeed`) has
/// settled for it, a second from its loss at most. The mounts of an owner that has ended count as
/// lost for the next one, until they come back or their successors have settled.
///
/// It also keeps the names that mounts have claimed (`NameClaims`): a claim ends with its mount.
///
/// Threads: any; `expire` is the server's, which waits for no list, and `writeNote` the writer's.
/// Locks: `state`, held for a look, and `note`, under which the mounts are written to a file;
/// `state` is taken under it. Bodies are called without a lock.
public final class Settlements: Sendable {
  private struct Mount {
    var settled: [Settlement: UInt64]
    /// The number of the last change that it was notified of. It is not notified of its own
    /// changes, nor of those that do not concern it.
    var told: UInt64
    var isSilent = false
    /// How many connections it has: an old one may end after the new one has begun.
    var registrations = 1
    /// Until when a lost mount is waited for; nil if it is not lost.
    var lostUntil: Instant?
    /// The mount of the driver that goes on for this one's; nil if none does.
    var successor: Author?
    /// The names that the mount has claimed; nil if the owner before knew, and the mount is not
    /// back.
    var claims: Set<Key>? = []
  }

  /// A body that waits until every mount but the author's has settled the changes up to the
  /// version.
  private struct Waiter {
    /// nil if it waits until all claims of the mounts are known.
    var settlement: Settlement?
    var version: UInt64
    var author: Author
    var deadline: Instant
    var body: @Sendable () -> Void
  }

  private struct State {
    var mounts: [Author: Mount] = [:]
    var waiters: [Waiter] = []
    /// The earliest known time at which `expire` has work; nil if the caller of `earlier` must
    /// still be told.
    var next: Instant? = Instant(nanoseconds: 0)

    /// Notes that `expire` must be called then. A waiter that is served leaves the moment as it is.
    /// - Returns: whether that is earlier than before.
    mutating func noteExpiry(_ deadline: Instant) -> Bool {
      if let next, next <= deadline { return false }
      next = deadline
      return true
    }

    /// Whether the waiter must wait for the mount: it was notified of changes that it has not
    /// settled.
    func isLate(_ author: Author, for waiter: Waiter) -> Bool {
      guard let mount = mounts[author], !mount.isSilent, author != waiter.author,
        mount.successor != waiter.author
      else { return false }
      guard let settlement = waiter.settlement else { return mount.claims == nil }
      return mount.settled[settlement, default: 0] < min(waiter.version, mount.told)
    }

    /// Whether a mount has claimed the name for which the author's does not go on.
    func isClaimed(_ name: Key, otherThanBy author: Author) -> Bool {
      mounts.contains { other, mount in
        other != author && mount.successor != author && mount.claims?.contains(name) == true
      }
    }

    /// Whether the mount is lost, and was waited for long enough.
    func isForgotten(_ author: Author, _ now: Instant) -> Bool {
      mounts[author]?.lostUntil.map { $0 <= now } ?? false
    }

    /// When the first waiter has waited long enough, or a lost mount is forgotten; nil means
    /// neither.
    var deadline: Instant? {
      (waiters.map(\.deadline) + mounts.values.compactMap(\.lostUntil)).min()
    }

    /// Marks the mounts that were waited for too long as silent, and forgets lost ones.
    /// - Returns: how many mounts are silent now that were not.
    mutating func expire(_ now: Instant) -> Int {
      let silent = mounts.keys.filter { author in
        let isForgotten = isForgotten(author, now)
        return waiters.contains {
          (isForgotten || $0.deadline <= now) && isLate(author, for: $0)
        }
      }
      for author in silent { mounts[author]?.isSilent = true }
      for author in mounts.keys where isForgotten(author, now) { mounts[author] = nil }
      return silent.count
    }

    /// Removes the mounts that the mount goes on for.
    /// - Returns: whether there was one.
    @discardableResult
    mutating func removePredecessors(of author: Author) -> Bool {
      let count = mounts.count
      mounts = mounts.filter { $0.value.successor != author }
      return mounts.count < count
    }

    /// Removes the waiters that no mount keeps waiting, and returns their bodies.
    mutating func removeServed() -> [@Sendable () -> Void] {
      let all = waiters
      waiters = all.filter { waiter in mounts.keys.contains { isLate($0, for: waiter) } }
      guard waiters.count < all.count else { return [] }
      return all.filter { waiter in !mounts.keys.contains { isLate($0, for: waiter) } }.map(\.body)
    }
  }

  private let state = Mutex(State())
  private let note: Mutex<MountNote>
  /// Called when `expire` must be called earlier than it has said.
  private let earlier = Mutex<(@Sendable () -> Void)?>(nil)
  /// Called when there may be other mounts, so that somebody calls `writeNote`.
  private let changed: @Sendable () -> Void
  private let log: @Sendable (LogLine) -> Void

  /// Milliseconds that a body waits for a mount.
  private static let patience: Int64 = 1000

  /// - Parameters:
  ///   - note: the file that the mounts are noted in, for the next owner; nil means none.
  ///   - ofReader: that of an owner before which only read; nil if there was none.
  ///   - changed: is called when there may be other mounts, which `writeNote` is to note.
  init(
    note path: String? = nil, ofReader: String? = nil, changed: @escaping @Sendable () -> Void = {},
    log: @escaping @Sendable (LogLine) -> Void
  ) {
    (self.changed, self.log) = (changed, log)
    var note = MountNote(path, ofReader: ofReader)
    let known = note.read()
    self.note = Mutex(note)
    let until = Instant.now.advanced(milliseconds: Self.patience)
    state.withLock { state in
      for author in known {
        state.mounts[author] = Mount(
          settled: [:], told: 0, registrations: 0, lostUntil: until, claims: nil)
      }
    }
  }

  /// Whether there are mounts (for tests).
  var hasMounts: Bool { state.withLock { !$0.mounts.isEmpty } }

  /// Whether a mount is lost (for tests).
  var hasLost: Bool { state.withLock { $0.mounts.values.contains { $0.lostUntil != nil } } }

  /// Has the body called, by any thread, when `expire` must be called earlier than it has said.
  public func onEarlierExpiry(_ body: @escaping @Sendable () -> Void) {
    earlier.withLock { $0 = body }
  }

  /// Adds a mount that changes wait for. It has settled everything up to the version; but a lost
  /// one that comes back has settled nothing yet, because its kernel may show what is older.
  /// - Parameter claims: the names that it has claimed.
  public func add(_ author: Author, at version: UInt64, claims: [Key] = []) {
    alter { state in
      let before = state.mounts[author]
      let settled = before?.lostUntil == nil ? version : 0
      let all = Settlement.allCases.map { ($0, settled) }
      state.mounts[author] = Mount(
        settled: Dictionary(uniqueKeysWithValues: all), told: version,
        registrations: (before?.registrations ?? 0) + 1, claims: Set(claims))
    }
  }

  /// Notes that the mounts of a client, but the author's, are being notified of the change.
  /// - Parameter told: nil means all lost mounts, whose kernels may show what has changed.
  public func expect(_ version: UInt64, of told: [Author]? = nil, except author: Author?) {
    state.withLock { state in
      let lost = told == nil ? state.mounts.filter { $0.value.lostUntil != nil }.map(\.key) : []
      for mount in told ?? lost where mount != author {
        guard let known = state.mounts[mount]?.told else { continue }
        state.mounts[mount]?.told = max(known, version)
      }
    }
  }

  /// Removes a mount, and those that it goes on for: no change waits for them any longer.
  public func remove(_ author: Author) {
    alter { state in
      state.mounts[author] = nil
      state.removePredecessors(of: author)
    }
  }

  /// Notes that another mount goes on for a mount, in the same kernel. Its changes do not wait for
  /// that, whose kernel may keep pages locked until their replies are sent. Those of others do, until
  /// the successor settles entries for the first time: then its kernel has dropped what was cached.
  public func succeed(_ author: Author, by successor: Author) {
    alter { state in
      for mount in state.mounts.keys
      where mount == author || state.mounts[mount]?.successor == author {
        state.mounts[mount]?.successor = successor
      }
    }
  }

  /// Notes that a connection of a mount has ended. If it was the last one, the mount is lost:
  /// changes wait for it until a successor of its driver removes it, a second at most.
  public func lose(_ author: Author) {
    let until = Instant.now.advanced(milliseconds: Self.patience)
    var isEarlier = false
    alter { state in
      state.mounts[author]?.registrations -= 1
      guard state.mounts[author]?.registrations == 0 else { return }
      state.mounts[author]?.lostUntil = until
      isEarlier = state.noteExpiry(until)
    }
    if isEarlier { earlier.withLock { $0 }?() }
  }

  /// Notes that a mount has settled the changes up to the version.
  public func settle(_ settlement: Settlement, through version: UInt64, by author: Author) {
    var hasSucceeded = false
    let served: [@Sendable () -> Void] = state.withLock { state in
      if settlement == .entries { hasSucceeded = state.removePredecessors(of: author) }
      if let known = state.mounts[author]?.settled[settlement], known < version {
        state.mounts[author]?.settled[settlement] = version
        state.mounts[author]?.isSilent = false
      } else if !hasSucceeded {
        return []
      }
      return state.removeServed()
    }
    for body in served { body() }
    if hasSucceeded { changed() }
  }

  /// Whether `whenSettled` would call its body at once. Cost: a lock, and a look at each mount.
  public func isSettled(
    _ settlement: Settlement, through version: UInt64, except author: Author
  ) -> Bool {
    state.withLock { state in
      let waiter = Waiter(
        settlement: settlement, version: version, author: author, deadline: .now, body: {})
      return !state.mounts.keys.contains { state.isLate($0, for: waiter) }
    }
  }

  /// Calls the body when every mount but the author's has settled the changes up to the version, or
  /// is silent: at once, by this thread, where that is so already.
  public func whenSettled(
    _ settlement: Settlement, through version: UInt64, except author: Author,
    _ body: @escaping @Sendable () -> Void
  ) {
    wait(settlement, through: version, except: author, body)
  }

  private func wait(
    _ settlement: Settlement?, through version: UInt64, except author: Author,
    _ body: @escaping @Sendable () -> Void
  ) {
    let deadline = Instant.now.advanced(milliseconds: Self.patience)
    let (mustWait, isEarlier) = state.withLock { state in
      let waiter = Waiter(
        settlement: settlement, version: version, author: author, deadline: deadline, body: body)
      guard state.mounts.keys.contains(where: { state.isLate($0, for: waiter) }) else {
        return (false, false)
      }
      state.waiters.append(waiter)
      return (true, state.noteExpiry(deadline))
    }
    if isEarlier { earlier.withLock { $0 }?() }
    if !mustWait { body() }
  }

  /// Gives the mount a name, unless another one has it (`NameClaims`). The body is called with
  /// whether the mount has it now: at once, by this thread, unless a mount of the owner before is
  /// not back yet, which may have it. Cost: a lock, and a look at each mount.
  public func claim(
    _ name: Key, by author: Author, _ body: @escaping @Sendable (Bool) -> Void
  ) {
    wait(nil, through: 0, except: author) { [self] in
      let isFree = state.withLock { state in
        let isFree = !state.isClaimed(name, otherThanBy: author)
        if isFree { state.mounts[author]?.claims?.insert(name) }
        return isFree
      }
      body(isFree)
    }
  }

  /// Takes a name away from the mount, and from those that it goes on for.
  public func release(_ name: Key, by author: Author) {
    state.withLock { state in
      for mount in state.mounts.keys
      where mount == author || state.mounts[mount]?.successor == author {
        state.mounts[mount]?.claims?.remove(name)
      }
    }
  }

  /// Marks the mounts that were waited for too long as silent, forgets lost ones, and calls the
  /// bodies that waited for them alone. Call it when it has said, and when `onEarlierExpiry` says
  /// so, from one thread, which waits for no list. Cost: a lock, if it is not due.
  /// - Returns: when it must be called again; nil if not before `onEarlierExpiry` says so.
  public func expire(_ now: Instant) -> Instant? {
    let due = state.withLock { $0.next }
    guard let moment = due, moment <= now else { return due }
    var silent = 0
    alter { silent = $0.expire(now) }
    if silent > 0 { log("\(silent) mount(s) did not answer for 1 s and are no longer waited for") }
    // Also for a body that has begun to wait since.
    return state.withLock { state in
      state.next = state.deadline
      return state.next
    }
  }

  /// Makes a change that may add, remove or lose mounts, calls the bodies that no longer wait, and
  /// has the mounts noted.
  private func alter(_ change: (inout State) -> Void) {
    let served = state.withLock { state in
      change(&state)
      return state.removeServed()
    }
    for body in served { body() }
    changed()
  }

  /// Notes the mounts for the next owner. Cost: a lock, and for other mounts than before a small
  /// file.
  func writeNote() {
    note.withLock { $0.write(state.withLock { Set($0.mounts.keys) }) }
  }
}
