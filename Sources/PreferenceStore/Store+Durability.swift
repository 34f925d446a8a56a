import Glibc
import PreferenceModel
import SystemCalls

// Group commit: of the threads that want the journal to be durable, one calls fdatasync(2) for all.

/// Whether a thread is making the journal durable, and how far it is.
struct GroupCommit {
  var isRunning = false
  /// The number of the last record that is durable.
  var durable: UInt64 = 0
}

extension Store {
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
    let (hasReleased, hasRemoved) = state.withLock { state in
      defer { if state.hasReleased { (state.hasReleased, state.hasRemoved) = (false, false) } }
      return (state.hasReleased, state.hasRemoved)
    }
    guard hasReleased else { return }
    do {
      // First, because no older file may come back without the records that followed it.
      if hasRemoved { try Files.synchronizeDirectory(layout.stateDirectory) }
      try synchronize(always: true)
    } catch {
      log("released records of the journal may come back after a loss of power: \(error)")
      state.withLock { $0.hasRemoved = hasRemoved || $0.hasRemoved }
    }
  }

  /// - Parameter always: whether fdatasync(2) is called although every record is durable, because
  ///   the journal has become shorter.
  private func synchronize(always: Bool) throws(EngineError) {
    let wanted = state.withLock { $0.journal?.lastSequence ?? 0 }
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
    let (paths, sequence) = try state.withLock { state throws(EngineError) in
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
        state.withLock { $0.journal?.noteFailure(path) }
        throw EngineError(error)
      }
    }
    state.withLock { $0.journal?.noteSynchronized(paths, through: sequence) }
    return sequence
  }
}
