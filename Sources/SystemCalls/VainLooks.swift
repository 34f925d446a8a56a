import Glibc
import Synchronization

/// Counts the looks in vain of a thread that polls, and lets other threads run after every fourth.
///
/// The thread that it waits for may be on the same processor: a message mostly wakes a thread on
/// the processor of the thread that has sent it, because that one mostly goes to sleep. If both
/// poll, they run in turns, each for as long as it polls. Each of 1,000 sets of a client then took
/// 60 us in place of 21; where the two let each other run, it takes 35. Where each has a processor
/// of its own, a set takes 3 % longer for it.
///
/// A busy thread that gets the processor keeps it for some milliseconds. After that has happened,
/// no thread of this process lets others run for 100 ms.
///
/// Threads: each polling thread has one of its own.
public struct VainLooks {
  private var count = 0
  /// When threads of this process let others run again, in nanoseconds (`Instant`).
  private static let resumption = Atomic<Int64>(0)
  /// Nanoseconds: a thread that runs for longer does not answer a message.
  private static let longest: Int64 = 1_000_000
  /// Milliseconds for which others are not let run, after a busy thread was.
  private static let pause: Int64 = 100

  public init() {}

  /// Notes a look in vain. Cost: on average a tenth of a microsecond, and the time for which
  /// another thread runs.
  public mutating func note() {
    count += 1
    if count % 4 == 0 { letOthersRun() }
  }

  private func letOthersRun() {
    let start = Instant.now
    guard start.nanoseconds >= Self.resumption.load(ordering: .relaxed) else { return }
    sched_yield()
    let end = Instant.now
    guard end.nanoseconds(after: start) > Self.longest else { return }
    let next = end.advanced(milliseconds: Self.pause)
    Self.resumption.store(next.nanoseconds, ordering: .relaxed)
  }
}
