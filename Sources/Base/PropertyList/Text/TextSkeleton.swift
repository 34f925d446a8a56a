/// Where the pairs of the root dictionary of a JSON or an old-style list are, by the punctuation
/// alone: what is in between need not be valid.
///
/// There is no skeleton of a list that ends too early, so one that is just being written is never
/// taken for whole. Nor is there one where quotes, brackets, separators or comments do not match.
struct TextSkeleton {
  private(set) var pairs: [PairPlace] = []
  private let bytes: UnsafeBufferPointer<UInt8>
  private let isJSON: Bool
  private let marks: Marks
  /// Whether the pairs have no braces around them, as in .strings files.
  private var isBare = false
  /// The next byte.
  private var index = 0

  /// The punctuation of arrays and pairs.
  private struct Marks {
    var opening, closing, assignment, separator: UInt8

    init(_ marks: StaticString) {
      let marks = UnsafeBufferPointer(start: marks.utf8Start, count: marks.utf8CodeUnitCount)
      (opening, closing, assignment, separator) = (marks[0], marks[1], marks[2], marks[3])
    }
  }

  /// - Parameter format: JSON or old-style. Use it while the bytes are there. Cost: O(bytes).
  init?(_ bytes: UnsafeBufferPointer<UInt8>, _ format: Format) {
    (self.bytes, isJSON) = (bytes, format == .json)
    marks = isJSON ? Marks("[]:,") : Marks("()=;")
    if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { index = 3 }
    guard skipBetween(), readPairs() else { return nil }
  }

  private mutating func readPairs() -> Bool {
    if isNext("{") { index += 1 } else if isJSON { return false } else { isBare = true }
    while true {
      guard skipBetween() else { return isBare && !pairs.isEmpty }
      if !isBare, isNext("}") {
        // JSON has no separator behind the last pair, which was read then.
        guard !isJSON || pairs.isEmpty else { return false }
        return endList()
      }
      guard let isLast = readPair() else { return false }
      if isLast { return endList() }
    }
  }

  /// Whether nothing follows the brace that is next.
  private mutating func endList() -> Bool {
    index += 1
    return !skipBetween() && index == bytes.count
  }

  /// Reads the next pair and what ends it.
  /// - Returns: whether it was the brace of the list, which comes next; nil where there is no pair.
  private mutating func readPair() -> Bool? {
    let start = index
    var assignment: Int?
    var open: [UInt8] = []
    while index < bytes.count {
      if let isWhole = skipQuoted() ?? skipComment() {
        guard isWhole else { return nil }
        continue
      }
      switch bytes[index] {
      case UInt8(ascii: "{"): open.append(UInt8(ascii: "}"))
      case marks.opening: open.append(marks.closing)
      case UInt8(ascii: "}") where open.isEmpty:
        // An old-style pair ends with a semicolon.
        return isJSON && add(start, assignment) ? true : nil
      case UInt8(ascii: "}"), marks.closing:
        guard open.popLast() == bytes[index] else { return nil }
      case marks.assignment where open.isEmpty: assignment = assignment ?? index
      case marks.separator where open.isEmpty:
        guard add(start, assignment) else { return nil }
        index += 1
        return false
      default: break
      }
      index += 1
    }
    return nil
  }

  /// Adds the pair that ends before the next byte.
  private mutating func add(_ start: Int, _ assignment: Int?) -> Bool {
    guard let assignment else {
      // `key;` of an old-style list: its value is the key.
      guard !isJSON else { return false }
      pairs.append(PairPlace(key: trimmed(start..<index), value: trimmed(start..<index)))
      return true
    }
    let value = trimmed(assignment + 1..<index)
    pairs.append(PairPlace(key: trimmed(start..<assignment), value: value))
    return true
  }

  /// The range without the blanks around it.
  private func trimmed(_ range: Range<Int>) -> Range<Int> {
    var (start, end) = (range.lowerBound, range.upperBound)
    while start < end, isBlank(bytes[start]) { start += 1 }
    while start < end, isBlank(bytes[end - 1]) { end -= 1 }
    return start..<end
  }

  private func isBlank(_ byte: UInt8) -> Bool {
    byte.isBlank || !isJSON && (byte == 11 || byte == 12)
  }

  /// Skips a string in quotes.
  /// - Returns: nil where none comes next; false where it does not end.
  private mutating func skipQuoted() -> Bool? {
    let quote = bytes[index]
    guard quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") && !isJSON else { return nil }
    index += 1
    while index < bytes.count, bytes[index] != quote {
      index += bytes[index] == UInt8(ascii: "\\") ? 2 : 1
    }
    index += 1
    return index <= bytes.count
  }

  /// Skips blanks and comments.
  /// - Returns: whether something else comes next.
  private mutating func skipBetween() -> Bool {
    while index < bytes.count {
      if isBlank(bytes[index]) {
        index += 1
      } else if skipComment() != true {
        return true
      }
    }
    return false
  }

  /// Skips an old-style comment. In a string without quotes (`a//b`), none begins.
  /// - Returns: nil where none comes next; false where it does not end.
  private mutating func skipComment() -> Bool? {
    guard !isJSON, isNext("/"), index == 0 || !bytes[index - 1].isPlain,
      index + 1 < bytes.count
    else { return nil }
    switch bytes[index + 1] {
    case UInt8(ascii: "/"):
      while index < bytes.count, bytes[index] != 10, bytes[index] != 13 { index += 1 }
      return true
    case UInt8(ascii: "*"):
      index += 2
      while index + 1 < bytes.count {
        if bytes[index] == UInt8(ascii: "*"), bytes[index + 1] == UInt8(ascii: "/") {
          index += 2
          return true
        }
        index += 1
      }
      return false
    default: return nil
    }
  }

  private func isNext(_ character: Unicode.Scalar) -> Bool {
    index < bytes.count && bytes[index] == UInt8(ascii: character)
  }
}
