import Glibc
import Synchronization

/// Decides whether a thread that waits looks again, or sleeps. One rule for all threads of the
/// programs that answer each other: the loop of a mount, the owner's server, a caller that waits for
/// an answer, a thread that reads lists.
///
/// A thread that sleeps has to be woken, which takes 20 to 100 us where a processor has gone to
/// sleep too: more than most requests take. So a thread looks again for 200 us after something has
/// come, which is long enough for the next request of a shell's loop. After every fourth look it
/// lets others run: the thread that it waits for may be on the same processor.
///
/// If that takes longer than a millisecond, other programs need the processors. Then the threads of
/// this process sleep at once, for 100 ms.
///
/// Threads: each polling thread has one of its own.
public struct Polling {
  private var looks = 0

  /// When threads of this process poll again, in nanoseconds (`Instant`).
  private static let resumption = Atomic<Int64>(0)
  /// Nanoseconds for which a thread polls.
  private static let patience: Int64 = 200_000
  /// Nanoseconds: a thread that runs for longer does not answer a message.
  private static let longestTurn: Int64 = 1_000_000
  /// Milliseconds for which no thread polls, after another program had such a turn.
  private static let pause: Int64 = 100

  public init() {}

  /// Returns whether to look once more; if not, sleep.
  /// - Parameter last: when something came last, or the wait began.
  public mutating func looksAgain(since last: Instant, now: Instant = .now) -> Bool {
    looksAgain(since: last, now: now) { sched_yield() }
  }

  /// - Parameter yield: lets other threads run.
  mutating func looksAgain(since last: Instant, now: Instant, yield: () -> Void) -> Bool {
    guard now.nanoseconds(after: last) < Self.patience,
      now.nanoseconds >= Self.resumption.load(ordering: .relaxed)
    else { return false }
    looks &+= 1
    guard looks % 4 == 0 else { return true }
    yield()
    let end = Instant.now
    guard end.nanoseconds(after: now) > Self.longestTurn else { return true }
    let next = end.advanced(milliseconds: Self.pause)
    Self.resumption.store(next.nanoseconds, ordering: .relaxed)
    return false
  }
}
