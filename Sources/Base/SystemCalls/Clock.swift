import Glibc

/// A moment of the wall clock, in nanoseconds since 1970-01-01T00:00:00Z.
///
/// Timestamps come from file systems, journals, clients and `touch -d`, so they may be any number.
/// All arithmetic saturates at the ends of the range (1677-09-21 and 2262-04-11) and never traps.
public struct Timestamp: Hashable, Comparable, Sendable {
  /// Nanoseconds since 1970. The range is about 292 years to each side.
  public let nanoseconds: Int64

  /// Creates the moment that many nanoseconds after 1970.
  public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

  /// Converts a time of the kernel. A time outside of the range becomes the nearest end of it.
  public init(_ time: timespec) {
    let seconds = Int64(time.tv_sec).multiplied(by: 1_000_000_000)
    nanoseconds = seconds.added(Int64(time.tv_nsec))
  }

  /// This moment in the kernel's form.
  public var timespec: Glibc.timespec {
    let (seconds, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
    return rest < 0
      ? Glibc.timespec(tv_sec: Int(seconds) - 1, tv_nsec: Int(rest) + 1_000_000_000)
      : Glibc.timespec(tv_sec: Int(seconds), tv_nsec: Int(rest))
  }

  /// The present moment (CLOCK_REALTIME).
  public static var now: Timestamp {
    var time = Glibc.timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Timestamp(time)
  }

  /// The next moment that differs from this one: a nanosecond later.
  public var next: Timestamp { Timestamp(nanoseconds: nanoseconds.added(1)) }

  /// Nanoseconds from `earlier` to this moment; negative where `earlier` is later.
  public func nanoseconds(after earlier: Timestamp) -> Int64 {
    nanoseconds.subtracted(earlier.nanoseconds)
  }

  public static func < (left: Timestamp, right: Timestamp) -> Bool {
    left.nanoseconds < right.nanoseconds
  }
}

/// A moment of the monotonic clock, for time limits, in nanoseconds since an arbitrary start.
public struct Instant: Hashable, Comparable, Sendable {
  /// Nanoseconds since the clock's start.
  public let nanoseconds: Int64

  /// Creates the moment that many nanoseconds after the clock's start.
  public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

  /// The present moment (CLOCK_MONOTONIC).
  public static var now: Instant {
    var time = Glibc.timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Instant(
      nanoseconds: Int64(time.tv_sec).multiplied(by: 1_000_000_000).added(Int64(time.tv_nsec)))
  }

  /// This moment in the kernel's form.
  public var timespec: Glibc.timespec {
    Glibc.timespec(
      tv_sec: Int(nanoseconds / 1_000_000_000), tv_nsec: Int(nanoseconds % 1_000_000_000))
  }

  /// The moment that many nanoseconds after this one.
  public func advanced(nanoseconds count: Int64) -> Instant {
    Instant(nanoseconds: nanoseconds.added(count))
  }

  /// The moment that many milliseconds after this one.
  public func advanced(milliseconds: Int64) -> Instant {
    Instant(nanoseconds: nanoseconds.added(milliseconds.multiplied(by: 1_000_000)))
  }

  /// Makes the calling thread sleep for that long.
  public static func sleep(milliseconds: UInt32) { usleep(milliseconds * 1000) }

  /// Makes the calling thread sleep for that long.
  public static func sleep(microseconds: UInt32) { usleep(microseconds) }

  /// Whole milliseconds from now until this moment, rounded up; 0 when it has passed.
  public func milliseconds(after now: Instant) -> Int {
    max(0, Int(nanoseconds(after: now).added(999_999) / 1_000_000))
  }

  /// Nanoseconds from `earlier` to this moment; negative where `earlier` is later.
  public func nanoseconds(after earlier: Instant) -> Int64 {
    nanoseconds.subtracted(earlier.nanoseconds)
  }

  /// The moment that many seconds after this one.
  public func advanced(seconds: Double) -> Instant {
    Instant(nanoseconds: nanoseconds.added(Int64(clamping: seconds * 1e9)))
  }

  public static func < (left: Instant, right: Instant) -> Bool {
    left.nanoseconds < right.nanoseconds
  }
}

/// The present, by both clocks. Code that takes it as a parameter can be tested without waiting.
public struct Moment: Hashable, Sendable {
  /// By the monotonic clock: for deadlines.
  public var instant: Instant
  /// By the wall clock: for times that people see.
  public var time: Timestamp

  /// A moment by both clocks.
  public init(instant: Instant, time: Timestamp) {
    self.instant = instant
    self.time = time
  }

  /// Now. Cost: two reads of the clock.
  public static var now: Moment { Moment(instant: .now, time: .now) }
}

/// How long the calling thread has been running, without the time in which others had its processor.
public enum ThreadTime {
  /// Nanoseconds so far (CLOCK_THREAD_CPUTIME_ID). Cost: a system call.
  public static var nanoseconds: Int64 {
    var time = Glibc.timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Int64(time.tv_sec).multiplied(by: 1_000_000_000).added(Int64(time.tv_nsec))
  }
}

/// Arithmetic that saturates at the ends of the range.
extension Int64 {
  fileprivate func added(_ other: Int64) -> Int64 {
    let (sum, overflow) = addingReportingOverflow(other)
    return overflow ? (other < 0 ? .min : .max) : sum
  }

  fileprivate func subtracted(_ other: Int64) -> Int64 {
    let (difference, overflow) = subtractingReportingOverflow(other)
    return overflow ? (other < 0 ? .max : .min) : difference
  }

  fileprivate func multiplied(by other: Int64) -> Int64 {
    let (product, overflow) = multipliedReportingOverflow(by: other)
    return overflow ? ((self < 0) == (other < 0) ? .max : .min) : product
  }

  /// Drops the fraction and clamps the number to the range; NaN becomes 0.
  fileprivate init(clamping number: Double) {
    self =
      Int64(exactly: number.rounded(.towardZero)) ?? (number < 0 ? .min : number > 0 ? .max : 0)
  }
}
