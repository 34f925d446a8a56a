import SystemCalls

/// Until when a change that waits for lists may be made. Its client gives up at a deadline, and
/// then nothing may take effect; but the client of a change that is worked at is told so, and waits
/// longer.
///
/// Promises: the lease ends no later than the client's patience. A renewal counts here from when it
/// is sent, at the client from when it comes; and none is made so shortly before the end that the
/// client may give up before it comes.
struct Lease {
  /// When the change may no longer be made.
  private(set) var end: Instant
  private let begun: Instant

  /// Milliseconds that a renewal gives. The client waits as long (`Patience.usual`).
  private static let length: Int64 = 5000
  /// Milliseconds from the end in which it is renewed: not at once, because most changes are made
  /// before, and not in the last second.
  private static let due: ClosedRange<Int64> = 1000...4000
  /// Milliseconds for which a change is worked at, at most.
  private static let longest: Int64 = 55_000

  /// A lease until the client's deadline.
  init(until end: Instant, now: Instant = .now) { (self.end, begun) = (end, now) }

  /// Renews the lease if that is due.
  /// - Returns: whether the client must be told.
  mutating func renew(_ now: Instant = .now) -> Bool {
    guard Self.due.contains(end.nanoseconds(after: now) / 1_000_000),
      now.nanoseconds(after: begun) / 1_000_000 <= Self.longest
    else { return false }
    end = now.advanced(milliseconds: Self.length)
    return true
  }
}
