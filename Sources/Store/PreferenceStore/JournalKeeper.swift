import Glibc
import PreferenceModel
import SystemCalls

/// Whether a thread is making the journal durable, and how far it is.
private struct GroupCommit {
  var isRunning = false
  /// The number of the last record that is durable.
  var durable: UInt64 = 0
}

/// Makes the journal durable, and keeps it short.
///
/// Group commit: of the threads that want the journal to be durable, one calls fdatasync(2) for
/// all. Files whose records are in the lists are removed.
///
/// Threads: any thread may call; `makeReleaseDurable`, `startSegment` and `renewStuckRecords`
/// belong to the writer's thread.
///
/// Locks: `groupCommit` is held for a moment, with no other lock of the store.
public final class JournalKeeper: Sendable {
  private let lists: Lists
  private let groupCommit = Monitor(GroupCommit())

  init(_ lists: Lists) { self.lists = lists }

  // MARK: - Durability

  /// Returns when every change that was committed before is on the disk.
  ///
  /// Blocks for at most two rounds of fdatasync(2), one call for each journal file that has grown:
  /// that of another thread which had begun, and the next, which all waiting threads share. No list
  /// is rewritten.
  public func synchronize() throws(EngineError) { try synchronize(always: false) }

  /// Makes durable that the journal no longer has the records of rewritten lists, or says that the
  /// lists have them. Until then, a loss of power brings the records back, and the replay puts them
  /// over what other programs have changed in the lists meanwhile. Does nothing where no list was
  /// rewritten since the last call. If it fails, the next rewrite tries again.
  ///
  /// Blocks for an fdatasync(2) of the journal, and for an fsync(2) of its directory where files of
  /// it were removed. Called by the thread that rewrites lists, once for all that it has rewritten.
  public func makeReleaseDurable() {
    let (hasReleased, hasRemoved) = lists.state.withLock { state in
      let upkeep = state.upkeep
      if upkeep.hasReleased {
        (state.upkeep.hasReleased, state.upkeep.hasRemoved) = (false, false)
      }
      return (upkeep.hasReleased, upkeep.hasRemoved)
    }
    guard hasReleased else { return }
    do {
      // First, because no older file may come back without the records that followed it.
      if hasRemoved { try Files.synchronizeDirectory(lists.layout.stateDirectory) }
      try synchronize(always: true)
    } catch {
      lists.log("after a loss of power, saved changes may be made again: \(error)")
      lists.state.withLock { $0.upkeep.hasRemoved = hasRemoved || $0.upkeep.hasRemoved }
    }
  }

  /// - Parameter always: whether fdatasync(2) is called although every record is durable, because
  ///   the journal has become shorter.
  private func synchronize(always: Bool) throws(EngineError) {
    let wanted = lists.state.withLock { $0.journal?.lastSequence ?? 0 }
    let isLeader = groupCommit.wait { group -> Bool? in
      if group.durable >= wanted, !always { return false }
      guard !group.isRunning else { return nil }
      group.isRunning = true
      return true
    }
    guard isLeader == true else { return }
    do throws(EngineError) {
      let through = try writeThrough()
      groupCommit.change { group in
        (group.isRunning, group.durable) = (false, max(group.durable, through))
      }
    } catch {
      // Each waiting thread tries for itself, and gets an error of its own.
      groupCommit.change { $0.isRunning = false }
      throw error
    }
  }

  /// Makes the journal durable.
  /// - Returns: the number of the last record that is durable.
  private func writeThrough() throws(EngineError) -> UInt64 {
    let (paths, sequence) = try lists.state.withLock { state throws(EngineError) in
      try EngineError.wrapping { () throws(SystemError) in
        (try state.journal?.unsynchronizedPaths() ?? [], state.journal?.lastSequence ?? 0)
      }
    }
    for path in paths {
      do throws(SystemError) {
        try Descriptor(opening: path, O_WRONLY).synchronizeData()
      } catch  where error.errno == .noSuchFile {
        // Removed meanwhile: its records are in lists, which are durable.
      } catch {
        lists.state.withLock { $0.journal?.noteFailure(path) }
        throw EngineError(error)
      }
    }
    lists.state.withLock { $0.journal?.noteSynchronized(paths, through: sequence) }
    return sequence
  }

