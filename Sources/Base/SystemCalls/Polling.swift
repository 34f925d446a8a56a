import Glibc
import Synchronization

/// Decides whether a thread that waits looks again, or sleeps. One rule for all threads of the
/// programs that answer each other: the loop of a mount, the owner's server, a caller that waits for
/// an answer.
///
/// A thread that sleeps has to be woken. Where a processor has gone to sleep too, that takes longer
/// than most requests. So a thread looks again for 200 us after something has come, which is long
/// enough for the next request of a shell's loop. After each look it lets others run: the thread
/// that it waits for, or has just answered, may be on the same processor.
///
/// If that takes longer than a millisecond, other programs need the processors. Then the threads of
/// this process sleep at once, for 100 ms.
///
/// Threads: any.
public enum Polling {
  /// When threads of this process poll again, in nanoseconds (`Instant`).
  private static let resumption = Atomic<Int64>(0)
  /// Nanoseconds for which a thread polls.
  private static let patience: Int64 = 200_000
  /// Nanoseconds: a thread that runs for longer does not answer a message.
  private static let longestTurn: Int64 = 1_000_000
  /// Milliseconds for which no thread polls, after another program had such a turn.
  private static let pause: Int64 = 100

  /// Lets other threads run, and returns whether to look once more; if not, sleep.
  /// - Parameter last: when something came last, or the wait began.
  public static func looksAgain(since last: Instant, now: Instant = .now) -> Bool {
    looksAgain(since: last, now: now) { sched_yield() }
  }

  /// - Parameter yield: lets other threads run.
  static func looksAgain(since last: Instant, now: Instant, yield: () -> Void) -> Bool {
    guard now.nanoseconds(after: last) < patience,
      now.nanoseconds >= resumption.load(ordering: .relaxed)
    else { return false }
    yield()
    let end = Instant.now
    guard end.nanoseconds(after: now) > longestTurn else { return true }
    resumption.store(end.advanced(milliseconds: pause).nanoseconds, ordering: .relaxed)
    return false
  }
}
