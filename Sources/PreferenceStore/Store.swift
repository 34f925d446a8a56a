import Glibc
import PreferenceModel
import PropertyList
import Synchronization
import SystemCalls

/// The property lists of one store, the journal of changes that the lists do not have yet, and what
/// this process knows about both. `PreferenceStore.docc/StoreContract.md` has the whole contract.
///
/// Promises: a list is read when it is first asked for, and again only where another program may
/// have changed it. `commit` is atomic; when it returns, the change is in the journal and readers
/// see it. Only `checkpoint` rewrites lists, and it never rewrites one that cannot be parsed. One
/// process owns a store: it holds flock(2) on the file `lock` in the state directory. The lock ends
/// with the process, however that ends.
///
/// Threads: any thread may call; `checkpoint`, `makeReleaseDurable`, `refresh`, `refreshAdditions`,
/// and `revive` belong to the writer's thread.
///
/// Locks: `state` guards what is known of lists and journal. No list is read or written under it,
/// but the journal's file is: an append, which may have to make a new file and fsync(2) its
/// directory; ftruncate(2) when its records are released; the copy of a file whose fdatasync(2)
/// failed; the new journal of `revive`. `groupCommit`, `lock`, `revived` and `placeAdded` are each
/// held for a moment, with no other lock of the store. `checkpoint` takes the lock of the list's
/// directory (`ListLock`) first, without waiting for it, and `state` inside of it.
/// `readingAdditions` is held while profiles and fragments are read for the first time, which may
/// wait for a disk.
///
/// Half-broken states:
/// - A crash before the append: nothing has happened.
/// - A crash after the append: the next owner replays the change.
/// - A crash between the rename of the new list and the release of the journal: the replay applies
///   the same values again.
/// - A list that another program replaced since it was read: it is read again, and the unsaved keys
///   are put on top of it.
/// - A state directory that was removed: it is made anew (`revive`).
public final class Store: Sendable {
  /// One location as it is in memory.
  struct Domain: Sendable {
    var snapshot = DomainSnapshot()
    var format = Format.binary
    /// The state of the list that `snapshot.base` was read from or written to; nil: no list.
    var identity: FileIdentity?
    /// The number of the last journal record about this location.
    var lastEdit: UInt64 = 0
    /// Since when the list has lacked a change; nil: it has all of them.
    var unsavedSince: Instant?
    /// The number of the first journal record that the list may lack, where `unsavedSince` is set.
    var firstUnsaved: UInt64 = 0
    /// About how many bytes the list has once the unsaved changes are in it.
    var size = 0
    /// The values of keys before this store's changes of the last seconds.
    var recent = RecentChanges()
    /// When the list, which had keys, was found without a byte: another program may be about to
    /// write it anew. nil: it has contents since, or never had.
    var emptied: Instant?
    /// Why the last rewrite, or the last look at the list, failed; nil: it did not.
    var failure: EngineError?
  }

  /// A replayed edit of a location that is not loaded yet.
  struct Pending: Sendable {
    var sequence: UInt64
    var time: Timestamp
    var edit: Edit
  }

  /// What is added to the lists of a place.
  struct Additions: Sendable {
    /// The state of the files that it was read from (`ProfileReading.state`).
    var state: [String]
    /// The additions.
    var settings: PlaceAdditions
  }

  /// What a check found, whether a list can be replaced.
  struct Check: Sendable {
    var until: Instant
    var failure: EngineError?
  }

