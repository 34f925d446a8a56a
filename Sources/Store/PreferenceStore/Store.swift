import PreferenceModel
import PropertyList
import StoreAccess
import Synchronization
import SystemCalls

/// The property lists of one store, and the journal of changes that the lists do not have yet.
/// `PreferenceStore.docc/StoreContract.md` has the whole contract.
///
/// Parts, each of which uses only those above it:
///
/// - `Lists`: what readers see;
/// - `JournalKeeper`: makes the journal durable, and keeps it short;
/// - `HistoryRecorder`: writes changes to the history;
/// - `ListRewriter`: rewrites lists (`checkpoint`).
///
/// The store itself opens them, makes changes (`commit`), and begins anew where the state directory
/// was removed (`revive`).
///
/// Promises: `commit` is atomic; when it returns, the change is in the journal and readers see it.
/// Only `checkpoint` rewrites lists. One process owns a store (`StoreLock`).
///
/// Threads: any thread may call; `checkpoint` and `revive` belong to the writer's thread.
///
/// Locks: the journal's file is written under `Lists.state`: an append, which may have to make a
/// new file and fsync(2) its directory; ftruncate(2) when its records are released; the copy of a
/// file whose fdatasync(2) failed; the new journal of `revive`. `revived` is held for a moment, with
/// no other lock of the store.
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
  /// The lists as readers see them.
  public let lists: Lists
  /// The journal of changes that the lists do not have yet.
  public let journal: JournalKeeper
  /// The history of changes.
  public let history: HistoryRecorder
  private let rewriter: ListRewriter
  /// nil where the store is only read.
  private let lock: StoreLock?
  /// Called when the state directory was made anew.
  private let revived = Mutex<(@Sendable () -> Void)?>(nil)

  /// Where lists, journal and lock lie.
  public var layout: StoreLayout { lists.layout }

  /// Whether every change is refused. Such a store takes no lock and writes neither journal nor
  /// state.
  public var isReadOnly: Bool { lists.isReadOnly }

  /// Opens a store: takes the lock and replays the journal. No list and no profile is read.
  ///
  /// Throws `.owned` when another process holds the lock, `.system` when the state directory cannot
  /// be used. With `readOnly` no lock is taken; changes that only the journal has are shown too.
  /// - Parameters:
  ///   - profiles: reads the configuration profiles of managed places; nil if there are none.
  ///   - keepsHistory: whether changes are kept in the history, if the store is not only read.
  ///   - awaitsHome: whether the user's directory of lists is missing because a file system is not
  ///     mounted yet: the user's lists cannot be read until it is there.
  public init(
    _ layout: StoreLayout, profiles: (any ProfileReading)? = nil, readOnly: Bool = false,
    keepsHistory: Bool = false, awaitsHome: Bool = false,
    log: @escaping @Sendable (LogLine) -> Void
  ) throws(EngineError) {
    do throws(SystemError) {
      lock = readOnly ? nil : try StoreLock(layout)
      let replay = try Self.replay(layout, readOnly, log)
      var state = StoreState()
      state.replay(replay.entries)
      if keepsHistory, !readOnly { FormerMachines(layout, log: log).adoptHistory() }
      let historian = Historian(keepsHistory && !readOnly ? layout.history : nil, log)
      state.history.hasHistory = historian.hasHistory
      state.history.known = historian.lastTime
      if !readOnly {
        state.journal = try Journal(directory: layout.stateDirectory, after: replay)
      }
      lists = Lists(
        layout, state, profiles: profiles, seen: historian.seen, isReadOnly: readOnly,
        awaitsHome: awaitsHome, log: log)
      journal = JournalKeeper(lists)
      history = HistoryRecorder(lists, historian)
      rewriter = ListRewriter(lists, journal, history)
    } catch {
      if error.errno == .wouldBlock { throw EngineError(.owned, error.path) }
      throw EngineError(error)
    }
    if !readOnly { journal.releaseReplayed() }
  }

  /// What the journal has. One that this user may not read, as in another's home, holds up no reader.
  private static func replay(
    _ layout: StoreLayout, _ readOnly: Bool, _ log: (LogLine) -> Void
  ) throws(SystemError) -> Journal.Replay {
    do throws(SystemError) {
      return try Journal.read(layout.stateDirectory, keepsDamaged: !readOnly, report: log)
    } catch  where readOnly && error.errno == .permissionDenied {
      log("the journal cannot be read; changes in it are not shown: \(error)")
      return Journal.Replay()
    }
  }

  /// Notes that the state directory is in use, as far as it can be written.
  public func noteUse() {
    if !isReadOnly { try? layout.noteUse() }
  }

  /// Whether a process owns the store.
  public static func isOwned(_ layout: StoreLayout) -> Bool {
    StoreLock.isOwned(layout.stateDirectory)
  }

  /// What it costs if the owner of a store ends, and another one goes on later.
  public enum EndCost: Sendable {
    /// The next one has everything within 10 ms.
    case little
    /// Something is unsaved.
    case changes
    /// Values from before the last changes are remembered, by which stale copies of lists that other
    /// programs write are told from edits.
    case memory
    /// The lists take longer to read again.
    case reading
  }

  /// What it costs if the owner ends now. Cost: a lock.
  public var endCost: EndCost {
    let (isUnsaved, remembers) = lists.state.withLock { state in
      (
        !state.pending.isEmpty || !state.domains.unsaved.isEmpty,
        state.domains.remembersChanges
      )
    }
    if isUnsaved { return .changes }
    if lists.readingTime > Self.littleReading { return .reading }
    return remembers ? .memory : .little
  }

  /// Nanoseconds of reading that are little.
  private static let littleReading: Int64 = 10_000_000

  /// Removes what other machines have left that have not used the home for long: see
  /// `FormerMachines`. Waits for a disk.
  public func removeFormerMachines() {
    if !isReadOnly { FormerMachines(layout, log: lists.log).removeOld() }
  }

  /// Releases the lock, so that another process can own the store. Nothing may be asked of this
  /// object afterwards.
  public func unlock() { lock?.unlock() }

  /// Rewrites the location's list with every change so far: see `ListRewriter.checkpoint`.
  public func checkpoint(_ location: Location) throws(EngineError) {
    try rewriter.checkpoint(location)
  }

  /// Makes anew what was removed of the state directory: the lock file, and the journal file in
  /// use, with every change that is not in its list. Does nothing otherwise. The writer's thread
  /// calls it.
  ///
  /// Until it returns, the journal is written to a file without a name: changes that were
  /// acknowledged after the removal are lost if every process is killed before. If it throws (a
  /// full disk, a directory that cannot be made, a home that was unmounted), that goes on, and the
  /// caller tries again. If another process has taken the lock in the new directory meanwhile, both
  /// are owners, and the log says so once; the lists that both write are merged, as with any other
  /// program that edits them.
  public func revive() throws(SystemError) {
    guard let lock else { return }
    let isJournalGone = !lists.state.withLock { $0.journal?.isInPlace ?? true }
    let isLockGone = !lock.isInPlace
    guard isJournalGone || isLockGone else { return }
    try lists.requireHome()
    if isLockGone, let other = try lock.reacquire() {
      lists.log("a second process may be writing this store: \(other)")
    }
    if isJournalGone {
      try lists.state.withLock { state throws(SystemError) in try state.restartJournal(layout) }
      journal.releaseDurably()
    }
    lists.log(
      "\(layout.stateDirectory): it was removed, and made anew with everything that is unsaved")
    revived.withLock { $0 }?()
  }

  /// Sets the body that `revive` calls when it has made the state directory anew.
  public func onRevival(_ body: @escaping @Sendable () -> Void) { revived.withLock { $0 = body } }

  /// What `status.json` says of the store: its directories, how many lists are in memory, which of
  /// them lack changes or cannot be read, the size of the journal, and the profiles without what
  /// they set. Cost: O(lists in memory); waits for a disk where profiles have not been read.
  public var status: ValueDictionary {
    var failed: [Location: EngineError] = [:]
    let (unsaved, count, unreadable, journal) = lists.state.withLock { state in
      state.domains.forEach { location, list in failed[location] = list.failure }
      return (
        state.domains.unsaved.keys, state.domains.locations.count, state.unreadable,
        state.journal?.byteCount ?? 0
      )
    }
    let added = lists.state.withLock { state in
      state.additions.all.flatMap { place, additions in
        additions.settings.unreadable.map { (Location(place, $0.key), $0.value) }
      }
    }
    let failures = failed.merging(unreadable.mapValues(\.error)) { $1 }.merging(added) { $1 }
    let profiles = lists.profileReports.map { report in
      Value.dictionary(
        ValueDictionary(report.filter { !["forced", "joined", "once"].contains($0.key) }))
    }
    return [
      "profiles": .array(profiles),
      "store": .string(layout.userDirectory),
      "state directory": .string(layout.stateDirectory),
      "machine directory": .string(layout.systemDirectory),
      "lists in memory": .integer(WideInteger(UInt64(count))),
      "unsaved": .array(unsaved.map { "\($0)" }.sorted().map { .string($0) }),
      "journal bytes": .integer(WideInteger(UInt64(journal))),
      "history": .dictionary(history.status),
      "last change": .integer(WideInteger(history.lastNumber)),
      "failures": .dictionary(
        ValueDictionary(
          failures.map { location, error in
            (Key("\(location)"), Value.string("\(layout.path(location)): \(error)"))
          })),
    ]
  }
}