  // MARK: - Files that nobody needs

  /// Removes the journal files that nobody needs any more: after a start that found nothing to
  /// replay, those are the files of earlier owners.
  func releaseReplayed() {
    remove(
      lists.state.withLock { state in
        do { return try state.releaseJournal() } catch { return [] }
      })
  }

  /// When `releaseIfDue` has something to do; nil if not before the next change.
  public var releaseDeadline: Instant? { lists.state.withLock { $0.upkeep.releaseAt } }

  /// Removes the journal files that were kept for clients that might repeat a request, once the
  /// time in which they do that is over. Cost: nothing before `releaseDeadline`.
  public func releaseIfDue(_ now: Instant = .now) {
    guard let due = releaseDeadline, due <= now else { return }
    releaseReplayed()
  }

  /// Removes the journal files that a new one has made superfluous, once that is durable. They may
  /// hold records of lists that are saved. If the disk fails, they stay.
  func releaseDurably() {
    do throws(EngineError) {
      try synchronize()
      releaseReplayed()
    } catch {
      lists.log("the journal could not be shortened: \(error)")
    }
  }

  /// Removes files of the journal, then empties the present one if the lists have all of its
  /// records. After a failure the next rewrite tries again.
  func remove(_ paths: [String]) {
    guard !paths.isEmpty else { return }
    do throws(SystemError) {
      for path in paths {
        try Files.remove(path)
        lists.state.withLock { state in
          state.journal?.forget(path)
          state.upkeep.hasRemoved = true
        }
      }
      _ = try lists.state.withLock { state throws(SystemError) in try state.releaseJournal() }
    } catch {
      lists.log("the journal could not be shortened: \(error)")
    }
  }

  /// Begins a new journal file where the present one has grown large, so that the present one can
  /// be removed when the lists have its records. The file is made outside of the lock.
  func startSegment() {
    guard let number = lists.state.withLock({ $0.journal?.reserveSegment() }) else { return }
    do throws(SystemError) {
      let segment = try Journal.Fresh(lists.layout.stateDirectory, number)
      lists.state.withLock { $0.journal?.begin(segment) }
    } catch {
      lists.log("no new journal file can be made, so the old one grows: \(error)")
    }
  }

  /// Records the changes of lists that cannot be saved once more, at the end of the journal, and
  /// removes the older files, which hold the records of all other lists too. Called by the writer's
  /// thread after a rewrite.
  ///
  /// Does nothing unless the journal has grown by more than 16 MiB since the last attempt, and to
  /// twice what it had then: also where an attempt fails, or something else keeps the older files.
  ///
  /// A crash before the files are removed leaves the old records and some of the new ones, which
  /// say the same: each gives a key its last value, or has all replayed edits of its list.
  func renewStuckRecords() {
    guard lists.state.withLock({ $0.isRenewalDue }) else { return }
    defer { lists.state.withLock { $0.noteRenewal() } }
    do throws(EngineError) {
      // Else a loss of power could leave a stuck list's part of a transaction, and no other.
      try synchronize()
      let renewed = try lists.state.withLock { state throws(EngineError) in
        try EngineError.wrapping { () throws(SystemError) in try state.recordStuckAgain() }
      }
      guard !renewed.isEmpty else { return }
      try synchronize()
      remove(
        try lists.state.withLock { state throws(EngineError) in
          state.adopt(renewed)
          return try EngineError.wrapping { () throws(SystemError) in try state.releaseJournal() }
        })
    } catch {
      lists.log("the journal could not be shortened: \(error)")
    }
  }
}
