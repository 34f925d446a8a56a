/// A line for a log. A string literal is the line of an error.
public struct LogLine: ExpressibleByStringInterpolation, Equatable, Sendable {
  /// How bad the event is, and what follows from it for the log.
  public enum Severity: Equatable, Sendable {
    /// Something failed that an administrator should know of (LOG_ERR).
    case error
    /// Something happened as it should (LOG_NOTICE).
    case notice
    /// A program's request was refused with that errno (LOG_NOTICE; LOG_ERR for EIO, ENOSPC, EDQUOT
    /// and ETIMEDOUT, which are no fault of the program's). A program can have as many requests
    /// refused as it likes, so the log writes a few of each errno and counts the rest.
    case refusal(Errno)
  }

  /// The text, which may have characters from outside: `Log` escapes them.
  public let text: String
  public let severity: Severity

  /// Creates the line of an error.
  public init(stringLiteral text: String) { self.init(text) }

  /// Creates a line.
  public init(_ text: String, _ severity: Severity = .error) {
    (self.text, self.severity) = (text, severity)
  }

  /// Creates the line of something that happened as it should.
  public static func notice(_ text: String) -> LogLine { LogLine(text, .notice) }

  /// Creates the line of a refusal.
  public static func refusal(_ text: String, _ errno: Errno) -> LogLine {
    LogLine(text, .refusal(errno))
  }
}

/// Chooses the refusals that a log writes: of each errno, a number of them in each minute.
///
/// Threads: one at a time; the log calls it under its lock. Memory: one entry for each errno.
struct RefusalLimit {
  private struct Minute {
    let begin: Instant
    var count = 0
  }

  private var minutes: [Errno: Minute] = [:]

  /// How many refusals of one errno are written in a minute.
  static let mostInMinute = 20

  /// Returns what the log writes for a refusal; nil if it is only counted. The last line of a
  /// minute says so, and the first one after the minute says how many were counted.
  mutating func text(of line: String, _ errno: Errno, at now: Instant) -> String? {
    var minute = minutes[errno] ?? Minute(begin: now)
    var text = line
    if minute.begin.advanced(milliseconds: 60_000) <= now {
      let counted = minute.count - Self.mostInMinute
      if counted > 0 { text += " (before it, \(counted) refusals with this errno were not logged)" }
      minute = Minute(begin: now)
    }
    minute.count += 1
    minutes[errno] = minute
    if minute.count < Self.mostInMinute { return text }
    let rest = " (further refusals with this errno are not logged for a minute)"
    return minute.count == Self.mostInMinute ? text + rest : nil
  }
}