extension StoreState {
  /// Begins a journal in the new directory, with what the lost file may have held: the requests
  /// that a client may repeat, replayed changes of lists that nobody has read yet, and the unsaved
  /// changes of every loaded list. If it fails, the lost journal stays in use, for another try.
  fileprivate mutating func restartJournal(_ layout: StoreLayout) throws(SystemError) {
    guard let lost = journal else { return }
    try Files.makeDirectories(layout.stateDirectory, mode: 0o700)
    let fresh = try Journal(directory: layout.stateDirectory, after: lost)
    do throws(SystemError) {
      try restart(fresh)
    } catch {
      fresh.discard(since: lost)
      throw error
    }
  }

  private mutating func restart(_ fresh: Journal) throws(SystemError) {
    var renewed = self
    var requested: Set<Location> = []
    for (origin, changeset) in requests.unanswered(.now) {
      let sequence = try fresh.append(.change(changeset, from: origin))
      renewed.requests.renumber(origin, sequence)
      requested.formUnion(changeset.locations)
    }
    // The lists, with the changes that are recorded below, have what the requests did and what came
    // later.
    let through = fresh.lastSequence
    for location in requested {
      let identity = domains[location]?.identity
      _ = try fresh.append(.checkpoint(location, through: through, identity))
    }
    for (location, edits) in pending {
      renewed.renumberPending(location, try fresh.append(pending: edits, location))
    }
    for location in domains.unsaved.keys {
      guard let domain = domains[location] else { continue }
      let first = try fresh.append(unsavedOf: domain.snapshot, location)
      renewed.domains[location]?.firstUnsaved = first
      renewed.domains[location]?.lastEdit = fresh.lastSequence
    }
    renewed.journal = fresh
    self = renewed
  }
}
