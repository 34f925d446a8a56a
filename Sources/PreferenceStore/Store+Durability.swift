import Glibc
import PreferenceModel
import SystemCalls

// Group commit: of those who want the disk to have the journal, one makes it so for all.

/// Who writes the journal to the disk now, and how far it is there.
struct GroupCommit {
  var isRunning = false
  /// The last record that is durable.
  var durable: UInt64 = 0
}

extension Store {
  /// Returns when every change that was committed before is on the disk. Blocks for one or two
  /// fdatasync(2) of the journal, which all who wait at the same time share; needs no list to be
  /// rewritten.
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
      // Who waits tries for himself, and gets an error of his own.
      groupCommit.change { $0.isRunning = false }
      throw error
    }
  }

  /// - Returns: the last record that is durable.
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
        // Released meanwhile: its records are in lists that were made durable.
      } catch {
        state.withLock { $0.journal?.noteFailure(path) }
        throw EngineError(error)
      }
    }
    state.withLock { $0.journal?.noteSynchronized(paths, through: sequence) }
    return sequence
  }
}
