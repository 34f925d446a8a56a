import SystemCalls

/// When one rule is looked at and carried out: a state machine without a clock of its own.
///
/// Promises: after a change is heard, the rule is looked at when no further one has come for the
/// delay, and after ten times the delay at most. Whether it is carried out depends on its values
/// alone: not if they are those of the last success. What failed is tried again after 1, 10, 60 and
/// 600 s, and then every hour; at once where the values differ from those that failed. A rule
/// that has been carried out ten times within a minute is carried out once a minute, until it has
/// had nothing to do for a minute.
///
/// Not thread-safe.
public struct EffectSchedule: Sendable {
  /// Seconds without a further change before the rule is looked at.
  public var delay: Double
  private var firstHeard: Instant?
  private var lastHeard: Instant?
  private var failures = 0
  private var retry: Instant?
  /// The values that the last try failed with.
  private var failed: EffectValues?
  private var isRunning = false
  /// When it was begun the last ten times.
  private var starts: [Instant] = []
  /// Since when there was nothing to do.
  private var quiet: Instant?
  /// Whether it is carried out once a minute only.
  public private(set) var isSlowed = false

  private static let minute: Int64 = 60_000
  private static let pauses: [Int64] = [1000, 10_000, 60_000, 600_000, 3_600_000]

  /// Creates the schedule of a rule that has just come.
  public init(delay: Double, now: Instant) {
    self.delay = delay
    hear(now)
  }

  /// Notes that something has changed which may concern the rule.
  public mutating func hear(_ now: Instant) {
    if firstHeard == nil, let quiet, quiet.advanced(milliseconds: Self.minute) <= now {
      (isSlowed, starts) = (false, [])
    }
    firstHeard = firstHeard ?? now
    lastHeard = now
  }

  /// When the rule is looked at next; nil if not before something is heard, or it has ended.
  public var due: Instant? {
    if isRunning { return nil }
    let moments = [
      lastHeard?.advanced(seconds: delay), firstHeard?.advanced(seconds: 10 * delay), retry,
    ]
    guard let first = moments.compactMap({ $0 }).min() else { return nil }
    guard isSlowed, let begin = starts.last else { return first }
    return max(first, begin.advanced(milliseconds: Self.minute))
  }

  /// Decides, when the rule is due, whether it is carried out now.
  /// - Parameters:
  ///   - values: the values now.
  ///   - done: those of the last success; nil if there was none.
  public mutating func begins(
    _ values: EffectValues, done: EffectValues?, now: Instant
  ) -> Bool {
    (firstHeard, lastHeard) = (nil, nil)
    if values == done {
      (failures, retry, failed) = (0, nil, nil)
      quiet = quiet ?? now
      return false
    }
    if let retry, retry > now, values == failed { return false }
    begin(now)
    return true
  }

  /// Has the rule looked at again after a pause: its values could not be read.
  public mutating func putOff(_ now: Instant) {
    (firstHeard, lastHeard) = (nil, nil)
    retry = now.advanced(milliseconds: 10_000)
  }

  private mutating func begin(_ now: Instant) {
    (isRunning, quiet, retry) = (true, nil, nil)
    starts = starts.suffix(9) + [now]
    if starts.count == 10, starts[0].advanced(milliseconds: Self.minute) > now { isSlowed = true }
  }

  /// Notes how it has ended.
  public mutating func end(_ values: EffectValues, succeeded: Bool, now: Instant) {
    isRunning = false
    if succeeded {
      (failures, retry, failed, quiet) = (0, nil, nil, now)
    } else {
      let pause = Self.pauses[min(failures, Self.pauses.count - 1)]
      (failures, retry, failed) = (failures + 1, now.advanced(milliseconds: pause), values)
    }
  }
}
