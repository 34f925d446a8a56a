/// A time of the command line: how long something is to count.
enum TimeArgument {
  /// Reads how long something counts: seconds, or a number with s, m, h or d.
  static func nanoseconds(_ word: String) throws(Refusal) -> Int64 {
    let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3600, "d": 86_400]
    let unit = word.last.flatMap { units[$0] }
    let number = Int64(unit == nil ? word : String(word.dropLast()))
    let longest: Int64 = 366 * 86_400
    guard let number, number > 0, number <= longest, number * (unit ?? 1) <= longest else {
      throw .mistake(
        "\(word) is not a time: a number of seconds, or with m, h or d, a year at most")
    }
    return number * (unit ?? 1) * 1_000_000_000
  }
}
