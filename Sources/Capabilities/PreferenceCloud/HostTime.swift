import Glibc
import SystemCalls

/// This host's clocks at one moment, in milliseconds.
public struct HostTime: Equatable, Sendable {
  /// The time of day, since 1970. Somebody can set it at any time.
  public let wall: Int64
  /// The time since an arbitrary start. Nobody sets it, and it goes on while the machine sleeps.
  public let steady: Int64

  /// Creates a time.
  public init(wall: Int64, steady: Int64) { (self.wall, self.steady) = (wall, steady) }

  /// The present time (CLOCK_REALTIME, CLOCK_BOOTTIME).
  public static var now: HostTime {
    var time = timespec()
    clock_gettime(CLOCK_BOOTTIME, &time)
    return HostTime(
      wall: Timestamp.now.nanoseconds / 1_000_000,
      steady: Timestamp(time).nanoseconds / 1_000_000)
  }
}

/// The server's clock, as this host knows it: what the server said last, and the steady time that
/// has passed since. It does not depend on this host's time of day.
struct ServerTime: Sendable {
  private let said: Int64
  private let heard: Int64

  /// Notes what the server says now, in milliseconds since 1970.
  init(_ said: Int64, at now: HostTime) { (self.said, heard) = (said, now.steady) }

  /// Milliseconds that the server's clock is ahead of this host's time of day; nil where that is no
  /// number. The server tells whole seconds: a small difference is none.
  func lead(at now: HostTime) -> Int64? {
    let (passed, first) = now.steady.subtractingReportingOverflow(heard)
    let (present, second) = said.addingReportingOverflow(max(0, passed))
    let (lead, third) = present.subtractingReportingOverflow(now.wall)
    if first || second || third { return nil }
    return (-2000...2000).contains(lead) ? 0 : lead
  }
}
