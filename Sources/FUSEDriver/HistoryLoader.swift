import PreferenceModel
import Synchronization
import SystemCalls

/// Reads the history of the store on threads of their own, for requests that wait for it
/// (`RequestGate`). Each request has each part of it read once.
///
/// Threads: the loop's alone, except that `ended` is written by the threads that read.
final class HistoryLoader {
  private final class Ended: Sendable {
    let jobs = Mutex<Set<UInt64>>([])
  }

  private let threads = BlockingThreads(name: "prefs-history", most: 2)
  private let ended = Ended()
  private var lastJob: UInt64 = 0

  /// Has something read.
  /// - Parameter told: called by any thread when it has been.
  /// - Returns: the number of the job; nil: too many others wait.
  func load(
    _ need: HistoryNeed, from history: any HistoryService, told: @escaping @Sendable () -> Void
  ) -> UInt64? {
    lastJob &+= 1
    let job = lastJob
    let isBegun = threads.run { [ended] in
      history.prepare(need)
      ended.jobs.withLock { _ = $0.insert(job) }
      told()
    }
    return isBegun ? job : nil
  }

  /// Returns whether the job has ended, and forgets it then.
  func removeEnded(_ job: UInt64) -> Bool {
    ended.jobs.withLock { $0.remove(job) != nil }
  }
}