  struct State {
    var domains = DomainTable()
    /// Replayed edits, in order, of locations that are not loaded yet.
    var pending: [Location: [Pending]] = [:]
    /// Locations whose lists could not be parsed, the state of each list then, and the error. A
    /// list is not parsed again while it is in that state.
    var unreadable: [Location: (identity: FileIdentity?, error: EngineError)] = [:]
    /// Counts changes that other programs made in lists that are not loaded. A thread that is
    /// reading a list for the first time reads it again when the count has changed.
    var appearances = 0
    /// Directories that were searched for the temporary files of crashed rewrites.
    var tidied: Set<String> = []
    var journal: Journal?
    /// What profiles, fragments and vendors' lists set, by place. A place that nobody has asked for
    /// is missing.
    var additions: [Place: Additions] = [:] {
      didSet {
        hasAdditions = additions.values.contains {
          !$0.settings.values.isEmpty || !$0.settings.unreadable.isEmpty
        }
      }
    }
    /// Whether there is anything in `additions`.
    private(set) var hasAdditions = false
    /// Bytes of the journal after the last `renewStuckRecords`.
    var renewedSize = 0
    /// When records that are kept for unanswered requests may go; nil: none is kept for one.
    var releaseAt: Instant?
    /// Whether records of rewritten lists were released since that was last made durable, and
    /// whether files of the journal were removed.
    var hasReleased = false
    var hasRemoved = false
    /// The time of the last change; the next one's is later.
    var lastTime = Timestamp(nanoseconds: 0)
    /// When `forgetOld` has something to do; nil: not before the next change.
    var forgetAt: Instant?
    /// Changes that the history does not have yet.
    var history = HistoryQueue()
    /// Changes that observers have not been notified of, in order.
    var publications: [Publication] = []
    /// The number of the last change, which is read without the lock too.
    let changeNumber = ChangeNumber()
    var version: UInt64 { changeNumber.value }
    /// The last requests of clients, which may repeat them.
    var requests = Requests()
    /// The lists of which it was checked a moment ago that they can be replaced: when, and why not.
    var checks: [Location: Check] = [:]
  }

  /// The number of the last change. Counting begins at the time of day in nanoseconds, so that a
  /// later owner's numbers are larger.
  ///
  /// Threads: any; only a change of `State` advances it. Whoever knows that a change has returned
  /// reads its number or a later one.
  final class ChangeNumber: Sendable {
    private let last = Atomic(UInt64(max(1, Timestamp.now.nanoseconds)))

    var value: UInt64 { last.load(ordering: .acquiring) }

    func advance() -> UInt64 { last.add(1, ordering: .acquiringAndReleasing).newValue }
  }

  /// Where lists, journal and lock lie.
  public let layout: StoreLayout
  /// Reads configuration profiles; nil: there are none.
  let profiles: (any ProfileReading)?
  let fragments: FragmentReader
  /// Held while the additions of a place are read for the first time.
  let readingAdditions = Mutex(())
  /// Called when the profiles of another user were read for the first time.
  let placeAdded = Mutex<(@Sendable () -> Void)?>(nil)
  let state: Mutex<State>
  /// The number of the last change, the state's own.
  let changeNumber: ChangeNumber
  let groupCommit = Monitor(GroupCommit())
  /// Writes the history. It is held while the file is written; `state` is taken inside of it.
  let historian: Mutex<Historian>
  /// The lists as they were last read or written; nil: there is no history.
  let seen: SeenLists?
  let log: @Sendable (LogLine) -> Void
  /// The lock by which this process owns the store. It is replaced when the state directory is made
  /// anew. nil where the store is only read, or another process took the lock in the new directory.
  let lock: Mutex<SharedDescriptor?>
  /// Called when the state directory was made anew.
  let revived = Mutex<(@Sendable () -> Void)?>(nil)

  /// Whether every change is refused. Such a store takes no lock and writes neither journal nor
  /// state.
  public let isReadOnly: Bool

