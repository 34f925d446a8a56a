import SystemCalls

/// Slows down the pushes of keys that two writers change in turns: each is pushed once a second at
/// most. Whether one is such a key is asked when it was pushed more than ten times in 10 s.
///
/// Threads: one caller at a time. Cost: O(the keys of a push); no clock is asked.
public struct PushPace: Sendable {
  private struct Pushes {
    var times: [Instant] = []
    var isSlow = false
  }

  private var keys: [CloudKey: Pushes] = [:]
  private static let (span, pause): (Int64, Int64) = (10_000, 1000)
  private static let (mostPushes, mostKeys) = (10, 1000)

  /// No push is known.
  public init() {}

  /// Notes a push.
  /// - Parameter isInTurns: whether two writers change the key in turns; asked after more than ten
  ///   pushes in 10 s.
  public mutating func note(
    _ pushed: [CloudKey], at now: Instant, isInTurns: (CloudKey) -> Bool
  ) {
    if keys.count > Self.mostKeys {
      keys = keys.filter { now.milliseconds(after: $0.value.times.last ?? now) <= Self.span }
    }
    for key in pushed {
      var pushes = keys[key] ?? Pushes()
      pushes.times = pushes.times.filter { now.milliseconds(after: $0) <= Self.span } + [now]
      if pushes.times.count == 1 { pushes.isSlow = false }
      if !pushes.isSlow, pushes.times.count > Self.mostPushes {
        pushes.isSlow = isInTurns(key)
        pushes.times = [now]
      }
      keys[key] = pushes
    }
  }

  /// The keys that must not be pushed yet.
  public func held(at now: Instant) -> Set<CloudKey> {
    Set(keys.filter { $0.value.isSlow && due($0.value) > now }.keys)
  }

  /// When the first key that is held may be pushed; nil if none is held.
  public func deadline(at now: Instant) -> Instant? {
    keys.values.filter(\.isSlow).map(due).filter { $0 > now }.min()
  }

  private func due(_ pushes: Pushes) -> Instant {
    pushes.times.last?.advanced(milliseconds: Self.pause) ?? Instant(nanoseconds: 0)
  }
}
