import Glibc

/// A moment of the wall clock, in nanoseconds since 1970-01-01T00:00:00Z.
public struct Timestamp: Hashable, Comparable, Sendable {
  /// Nanoseconds since 1970; about 292 years to each side.
  public let nanoseconds: Int64

  /// A moment by its distance from 1970.
  public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

  /// A moment as the kernel has it.
  public init(_ time: timespec) {
    nanoseconds = Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
  }

  /// The moment as the kernel has it.
  public var timespec: Glibc.timespec {
    let (seconds, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
    return rest < 0
      ? Glibc.timespec(tv_sec: Int(seconds) - 1, tv_nsec: Int(rest) + 1_000_000_000)
      : Glibc.timespec(tv_sec: Int(seconds), tv_nsec: Int(rest))
  }

  /// Now (CLOCK_REALTIME).
  public static var now: Timestamp {
    var time = Glibc.timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Timestamp(time)
  }

  public static func < (left: Timestamp, right: Timestamp) -> Bool {
    left.nanoseconds < right.nanoseconds
  }
}

/// A moment of the monotonic clock, for time limits, in nanoseconds since some start.
public struct Instant: Hashable, Comparable, Sendable {
  /// Nanoseconds since the clock's start.
  public let nanoseconds: Int64

  /// A moment by its distance from the clock's start.
  public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

  /// Now (CLOCK_MONOTONIC).
  public static var now: Instant {
    var time = Glibc.timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Instant(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
  }

  /// The moment as the kernel has it.
  public var timespec: Glibc.timespec {
    Glibc.timespec(
      tv_sec: Int(nanoseconds / 1_000_000_000), tv_nsec: Int(nanoseconds % 1_000_000_000))
  }

  /// This moment and so many microseconds.
  public func advanced(microseconds: Int64) -> Instant {
    Instant(nanoseconds: nanoseconds + microseconds * 1000)
  }

  /// This moment and so many milliseconds.
  public func advanced(milliseconds: Int64) -> Instant {
    Instant(nanoseconds: nanoseconds + milliseconds * 1_000_000)
  }

  /// The calling thread sleeps.
  public static func sleep(milliseconds: UInt32) { usleep(milliseconds * 1000) }

  /// The calling thread sleeps.
  public static func sleep(microseconds: UInt32) { usleep(microseconds) }

  /// Whole milliseconds from now until this moment, rounded up; 0 when it has passed.
  public func milliseconds(after now: Instant) -> Int {
    max(0, Int((nanoseconds - now.nanoseconds + 999_999) / 1_000_000))
  }

  public static func < (left: Instant, right: Instant) -> Bool {
    left.nanoseconds < right.nanoseconds
  }
}
