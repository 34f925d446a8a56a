/// Scans the text of a date, one byte at a time.
///
/// It accepts `2026-11-21T07:20:00[.fraction](Z|±hh[[:]mm])`. A space may replace the `T` and may
/// be before the zone, as in the dates that `defaults` prints: `2026-11-21 07:20:00 +0000`. It also
/// accepts years before 0 and after 9999 (`-005`, `11507`), also in the expanded form of ISO 8601
/// (`+011507`), and `@` with the seconds since 2001. It does not accept blanks around the date.
/// Cost: O(1) for each byte.
struct DateParser: ScalarScanner {
  private enum State {
    case start, year, month, day, separator, hour, minute, second, afterSecond, fraction
    case blank, zoneHour, zoneColon, zoneMinute, end, seconds
  }

  private var state = State.start
  private var digits = 0
  private var number = 0
  /// The fewest digits that the year may have.
  private var yearWidth = 4
  private var sign = 1
  /// The last year of CoreFoundation.
  private static let lastYear = Int(Int32.max)
  private var date = CivilDate(year: 0, month: 1, day: 1)
  private var hour = 0
  private var minute = 0
  private var second = 0
  private var fraction = "0."
  private var zoneSign = 1
  private var zone = 0
  private var plain = RealScanner()

  /// Consumes the next byte.
  /// - Returns: false if no date begins with the bytes so far.
  mutating func consume(_ byte: UInt8) -> Bool {
    switch state {
    case .start: return consumeFirst(byte)
    case .year: return consumeYear(byte)
    case .month: return field(byte, width: 2, 1...12, then: "-", .day) { $0.date.month = $1 }
    case .day: return field(byte, width: 2, 1...31, then: nil, .separator) { $0.date.day = $1 }
    case .separator:
      state = .hour
      return date.isValid && (byte == UInt8(ascii: "T") || byte == UInt8(ascii: " "))
    case .hour: return field(byte, width: 2, 0...23, then: ":", .minute) { $0.hour = $1 }
    case .minute: return field(byte, width: 2, 0...59, then: ":", .second) { $0.minute = $1 }
    case .second: return field(byte, width: 2, 0...59, then: nil, .afterSecond) { $0.second = $1 }
    case .afterSecond where byte == UInt8(ascii: "."):
      state = .fraction
      return true
    case .fraction where byte.isDigit:
      if fraction.utf8.count < 64 { fraction.append(Character(Unicode.Scalar(byte))) }
      return true
    case .fraction where fraction.utf8.count == 2: return false
    case .afterSecond, .fraction, .blank: return consumeZone(byte)
    case .zoneHour:
      return field(byte, width: 2, 0...23, then: nil, .zoneColon) { $0.zone = $1 * 60 }
    case .zoneColon where byte == UInt8(ascii: ":"):
      (state, digits, number) = (.zoneMinute, 0, 0)
      return true
    case .zoneColon, .zoneMinute:
      state = .zoneMinute
      return field(byte, width: 2, 0...59, then: nil, .end) { $0.zone += $1 }
    case .end: return false
    case .seconds: return plain.consume(byte)
    }
  }

  /// The date, if the bytes so far are the text of one.
  var result: AbsoluteTime? {
    switch state {
    case .end, .zoneColon: return moment
    case .seconds: return plain.result.map { AbsoluteTime(seconds: $0) }
    default: return nil
    }
  }

  private var moment: AbsoluteTime {
    let clock = Int64(hour * 3600 + minute * 60 + second - zoneSign * zone * 60)
    let whole = Double(date.daysSince2001 * 86400 + clock)
    let rest = fraction.utf8.count > 2 ? Double(fraction) ?? 0 : 0
    return AbsoluteTime(seconds: whole + rest)
  }

  private mutating func consumeFirst(_ byte: UInt8) -> Bool {
    state = .year
    switch byte {
    case UInt8(ascii: "@"): state = .seconds
    case UInt8(ascii: "+"), UInt8(ascii: "-"):
      if byte == UInt8(ascii: "-") { (yearWidth, sign) = (3, -1) }
    default: return consumeYear(byte)
    }
    return true
  }

  /// Consumes a digit of the year, or the `-` behind it.
  private mutating func consumeYear(_ byte: UInt8) -> Bool {
    if byte == UInt8(ascii: "-"), digits >= yearWidth {
      date.year = sign * number
      (state, digits, number) = (.month, 0, 0)
      return true
    }
    guard byte.isDigit, digits < 10 else { return false }
    number = number * 10 + Int(byte & 15)
    digits += 1
    return number <= Self.lastYear
  }

  private mutating func consumeZone(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: " ") where state != .blank: state = .blank
    case UInt8(ascii: "Z"): state = .end
    case UInt8(ascii: "+"), UInt8(ascii: "-"):
      (state, zoneSign) = (.zoneHour, byte == UInt8(ascii: "-") ? -1 : 1)
    default: return false
    }
    return true
  }

  /// Consumes a digit of a number with `width` digits, or the byte that must follow the number.
  /// - Parameters:
  ///   - range: the values that the number may have.
  ///   - follower: the byte that must follow; nil if the next state begins right behind the number.
  ///   - next: the state behind the number and its follower.
  ///   - store: stores the number in the parser.
  private mutating func field(
    _ byte: UInt8, width: Int, _ range: ClosedRange<Int>, then follower: Unicode.Scalar?,
    _ next: State, store: (inout DateParser, Int) -> Void
  ) -> Bool {
    if digits == width {
      guard let follower, byte == UInt8(ascii: follower) else { return false }
      (state, digits, number) = (next, 0, 0)
      return true
    }
    guard byte.isDigit else { return false }
    number = number * 10 + Int(byte & 15)
    digits += 1
    guard digits == width else { return true }
    store(&self, number)
    guard range.contains(number) else { return false }
    if follower == nil { (state, digits, number) = (next, 0, 0) }
    return true
  }
}

extension UInt8 {
  /// Whether the byte is a decimal digit.
  @inline(__always) package var isDigit: Bool { self &- UInt8(ascii: "0") < 10 }

  /// Whether the byte is a letter of ASCII.
  @inline(__always) package var isLetter: Bool { (self | 0x20) &- UInt8(ascii: "a") < 26 }

  /// Whether the byte is a space, tab, newline or carriage return.
  @inline(__always) var isBlank: Bool { self == 32 || self == 10 || self == 9 || self == 13 }

  /// The value of the byte as a hexadecimal digit; nil if it is not one.
  @inline(__always) var hexValue: UInt8? {
    switch self {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): self - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): self - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): self - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}
