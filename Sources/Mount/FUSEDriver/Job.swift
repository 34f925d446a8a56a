import Synchronization
import SystemCalls

/// Something that a thread makes for requests that wait for it (`RequestGate`): a large listing, or
/// what a report needs. Two jobs are equal if they are the same.
final class Job<Made: Sendable>: Sendable, Equatable {
  private let result = Mutex<Made?>(nil)

  /// What was made; nil if it is being made.
  var made: Made? { result.withLock { $0 } }

  /// Has a thread make something.
  /// - Parameter told: called by the thread when it is made.
  /// - Returns: nil if too many others wait.
  static func begin(
    on threads: BlockingThreads, told: @escaping @Sendable () -> Void,
    _ make: @escaping @Sendable () -> Made
  ) -> Job? {
    let job = Job()
    let isBegun = threads.run {
      let made = make()
      job.result.withLock { $0 = made }
      told()
    }
    return isBegun ? job : nil
  }

  static func == (left: Job, right: Job) -> Bool { left === right }
}
