import Glibc
import PropertyList

/// Writes values as `-p` prints them: for people, not for programs.
enum PlainText {
  static func text(of value: Value) -> String { text(of: value, depth: 0) }

  private static func text(of value: Value, depth: Int) -> String {
    switch value {
    case .dictionary(let pairs):
      let lines = KeyOrder.sorted(pairs).map { key, value in
        "\"\(key)\" => \(text(of: value, depth: depth + 1))"
      }
      return container(lines, "{", "}", depth)
    case .array(let items):
      let lines = items.enumerated().map { "\($0) => \(text(of: $1, depth: depth + 1))" }
      return container(lines, "[", "]", depth)
    case .string(let text): return "\"\(text)\""
    case .boolean(let flag): return flag ? "true" : "false"
    case .integer(let number): return number.description
    case .real(let number): return cFormat("%.16g", number)
    case .single(let number): return cFormat("%.16g", Double(number))
    case .date, .uid: return ValueDescription.text(of: value, isAppleText: false)
    case .data(let bytes): return text(of: bytes)
    }
  }

  /// Returns a container with a line for each item.
  static func container(
    _ lines: [String], _ opening: String, _ closing: String, _ depth: Int, indent: String = "  "
  ) -> String {
    let outer = String(repeating: indent, count: depth)
    return opening + "\n" + lines.map { "\(outer)\(indent)\($0)\n" }.joined() + outer + closing
  }

  /// Returns the text of data. If there are more than 24 bytes, it has the first 16 and the last 8.
  private static func text(of bytes: [UInt8]) -> String {
    let head = "{length = \(bytes.count), bytes = 0x"
    guard bytes.count > 24 else { return head + bytes.hexadecimal + "}" }
    return head + bytes.prefix(16).hexadecimal + " ... " + bytes.suffix(8).hexadecimal + "}"
  }

  /// Formats one number like printf(3).
  static func cFormat(_ format: String, _ number: Double) -> String {
    var buffer = [CChar](repeating: 0, count: 400)
    let count = withVaList([number]) { vsnprintf(&buffer, buffer.count, format, $0) }
    return String(decoding: buffer.prefix(Int(count)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}

extension Value {
  /// The names of types that `-type` prints and `-expect` accepts.
  static let typeWords: Set<String> = [
    "bool", "integer", "float", "string", "array", "dictionary", "date", "data", "(any)",
  ]

  /// The name of the type that `-type` prints.
  var typeWord: String {
    switch kind {
    case .boolean: "bool"
    case .real: "float"
    case .uid: "(any)"
    case .integer, .string, .array, .dictionary, .date, .data: kind.rawValue
    }
  }

  /// The name of the type in messages, where the command of macOS uses different names.
  var caseWord: String {
    switch kind {
    case .boolean: "boolean"
    case .uid: "any"
    default: typeWord
    }
  }
}

/// The order in which keys are shown. It is the order that people expect: runs of digits by their
/// value, letters without regard to case.
enum KeyOrder {
  static func sorted(_ pairs: ValueDictionary) -> [(key: String, value: Value)] {
    pairs.map { (key: $0.key.string, value: $0.value) }
      .map { (rank: rank(of: $0.key), pair: $0) }
      .sorted { isBefore($0.rank, $0.pair.key, $1.rank, $1.pair.key) }
      .map(\.pair)
  }

  private static let punctuation = Array(
    "\t\n\u{B}\u{C}\r _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$".unicodeScalars)

  /// The rank of a character, or of a run of digits, in the order.
  private struct Rank: Comparable {
    var group: Int
    /// The digits without leading zeros; empty for a character.
    var number: String

    static func < (left: Rank, right: Rank) -> Bool {
      if left.group != right.group { return left.group < right.group }
      // Without leading zeros, the longer number is the larger one.
      return (left.number.utf8.count, left.number) < (right.number.utf8.count, right.number)
    }
  }

  private static func rank(of text: String) -> [Rank] {
    var ranks: [Rank] = []
    var rest = Array(text.unicodeScalars)[...]
    while let character = rest.first {
      let digits = rest.prefix { ("0"..."9").contains($0) }
      if !digits.isEmpty {
        var number = ""
        number.unicodeScalars.append(contentsOf: digits.drop { $0 == "0" })
        ranks.append(Rank(group: 1000, number: number))
        rest = rest.dropFirst(digits.count)
        continue
      }
      rest.removeFirst()
      if let place = punctuation.firstIndex(of: character) {
        ranks.append(Rank(group: place, number: ""))
      } else {
        let folded = character.properties.lowercaseMapping.unicodeScalars.first ?? character
        ranks.append(Rank(group: 2000 + Int(folded.value), number: ""))
      }
    }
    return ranks
  }

  /// Whether the left key is before the right one. Among keys of equal rank, the shorter one is
  /// first, and then lower case is before upper case.
  private static func isBefore(
    _ left: [Rank], _ leftText: String, _ right: [Rank], _ rightText: String
  ) -> Bool {
    if left != right { return left.lexicographicallyPrecedes(right) }
    let (one, other) = (leftText.utf8.count, rightText.utf8.count)
    return one != other ? one < other : leftText > rightText
  }
}
