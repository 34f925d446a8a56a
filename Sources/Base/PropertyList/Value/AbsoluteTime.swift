/// A point in time: seconds since 2001-01-01T00:00:00Z, like CFAbsoluteTime. Two are equal if their
/// bit patterns are.
public struct AbsoluteTime: Hashable, Sendable {
  /// Seconds since 2001-01-01T00:00:00Z.
  public let seconds: Double

  /// Creates the point in time that is `seconds` after 2001-01-01T00:00:00Z. All NaNs are one.
  public init(seconds: Double) { self.seconds = seconds.isNaN ? .nan : seconds }

  public static func == (left: AbsoluteTime, right: AbsoluteTime) -> Bool {
    left.seconds.bitPattern == right.seconds.bitPattern
  }

  public func hash(into hasher: inout Hasher) { hasher.combine(seconds.bitPattern) }
}

extension Value {
  /// The value with dates in whole seconds, as in XML lists. Cost: O(values).
  public var inWholeSeconds: Value {
    mappingLeaves { if case .date(let time) = $0 { .date(time.inWholeSeconds) } else { $0 } }
  }
}

extension AbsoluteTime {
  /// This time without its fraction of a second, rounded down.
  public var inWholeSeconds: AbsoluteTime { AbsoluteTime(seconds: seconds.rounded(.down)) }

  /// The seconds since 2001, in both directions, at which the calendar ends: about the year
  /// 2,123,000,000. CoreFoundation's ends there too, because its years have 32 bits.
  private static let end = 6.7e16

  /// Whether this is a time of the calendar: not NaN, not infinite, not too far away, and not -0,
  /// which no date says.
  var isInCalendar: Bool {
    seconds.magnitude < Self.end && !(seconds == 0 && seconds.sign == .minus)
  }

  /// The time as ISO 8601 in UTC, e.g. `2026-11-21T07:20:00Z`, with the shortest fraction that
  /// reads back as the same time. Years before 0 and after 9999 are written as in CoreFoundation:
  /// `-005-02-08T02:40:00Z`, `11507-08-17T05:20:00Z`. A time outside of the calendar is `@` and the
  /// seconds since 2001, and so is one that no such text gives back exactly.
  public var text: String {
    var sink = ByteSink(room: 40)
    sink.append(self)
    return sink.text()
  }

  /// Returns the shortest decimal fraction, with its point, that gives this time when it is added
  /// to `whole`: "" if there is no fraction, nil if no decimal fraction gives the exact time.
  fileprivate func fraction(after whole: Double) -> String? {
    let rest = seconds - whole
    if rest == 0 { return "" }
    for digits in 1...17 {
      guard let scaled = Int64(exactly: (rest * pow10(digits)).rounded()) else { continue }
      let text = String(scaled)
      guard text.utf8.count <= digits else { continue }
      let padded = String(repeating: "0", count: digits - text.utf8.count) + text
      if let value = Double("0." + padded), whole + value == seconds { return "." + padded }
    }
    return nil
  }

  private func pow10(_ exponent: Int) -> Double {
    (0..<exponent).reduce(1.0) { power, _ in power * 10 }
  }
}

extension ByteSink {
  /// Appends the text of a point in time (see `AbsoluteTime.text`).
  mutating func append(_ time: AbsoluteTime) {
    let whole = time.seconds.rounded(.down)
    guard time.isInCalendar, let fraction = time.fraction(after: whole) else {
      return append(text: "@\(time.seconds)")
    }
    let (day, second) = Int64(whole).quotientFlooring(by: 86400)
    append(CivilDate(daysSince2001: day))
    append("T")
    append(decimal: UInt64(second / 3600), width: 2)
    append(":")
    append(decimal: UInt64(second / 60 % 60), width: 2)
    append(":")
    append(decimal: UInt64(second % 60), width: 2)
    append(text: fraction)
    append("Z")
  }

  /// Appends a date as `YYYY-MM-DD`. The year has four characters or more, its sign included.
  private mutating func append(_ date: CivilDate) {
    if date.year < 0 { append(UInt8(ascii: "-")) }
    append(decimal: UInt64(date.year.magnitude), width: date.year < 0 ? 3 : 4)
    append("-")
    append(decimal: UInt64(date.month), width: 2)
    append("-")
    append(decimal: UInt64(date.day), width: 2)
  }
}

/// A day of the proleptic Gregorian calendar. Years are astronomical: the year 0 is 1 BC.
struct CivilDate: Equatable {
  var year: Int
  var month: Int
  var day: Int

  /// The number of days from 0000-03-01 to 2001-01-01.
  private static let epoch: Int64 = 730_791
}

extension CivilDate {
  /// Creates the day that is `days` days after 2001-01-01. It counts in eras of 400 years that
  /// begin on the 1st of March, so that the leap day is the last day of a year.
  init(daysSince2001 days: Int64) {
    let (era, dayOfEra) = (days + Self.epoch).quotientFlooring(by: 146_097)
    let yearOfEra =
      (dayOfEra - dayOfEra / 1460 + dayOfEra / 36524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shifted = (5 * dayOfYear + 2) / 153
    day = Int(dayOfYear - (153 * shifted + 2) / 5 + 1)
    month = Int(shifted < 10 ? shifted + 3 : shifted - 9)
    year = Int(yearOfEra + era * 400) + (month <= 2 ? 1 : 0)
  }

  var daysSince2001: Int64 {
    let shiftedYear = Int64(month <= 2 ? year - 1 : year)
    let (era, yearOfEra) = shiftedYear.quotientFlooring(by: 400)
    let shiftedMonth = Int64(month > 2 ? month - 3 : month + 9)
    let dayOfYear = (153 * shiftedMonth + 2) / 5 + Int64(day) - 1
    let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
    return era * 146_097 + dayOfEra - Self.epoch
  }

  /// Whether the calendar has this day.
  var isValid: Bool {
    (1...12).contains(month) && day >= 1
      && CivilDate(daysSince2001: daysSince2001) == self
  }
}

extension Int64 {
  /// Divides by a positive number and rounds down; the remainder is never negative.
  func quotientFlooring(by divisor: Int64) -> (quotient: Int64, remainder: Int64) {
    let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
    return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
  }
}
