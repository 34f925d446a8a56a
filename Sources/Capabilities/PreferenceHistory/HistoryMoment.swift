import PreferenceModel
import PropertyList
import SystemCalls

/// A moment of the past: a time, or the state that the change with a number has left.
package enum HistoryMoment: Equatable, Sendable {
  case time(Timestamp)
  case number(UInt64)

  /// What a text may be, for error messages.
  package static let forms =
    "a number of a change, 2026-11-21T07:20:00Z, 2026-11-21, yesterday, now, or -2h"

  /// The moment that a text means; nil if it means none. Days begin at midnight, UTC, as the times
  /// that `prefs history` prints.
  package init?(_ text: String, now: Timestamp = .now) {
    if let number = UInt64(text) {
      self = .number(number)
    } else if let time = Self.named(text, now) ?? Self.before(now, text) ?? Self.date(text) {
      self = .time(time)
    } else {
      return nil
    }
  }

  /// Nanoseconds of a day.
  package static let day: Int64 = 86_400_000_000_000

  private static func named(_ text: String, _ now: Timestamp) -> Timestamp? {
    let today = now.beginningOfDay
    switch text {
    case "now": return now
    case "today": return today
    case "yesterday":
      let start = today.nanoseconds.subtractingReportingOverflow(day)
      return start.overflow ? nil : Timestamp(nanoseconds: start.partialValue)
    default: return nil
    }
  }

  /// `-2h` and the like, also without the sign.
  private static func before(_ now: Timestamp, _ text: String) -> Timestamp? {
    let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3600, "d": 86_400]
    let unsigned = text.hasPrefix("-") ? text.dropFirst() : text[...]
    guard let unit = text.last.flatMap({ units[$0] }), let count = Int32(unsigned.dropLast()),
      count >= 0
    else { return nil }
    // At most 2^31 * 86,400 seconds.
    let length = (Int64(count) * unit).multipliedReportingOverflow(by: 1_000_000_000)
    let start = now.nanoseconds.subtractingReportingOverflow(length.partialValue)
    let isBefore = length.overflow || start.overflow
    return Timestamp(nanoseconds: isBefore ? .min : start.partialValue)
  }

  private static func date(_ text: String) -> Timestamp? {
    for text in [text, text + "T00:00:00Z"] {
      if case .date(let date)? = Recogniser.value(of: Array(text.utf8), kind: .date) {
        return Timestamp(date)
      }
    }
    return nil
  }

  /// The end of the second, for a time without a fraction: so are times printed.
  package var endOfSecond: HistoryMoment {
    guard case .time(let time) = self, time.nanoseconds % 1_000_000_000 == 0 else { return self }
    return .time(time.endOfSecond)
  }

  /// The moment as an error message names it.
  package var text: String {
    switch self {
    case .time(let time): time.text
    case .number(let number): "\(number)"
    }
  }

  /// The moment after which changes are not in the state of this one.
  package var next: HistoryMoment {
    switch self {
    case .time(let time): .time(time.next)
    case .number(let number): .number(number.addingReportingOverflow(1).partialValue)
    }
  }

  /// Whether the change was made at the moment, or after it.
  func isReached(by record: HistoryRecord) -> Bool {
    switch self {
    case .time(let time): record.time >= time
    case .number(let number): record.number >= number
    }
  }

  /// Whether the change was made at the moment, or before it.
  func includes(_ record: HistoryRecord) -> Bool {
    switch self {
    case .time(let time): record.time <= time
    case .number(let number): record.number <= number
    }
  }
}

extension Timestamp {
  /// Nanoseconds since the last multiple of the length.
  private func part(of length: Int64) -> Int64 { (nanoseconds % length + length) % length }

  /// The last moment of its second.
  var endOfSecond: Timestamp {
    let part = part(of: 1_000_000_000)
    let end = nanoseconds.addingReportingOverflow(999_999_999 - part)
    return Timestamp(nanoseconds: end.overflow ? .max : end.partialValue)
  }

  /// The first moment of its day, UTC.
  package var beginningOfDay: Timestamp {
    let start = nanoseconds.subtractingReportingOverflow(part(of: HistoryMoment.day))
    return Timestamp(nanoseconds: start.overflow ? .min : start.partialValue)
  }
}
