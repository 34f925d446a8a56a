import PreferenceSchemas
import PropertyList
import SystemCalls

/// Values as texts of one line.
enum ValueLine {
  /// What stands in the place of a secret.
  static let mask = "(secret)"
  /// The most bytes of a value's text in a row.
  private static let most = 512

  /// The beginning of a value's text, for a row. Cost: O(the value) for containers, else O(1).
  static func short(_ value: Value) -> String {
    switch value {
    case .string(""): return "\"\""
    case .string(let text): return printable(text.utf8.prefix(most))
    case .data(let bytes): return "\(bytes.count) bytes \(bytes.prefix(32).hexadecimal)"
    case .array, .dictionary:
      return printable(ValueDescription.line(of: value, false).utf8.prefix(most))
    case .integer, .real, .single, .boolean, .date, .uid: return scalar(value)
    }
  }

  /// The hash of a value. Cost: O(the value).
  static func hash(of value: Value) -> UInt64 {
    switch value {
    case .string(let text): StableHash.of(text.utf8)
    case .data(let bytes): StableHash.of(bytes)
    default: StableHash.of(Document.binary(value))
    }
  }

  private static func printable(_ bytes: some Collection<UInt8>) -> String {
    var text = String(decoding: bytes, as: UTF8.self)
    // The last character may be cut.
    if bytes.count == most, text.hasSuffix("\u{FFFD}") { text.removeLast() }
    return text.printable()
  }

  private static func scalar(_ value: Value) -> String {
    String(decoding: ValueText.canonical(value).dropLast(), as: UTF8.self)
  }

  /// The text that is edited in a line; nil if it has several lines, or is too long, or is a
  /// container.
  static func editable(_ value: Value) -> String? {
    switch value {
    case .array, .dictionary: return nil
    case .data(let bytes):
      return bytes.count <= LineEditor.longest / 2 ? bytes.hexadecimal : nil
    case .string(let text):
      let isShort = text.utf8.count <= LineEditor.longest
      return isShort && !text.unicodeScalars.contains("\n") ? text : nil
    case .integer, .real, .single, .boolean, .date, .uid: return scalar(value)
    }
  }

  /// The value that a line means, or why it is not the text of one.
  static func value(of line: String, as kind: Kind) -> Result<Value, Refusal> {
    switch kind {
    case .string: return .success(.string(line))
    case .data: return data(line)
    default: break
    }
    let bytes = Array(line.utf8)
    if let value = Recogniser.value(of: bytes, kind: kind) { return .success(value) }
    let form = kind == .date ? ", as in 2026-11-21T07:20:00Z" : ""
    return .failure(Refusal(sentence: "the text is not \(kind.phrase)\(form)"))
  }

  private static func data(_ line: String) -> Result<Value, Refusal> {
    let digits = line.filter { !$0.isWhitespace }.utf8.map { digit($0) }
    guard !digits.contains(nil), digits.count % 2 == 0 else {
      return .failure(
        Refusal(sentence: "data is written with two hexadecimal digits for each byte"))
    }
    let known = digits.compactMap { $0 }
    return .success(
      .data(stride(from: 0, to: known.count, by: 2).map { known[$0] << 4 | known[$0 + 1] }))
  }

  private static func digit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case 0x30...0x39: byte - 0x30
    case 0x61...0x66: byte - 0x57
    case 0x41...0x46: byte - 0x37
    default: nil
    }
  }

  /// Why a text is not that of a value.
  struct Refusal: Error, Equatable {
    let sentence: String
  }
}
