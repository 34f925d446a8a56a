// The fast path for numbers and dates in the spelling that nearly every document uses. Other
// spellings are left to the scanners, which accept all of them.

/// A number that was spelled in plain decimal.
enum PlainNumber {
  case integer(WideInteger)
  case real(Double)

  /// The number as a value.
  var value: Value {
    switch self {
    case .integer(let number): .integer(number)
    case .real(let number): .real(number)
    }
  }
}

extension UnsafeBufferPointer<UInt8> {
  /// Returns the plain number at the index, and the index behind it; nil if there is none.
  ///
  /// A plain number is an optional minus sign and up to 18 digits, or up to 15 digits with a point
  /// between them. A double holds 15 digits exactly, so one division gives the correctly rounded
  /// real.
  @inline(__always)
  func plainNumber(at start: Int) -> (number: PlainNumber, end: Int)? {
    let negative = start < count && self[start] == UInt8(ascii: "-")
    let first = negative ? start &+ 1 : start
    var magnitude: Int64 = 0
    var index = endOfDigits(from: first, into: &magnitude)
    guard index > first, index &- first <= 18 else { return nil }
    guard index < count, self[index] == UInt8(ascii: ".") else {
      return (.integer(WideInteger(negative ? -magnitude : magnitude)), index)
    }
    let point = index
    index = endOfDigits(from: point &+ 1, into: &magnitude)
    let places = index &- point &- 1
    guard places > 0, index &- first <= 16 else { return nil }
    let number = Double(magnitude) / PowersOfTen.all[places]
    return (.real(negative ? -number : number), index)
  }

  /// Adds up to 19 digits to the number, and returns the index behind them.
  @inline(__always)
  private func endOfDigits(from start: Int, into number: inout Int64) -> Int {
    var index = start
    let last = Swift.min(count, start &+ 19)
    while index < last, self[index].isDigit {
      number = number &* 10 &+ Int64(self[index] & 15)
      index &+= 1
    }
    return index
  }

  /// The date whose text is all of the bytes, in the form `2026-11-21T07:20:00Z`; nil for other
  /// forms.
  var plainDate: AbsoluteTime? {
    guard count == 20, self[4] == 0x2D, self[7] == 0x2D, self[10] == UInt8(ascii: "T"),
      self[13] == 0x3A, self[16] == 0x3A, self[19] == UInt8(ascii: "Z"),
      let century = twoDigits(0), let year = twoDigits(2), let month = twoDigits(5),
      let day = twoDigits(8), let hour = twoDigits(11), let minute = twoDigits(14),
      let second = twoDigits(17), hour < 24, minute < 60, second < 60
    else { return nil }
    let date = CivilDate(year: 100 * century + year, month: month, day: day)
    guard date.isValid else { return nil }
    let clock = Int64(hour * 3600 + minute * 60 + second)
    return AbsoluteTime(seconds: Double(date.daysSince2001 * 86400 + clock))
  }

  @inline(__always)
  private func twoDigits(_ index: Int) -> Int? {
    let (tens, ones) = (self[index] &- 0x30, self[index &+ 1] &- 0x30)
    return tens < 10 && ones < 10 ? Int(tens) &* 10 &+ Int(ones) : nil
  }
}

/// The powers of ten up to 10^16, which a double holds exactly.
private enum PowersOfTen {
  static let all: [Double] = [
    1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
  ]
}