  /// Opens a store: takes the lock and replays the journal. No list and no profile is read.
  ///
  /// Throws `.owned` when another process holds the lock, `.system` when the state directory cannot
  /// be used. With `readOnly` no lock is taken; changes that only the journal has are shown too.
  /// - Parameters:
  ///   - profiles: reads the configuration profiles of managed places; nil: there are none.
  ///   - keepsHistory: whether changes are kept in the history, if the store is not only read.
  public init(
    _ layout: StoreLayout, profiles: (any ProfileReading)? = nil, readOnly: Bool = false,
    keepsHistory: Bool = false, log: @escaping @Sendable (LogLine) -> Void
  ) throws(EngineError) {
    self.layout = layout
    self.profiles = profiles
    fragments = FragmentReader(layout)
    self.log = log
    isReadOnly = readOnly
    do throws(SystemError) {
      let owned = readOnly ? nil : SharedDescriptor(try Self.acquireLock(layout))
      lock = Mutex(owned)
      var initial = State()
      let replay = try Journal.read(layout.stateDirectory, keepsDamaged: !readOnly, report: log)
      Self.replay(replay.entries, into: &initial)
      let historian = Historian(keepsHistory && !readOnly ? layout.history : nil, log)
      initial.history.hasHistory = historian.hasHistory
      initial.history.known = historian.lastTime
      seen = historian.seen
      self.historian = Mutex(historian)
      if !readOnly {
        initial.journal = try Journal(directory: layout.stateDirectory, after: replay)
      }
      changeNumber = initial.changeNumber
      state = Mutex(initial)
    } catch {
      if error.errno == .wouldBlock { throw EngineError(.owned, error.path) }
      throw EngineError(error)
    }
    if !isReadOnly { releaseReplayed() }
  }

  /// Removes the journal files that nobody needs any more: after a start that found nothing to
  /// replay, those are the files of earlier owners.
  func releaseReplayed() {
    remove(
      state.withLock { state in
        do { return try state.releaseJournal() } catch { return [] }
      })
  }

  /// When `releaseIfDue` has something to do; nil: not before the next change.
  public var releaseDeadline: Instant? { state.withLock { $0.releaseAt } }

  /// Removes the journal files that were kept for clients that might repeat a request, once the
  /// time in which they do that is over. Cost: nothing before `releaseDeadline`.
  public func releaseIfDue(_ now: Instant = .now) {
    guard let due = releaseDeadline, due <= now else { return }
    releaseReplayed()
  }

  /// Takes the lock, and makes the state directory where it is missing. Throws EAGAIN, with the
  /// number of the process in the sentence, where another process holds it.
  static func acquireLock(_ layout: StoreLayout) throws(SystemError) -> Descriptor {
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
      try layout.noteOwner()
      try lock.truncate(to: 0)
      try lock.write(Array("\(getpid())".utf8))
    } catch  where error.errno == .noSpace {
      // A store whose disk is full can still be read.
    }
    return lock
  }

  /// Whether a process owns the store.
  public static func isOwned(_ layout: StoreLayout) -> Bool {
    guard let lock = try? Descriptor(opening: layout.stateDirectory + "/lock", O_RDONLY),
      let isFree = try? lock.lockExclusively(waiting: false)
    else { return false }
    return !isFree
  }

  /// Releases the lock, so that another process can own the store. Nothing may be asked of this
  /// object afterwards.
  public func unlock() { lock.withLock { $0?.value.unlock() } }

  /// Collects what the journal's records say: edits by location, until its list is loaded, without
  /// those that a checkpoint says are in the list, and the requests of clients.
  static func replay(_ entries: [Journal.Entry], into state: inout State) {
    let lastOver = lastOver(entries)
    for entry in entries {
      var record = entry.record
      if case .from(let origin, let inner) = record {
        record = inner
        if entry.sequence > (origin.isInheritable ? lastOver.mounts : lastOver.clients) {
          state.requests.replay(origin, inner, entry.sequence, version: state.version)
        } else {
          state.requests.noteProgress(origin)
        }
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

  /// The numbers of the last records whose requests nobody will repeat, because their patience was
  /// over when the last record was written. The last 1,024 requests may be repeated whatever their
  /// times are, because the clock may have been set.
  private static func lastOver(_ entries: [Journal.Entry]) -> (mounts: UInt64, clients: UInt64) {
    var newest: Timestamp?
    var count = 0
    var mounts: UInt64 = 0
    for entry in entries.reversed() {
      guard case .from(_, .change(let changeset)) = entry.record else { continue }
      let last = newest ?? changeset.time
      newest = last
      count += 1
      let age = last.nanoseconds(after: changeset.time) / 1_000_000
      guard count > 1024 else { continue }
      if mounts == 0, age > Requests.inheritancePatience { mounts = entry.sequence }
      if age > Requests.patience { return (mounts, entry.sequence) }
    }
    return (mounts, 0)
  }
}
