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
  public func synchronize() throws(EngineError) {
    let wanted = state.withLock { $0.journal?.lastSequence ?? 0 }
    let isLeader = groupCommit.wait { group -> Bool? in
      if group.durable >= wanted { return false }
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
