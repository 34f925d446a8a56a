import PropertyList

/// When a key was set: a hybrid logical clock's time, and the host that set it. Stamps of all hosts
/// are in one order, the same on every machine, and a set that was made with knowledge of another
/// one has a later stamp (Kulkarni and others, Logical Physical Clocks, 2014).
public struct Stamp: Hashable, Comparable, Sendable {
  /// Milliseconds since 1970.
  public let milliseconds: Int64
  /// Counts the sets within one millisecond, or while the clock stands behind what was heard.
  public let counter: UInt32
  /// The host, by its identifier.
  public let host: String

  /// Creates a stamp.
  public init(milliseconds: Int64, counter: UInt32, host: String) {
    (self.milliseconds, self.counter, self.host) = (milliseconds, counter, host)
  }

  public static func < (left: Stamp, right: Stamp) -> Bool {
    if left.milliseconds != right.milliseconds { return left.milliseconds < right.milliseconds }
    if left.counter != right.counter { return left.counter < right.counter }
    return Key(left.host) < Key(right.host)
  }
}

extension Stamp {
  /// The first stamp of the host that is later than this one.
  func next(by host: String) -> Stamp {
    if counter < .max { return Stamp(milliseconds: milliseconds, counter: counter + 1, host: host) }
    let (next, overflow) = milliseconds.addingReportingOverflow(1)
    return Stamp(milliseconds: overflow ? .max : next, counter: 0, host: host)
  }
}

/// The hybrid logical clock of one host: never goes back, and is never behind a stamp that it has
/// heard of.
public struct HybridClock: Equatable, Sendable {
  /// The last stamp that the clock made or heard of, as one of this host.
  private(set) var latest: Stamp

  /// Milliseconds that a stamp may be ahead of the server's clock. A host whose clock is wrong
  /// would otherwise win every conflict, and drag the clocks of all others along.
  public static let largestLead: Int64 = 60_000

  /// Creates the clock of a host, which goes on from an earlier stamp of its own.
  public init(host: String, after stamp: Stamp? = nil) {
    latest = Stamp(milliseconds: stamp?.milliseconds ?? 0, counter: stamp?.counter ?? 0, host: host)
  }

  /// The host whose stamps the clock makes.
  public var host: String { latest.host }

  /// Makes the stamp of a set.
  /// - Parameter wall: the host's own clock, in milliseconds since 1970.
  public mutating func stamp(at wall: Int64) -> Stamp {
    latest =
      wall > latest.milliseconds
      ? Stamp(milliseconds: wall, counter: 0, host: host) : latest.next(by: host)
    return latest
  }

  /// Notes a stamp of another host: later stamps of this one are after it.
  public mutating func hear(_ stamp: Stamp) {
    if (stamp.milliseconds, stamp.counter) > (latest.milliseconds, latest.counter) {
      self = HybridClock(host: host, after: stamp)
    }
  }

  /// Returns the stamp; where it is more than `largestLead` ahead of the server's clock, one with
  /// the server's time in its place.
  /// - Parameter server: the server's clock; nil if it is not known.
  public static func bounded(_ stamp: Stamp, server: Int64?) -> Stamp {
    guard let server else { return stamp }
    let (latest, overflow) = server.addingReportingOverflow(largestLead)
    guard !overflow, stamp.milliseconds > latest else { return stamp }
    return Stamp(milliseconds: server, counter: stamp.counter, host: stamp.host)
  }
}
