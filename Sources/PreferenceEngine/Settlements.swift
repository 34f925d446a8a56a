import PreferenceModel
import Synchronization
import SystemCalls

/// Tracks up to which change each mount has settled (its kernel has dropped what changes made
/// stale), and calls the bodies that wait for that.
///
/// A mount that a body has waited for in vain for a second is silent: nothing waits for it until it
/// reports a later settlement.
///
/// A mount whose last connection ends is lost: its driver has crashed, and until there is another
/// one its kernel goes on showing what it has cached. Bodies wait until a successor removes the
/// lost mount, a second from its loss at most. The mounts of an owner that has ended count as lost
/// for the next one, until they come back or their successors remove them.
///
/// Threads: any; `expire` is the server's, which waits for no list, and `writeNote` the writer's.
/// Locks: `state`, held for a look, and `note`, under which the mounts are written to a file;
/// `state` is taken under it. Bodies are called without a lock.
final class Settlements: Sendable {
  private struct Mount {
    var settled: [Settlement: UInt64]
    /// The number of the last change that it was notified of. It is not notified of its own
    /// changes.
    var told: UInt64
    var isSilent = false
    /// How many connections it has: an old one may end after the new one has begun.
    var registrations = 1
    /// Until when a lost mount is waited for; nil: it is not lost.
    var lostUntil: Instant?
  }

  /// A body that waits until every mount but the author's has settled the changes up to the
  /// version.
  private struct Waiter {
    var settlement: Settlement
    var version: UInt64
    var author: Author
    var deadline: Instant
    var body: @Sendable () -> Void
  }

  private struct State {
    var mounts: [Author: Mount] = [:]
    var waiters: [Waiter] = []

    /// Whether the waiter must wait for the mount: it was notified of changes that it has not
    /// settled.
    func isLate(_ author: Author, for waiter: Waiter) -> Bool {
      guard let mount = mounts[author], !mount.isSilent, author != waiter.author else {
        return false
      }
      return mount.settled[waiter.settlement, default: 0] < min(waiter.version, mount.told)
    }

    /// Whether the mount is lost, and was waited for long enough.
    func isForgotten(_ author: Author, _ now: Instant) -> Bool {
      mounts[author]?.lostUntil.map { $0 <= now } ?? false
    }

    /// When the first waiter has waited long enough, or a lost mount is forgotten; nil: neither.
    var deadline: Instant? {
      (waiters.map(\.deadline) + mounts.values.compactMap(\.lostUntil)).min()
    }

