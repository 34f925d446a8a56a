import Glibc
import PreferenceModel
import PropertyList
import Synchronization
import SystemCalls

/// The lists of one store, its journal and what is known about both.
///
/// Promises: a list is read when it is first asked for, once; `commit` is atomic, published to
/// readers and in the journal when it returns; lists are rewritten by `checkpoint` alone, and one
/// that cannot be parsed never is. One process owns a store (flock on `lock` in the state
/// directory); the lock ends with the process, however that ends.
///
/// Threads: any. Locks: `state` guards everything; under it the journal is appended to, and what that
/// needs (a new file) is done. `groupCommit` is held for one look. `checkpoint` is called by one thread at a
/// time; it takes the lock of the list's directory (`ListLock`) first, without waiting for it, and `state`
/// inside of it.
///
/// Half-broken states: a crash before the append, nothing happened; after it, the replay has the
/// change; after the list took its place and before the journal was released, the replay applies
/// the same values again. A list that another program replaced since we read it is read again and
/// our unsaved keys are put on top of it. A state directory that was removed is made anew (`revive`).
public final class Store: Sendable {
  /// One location as it is in memory.
  struct Domain: Sendable {
    var snapshot = DomainSnapshot()
    var format = Format.binary
    /// The list that `snapshot.base` was read from or written to; nil where there was none.
    var identity: FileIdentity?
    /// The last journal record about this location, and since when one is not in the list.
    var lastEdit: UInt64 = 0
    var unsavedSince: Instant?
    var firstUnsaved: UInt64 = 0
    /// A record holds edits of this location and of others: it must be durable before one of the
    /// lists is, or a loss of power could keep half of a rename.
    var sharesRecord = false
    /// About how many bytes the list has, with the changes that are not in it.
    var size = 0
    /// What keys were before our changes of the last seconds.
    var recent = RecentChanges()
    /// Why the last rewrite, or the last look at the list, failed.
    var failure: EngineError?
  }

  /// A replayed record of a location that is not loaded yet.
  struct Pending: Sendable {
    var sequence: UInt64
    var time: Timestamp
    var edit: Edit
  }

  struct State {
    var domains: [Location: Domain] = [:]
    /// Replayed edits of locations that are not loaded yet.
    var pending: [Location: [Pending]] = [:]
    /// Lists that could not be read, and their state then.
    var unreadable: [Location: (identity: [FileIdentity?], error: EngineError)] = [:]
    /// Counts lists that changed before they were asked for, so that one that is being read for
    /// the first time is read again.
    var appearances = 0
    /// Directories in which what crashes left was looked for.
    var tidied: Set<String> = []
    var journal: Journal?
    /// When the journal may be released of requests that were not answered; nil: nothing waits for that.
    var releaseAt: Instant?
    var lastTime = Timestamp(nanoseconds: 0)
    /// When `forgetOld` has something to do.
    var forgetAt: Instant?
    /// Changes that observers have not been told of.
    var publications: [Publication] = []
    /// The number of the last change. It begins with the time of day, so that a later owner's are
    /// larger.
    var version = UInt64(max(1, Timestamp.now.nanoseconds))
    /// What clients asked for last.
    var requests = Requests()
  }

  /// Where its lists lie.
  public let layout: StoreLayout
  let state: Mutex<State>
  let groupCommit = Monitor(GroupCommit())
  let log: @Sendable (String) -> Void
  /// The lock by which this process owns the store; another one once the state directory was made anew; nil
  /// where the store is only read, or another process has the lock in the new directory.
  let lock: Mutex<SharedDescriptor?>
  /// Called when the state directory was made anew.
  let revived = Mutex<(@Sendable () -> Void)?>(nil)

  /// Whether nothing may be changed: no lock, no journal of its own, no state is written.
  public let isReadOnly: Bool

  /// Opens a store: takes the lock and replays the journal. No list is read.
  ///
  /// Throws `.owned` when another process has it, `.system` when the state directory cannot be
  /// used. With `readOnly` there is no lock, and what a crash left in the journal is shown too.
  public init(
    _ layout: StoreLayout, readOnly: Bool = false, log: @escaping @Sendable (String) -> Void
  ) throws(EngineError) {
    self.layout = layout
    self.log = log
    isReadOnly = readOnly
    do throws(SystemError) {
      let owned = readOnly ? nil : SharedDescriptor(try Self.takeLock(layout))
      lock = Mutex(owned)
      var initial = State()
      let entries = try Journal.entries(
        in: layout.stateDirectory, keepsDamaged: !readOnly, report: log)
      Self.replay(entries, into: &initial)
      if !readOnly {
        initial.journal = try Journal(directory: layout.stateDirectory, after: entries)
      }
      state = Mutex(initial)
    } catch {
      if error.errno == .wouldBlock { throw EngineError(.owned, error.path) }
      throw EngineError(error)
    }
    if !isReadOnly { releaseReplayed() }
  }

  /// After a start that found nothing to do, the files of earlier owners go.
  private func releaseReplayed() {
    remove(
      state.withLock { state in
        do { return try state.releaseJournal() } catch { return [] }
      })
  }

  /// When `releaseIfDue` has something to do; nil: not before the next change.
  public var releaseDeadline: Instant? { state.withLock { $0.releaseAt } }

  /// Removes the journal files that were kept for clients that might ask again, once the time in which they
  /// do is over. Cost: nothing before `releaseDeadline`.
  public func releaseIfDue(_ now: Instant = .now) {
    guard let due = releaseDeadline, due <= now else { return }
    releaseReplayed()
  }

  static func takeLock(_ layout: StoreLayout) throws(SystemError) -> Descriptor {
    try Files.makeDirectories(layout.stateDirectory, mode: 0o700)
    let path = layout.stateDirectory + "/lock"
    let lock = try Descriptor(opening: path, O_RDWR | O_CREAT)
    guard try lock.lockExclusively(waiting: false) else {
      let owner = String(decoding: try lock.readToEnd(limit: 64), as: UTF8.self)
      throw SystemError(
        "lock",
        "the store \(layout.userDirectory) is owned by process \(owner), which does not answer; "
          + "is it stopped? (kill -CONT \(owner))",
        .wouldBlock)
    }
    do throws(SystemError) {
      try lock.truncate(to: 0)
      try lock.write(Array("\(getpid())".utf8))
    } catch  where error.errno == .noSpace {
      // Only people read it. A store whose disk is full can be read all the same.
    }
    return lock
  }

  /// Lets another process have the store; nothing may be asked of this one any more.
  public func unlock() { lock.withLock { $0?.value.unlock() } }

  static func replay(_ entries: [Journal.Entry], into state: inout State) {
    for entry in entries {
      var record = entry.record
      if case .from(let origin, let inner) = record {
        record = inner
        state.requests.replay(origin, inner, entry.sequence, version: state.version)
      }
      switch record {
      case .change(let changeset):
        state.lastTime = max(state.lastTime, changeset.time)
        for item in changeset.items {
          state.pending[item.location, default: []].append(
            Pending(sequence: entry.sequence, time: changeset.time, edit: item.edit))
        }
      case .checkpoint(let location, let through, _):
        state.pending[location]?.removeAll { $0.sequence <= through }
        if state.pending[location]?.isEmpty == true { state.pending[location] = nil }
      case .from: break
      }
    }
  }
}
