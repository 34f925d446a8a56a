/// Reads dates that the calendar does not have, as CoreFoundation reads them in XML lists.
struct LenientDate {
  private var rest: Slice<UnsafeBufferPointer<UInt8>>

  /// Returns the time that a text of the form `2020-02-30T24:00:60Z` stands for in CoreFoundation,
  /// whatever its day, hour, minute and second are; nil for a text of another form.
  ///
  /// A day, hour, minute or second beyond the last one counts on. Month 13 is the next January, and
  /// any other month that does not exist is January.
  static func time(_ text: UnsafeBufferPointer<UInt8>) -> AbsoluteTime? {
    var date = LenientDate(rest: text[...])
    let sign = date.skip("-") ? -1 : 1
    guard let year = date.year(), let month = date.number(before: "-"),
      let day = date.number(before: "T"), let hour = date.number(before: ":"),
      let minute = date.number(before: ":"), let second = date.number(before: "Z"),
      date.rest.isEmpty
    else { return nil }
    let first = CivilDate(
      year: sign * year + (month == 13 ? 1 : 0), month: (1...12).contains(month) ? month : 1, day: 1
    )
    let days = first.daysSince2001 + Int64(day) - 1
    return AbsoluteTime(seconds: Double(days * 86400 + Int64(hour * 3600 + minute * 60 + second)))
  }

  /// Reads the year and the `-` behind it.
  private mutating func year() -> Int? {
    var (year, digits) = (0, 0)
    while let byte = rest.first, byte.isDigit {
      year = year * 10 + Int(byte & 15)
      digits += 1
      guard year <= Int(Int32.max) else { return nil }
      rest.removeFirst()
    }
    return digits > 0 && skip("-") ? year : nil
  }

  /// Reads a number of two digits and the byte behind it.
  private mutating func number(before follower: Unicode.Scalar) -> Int? {
    guard rest.count >= 3, rest.prefix(2).allSatisfy(\.isDigit) else { return nil }
    let number = rest.prefix(2).reduce(0) { $0 * 10 + Int($1 & 15) }
    rest.removeFirst(2)
    return skip(follower) ? number : nil
  }

  /// Skips the byte if it comes next.
  /// - Returns: whether it came.
  private mutating func skip(_ byte: Unicode.Scalar) -> Bool {
    guard rest.first == UInt8(ascii: byte) else { return false }
    rest.removeFirst()
    return true
  }
}