    /// Marks the mounts that were waited for too long as silent, and forgets lost ones.
    /// - Returns: how many mounts are silent now that were not, and whether one was forgotten.
    mutating func expire(_ now: Instant) -> (silent: Int, hasForgotten: Bool) {
      let silent = mounts.keys.filter { author in
        let isForgotten = isForgotten(author, now)
        return waiters.contains {
          (isForgotten || $0.deadline <= now) && isLate(author, for: $0)
        }
      }
      for author in silent { mounts[author]?.isSilent = true }
      let count = mounts.count
      for author in mounts.keys where isForgotten(author, now) { mounts[author] = nil }
      return (silent.count, mounts.count < count)
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
  /// When `expire` has something to do, in nanoseconds (`Instant`), or earlier.
  private let nextExpiry = Atomic<Int64>(0)
  /// Called when that is earlier than it was.
  private let earlier = Mutex<(@Sendable () -> Void)?>(nil)
  private let log: @Sendable (LogLine) -> Void

  /// Milliseconds that a body waits for a mount.
  private static let patience: Int64 = 1000

  /// - Parameter note: the file that the mounts are noted in, for the next owner; nil: none.
  init(note path: String? = nil, log: @escaping @Sendable (LogLine) -> Void) {
    self.log = log
    var note = MountNote(path)
    let known = note.read()
    self.note = Mutex(note)
    let until = Instant.now.advanced(milliseconds: Self.patience)
    alter { state in
      for author in known {
        state.mounts[author] = Mount(settled: [:], told: 0, registrations: 0, lostUntil: until)
      }
    }
  }

  /// Whether there are mounts (for tests).
  var hasMounts: Bool { state.withLock { !$0.mounts.isEmpty } }

  /// Whether a mount is lost (for tests).
  var hasLost: Bool { state.withLock { $0.mounts.values.contains { $0.lostUntil != nil } } }

  /// Has the body called, by any thread, when `expire` must be called earlier than it has said.
  func onEarlierExpiry(_ body: @escaping @Sendable () -> Void) {
    earlier.withLock { $0 = body }
  }

  /// Notes that `expire` must be called then. Cost: a load, in most cases: a waiter that is served
  /// leaves the moment as it is.
  /// - Returns: whether that is earlier than before.
  @discardableResult private func noteExpiry(_ deadline: Instant) -> Bool {
    var next = nextExpiry.load(ordering: .sequentiallyConsistent)
    while deadline.nanoseconds < next {
      let (isDone, found) = nextExpiry.compareExchange(
        expected: next, desired: deadline.nanoseconds, ordering: .sequentiallyConsistent)
      if isDone { return true }
      next = found
    }
    return false
  }

  /// Adds a mount, which has settled everything up to the version; but a lost one that comes back
  /// has settled nothing yet, because its kernel may show what is older.
  func add(_ author: Author, at version: UInt64) {
    alter { state in
      let before = state.mounts[author]
      let settled = before?.lostUntil == nil ? version : 0
      let all = Settlement.allCases.map { ($0, settled) }
      state.mounts[author] = Mount(
        settled: Dictionary(uniqueKeysWithValues: all), told: version,
        registrations: (before?.registrations ?? 0) + 1)
    }
  }

  /// Notes that all mounts but the author's are being notified of the change.
  func expect(_ version: UInt64, except author: Author?) {
    state.withLock { state in
      for mount in state.mounts.keys where mount != author { state.mounts[mount]?.told = version }
    }
  }

  /// Removes a mount.
  func remove(_ author: Author) { alter { $0.mounts[author] = nil } }

  /// Removes a connection of a mount. With the last one, the mount is lost.
  func lose(_ author: Author) {
    let until = Instant.now.advanced(milliseconds: Self.patience)
    alter { state in
      state.mounts[author]?.registrations -= 1
      guard state.mounts[author]?.registrations == 0 else { return }
      state.mounts[author]?.lostUntil = until
    }
    expire(by: until)
  }

  /// Notes that a mount has settled the changes up to the version.
  func settle(_ settlement: Settlement, through version: UInt64, by author: Author) {
    let served: [@Sendable () -> Void] = state.withLock { state in
      guard let known = state.mounts[author]?.settled[settlement], known < version else {
        return []
      }
      state.mounts[author]?.settled[settlement] = version
      state.mounts[author]?.isSilent = false
      return state.removeServed()
    }
    for body in served { body() }
  }

  /// Whether every mount but the author's has settled the changes up to the version, or is silent.
  func isSettled(_ settlement: Settlement, _ version: UInt64, except author: Author) -> Bool {
    state.withLock { state in
      let waiter = Waiter(
        settlement: settlement, version: version, author: author, deadline: .now, body: {})
      return !state.mounts.keys.contains { state.isLate($0, for: waiter) }
    }
  }

  /// Calls the body when every mount but the author's has settled the changes up to the version, or
  /// is silent: at once, by this thread, where that is so already.
  func wait(
    _ settlement: Settlement, _ version: UInt64, except author: Author,
    _ body: @escaping @Sendable () -> Void
  ) {
    let deadline = Instant.now.advanced(milliseconds: Self.patience)
    let mustWait = state.withLock { state in
      let waiter = Waiter(
        settlement: settlement, version: version, author: author, deadline: deadline, body: body)
      guard state.mounts.keys.contains(where: { state.isLate($0, for: waiter) }) else {
        return false
      }
      state.waiters.append(waiter)
      return true
    }
    if mustWait { expire(by: deadline) } else { body() }
  }

  /// Sees to it that `expire` is called then.
  private func expire(by deadline: Instant) {
    if noteExpiry(deadline) { earlier.withLock { $0 }?() }
  }

  /// Marks the mounts that were waited for too long as silent, forgets lost ones, and calls the
  /// bodies that waited for them alone. Cost: a load, if it is not due.
  /// - Returns: when it must be called again (nil: not before `onEarlierExpiry` says so), and whether
  ///   there are fewer mounts than before.
  func expire(_ now: Instant) -> (next: Instant?, hasForgotten: Bool) {
    guard nextExpiry.load(ordering: .sequentiallyConsistent) <= now.nanoseconds else {
      return (nextDeadline, false)
    }
    nextExpiry.store(.max, ordering: .sequentiallyConsistent)
    var (silent, hasForgotten) = (0, false)
    alter { (silent, hasForgotten) = $0.expire(now) }
    if silent > 0 { log("\(silent) mount(s) did not answer for 1 s and are no longer waited for") }
    // A body that has begun to wait since has noted its deadline itself.
    if let next = state.withLock({ $0.deadline }) { noteExpiry(next) }
    return (nextDeadline, hasForgotten)
  }

  private var nextDeadline: Instant? {
    let next = nextExpiry.load(ordering: .sequentiallyConsistent)
    return next == .max ? nil : Instant(nanoseconds: next)
  }

  /// Makes a change that may add, remove or lose mounts, and calls the bodies that no longer wait.
  private func alter(_ change: (inout State) -> Void) {
    let served = state.withLock { state in
      change(&state)
      return state.removeServed()
    }
    for body in served { body() }
  }

  /// Notes the mounts for the next owner. Cost: a lock, and for other mounts than before a small
  /// file.
  func writeNote() {
    note.withLock { $0.write(state.withLock { Set($0.mounts.keys) }) }
  }
}
