/// Writes a value like the `description` of Apple's objects: as an old-style list with sorted keys,
/// indented by four spaces for each container. Numbers and data have the form of the descriptions
/// of CFNumber and NSData.
public struct ValueDescription {
  /// Whether everything but ASCII is escaped, as Apple's command does it.
  let isAppleText: Bool
  private var text = ""
  /// Whether the text is a single line.
  private var isLine = false

  /// Returns the text of a value that is shown on its own: a string has no quotes.
  public static func text(of value: Value, isAppleText: Bool) -> String {
    var description = ValueDescription(isAppleText: isAppleText)
    if case .string(let string) = value {
      description.text = string
    } else {
      description.append(value, depth: 0)
    }
    return isAppleText ? AppleText.nonLossyASCII(description.text) : description.text
  }

  /// Returns the text of a value in one line. Strings, numbers and dates have quotes unless they
  /// are made of letters and digits.
  public static func line(of value: Value, _ isAppleText: Bool) -> String {
    var description = ValueDescription(isAppleText: isAppleText)
    description.isLine = true
    description.append(value, depth: 1)
    return isAppleText ? AppleText.nonLossyASCII(description.text) : description.text
  }

  /// Returns the lines of two values as the sides of a change; `(none)` for nil. Where values differ
  /// and their lines do not, their types say how, or JSON does: digits of reals, types of members.
  public static func lines(
    from old: Value?, to new: Value?, _ isAppleText: Bool = false
  ) -> (old: String, new: String) {
    let lines = [old, new].map { $0.map { line(of: $0, isAppleText) } ?? "(none)" }
    guard let old, let new, lines[0] == lines[1], old != new else { return (lines[0], lines[1]) }
    guard old.kind == new.kind else {
      return ("\(lines[0]) (\(old.kind))", "\(lines[1]) (\(new.kind))")
    }
    return (Document.lineOfJSON(old), Document.lineOfJSON(new))
  }

  private init(isAppleText: Bool) { self.isAppleText = isAppleText }

  private mutating func append(_ value: Value, depth: Int) {
    switch value {
    case .array(let elements):
      appendContainer(elements, "(", ")", depth) { $0.append($1, depth: $2) }
    case .dictionary(let entries):
      appendContainer(entries.sorted { $0.key < $1.key }, "{", "}", depth) {
        description, entry, depth in
        description.appendQuoted(entry.key.string)
        description.text += " = "
        description.append(entry.value, depth: depth)
      }
    case .string(let string): appendQuoted(string)
    case .data(let data): text += Self.text(of: data)
    default: depth == 0 ? text += Self.plain(value) : appendQuoted(Self.plain(value))
    }
  }

  /// Appends a container. The indentation of a nested container is repeated before its bracket, in
  /// the middle of the line, as in Apple's text.
  private mutating func appendContainer<Element>(
    _ elements: [Element], _ opening: String, _ closing: String, _ depth: Int,
    _ append: (inout ValueDescription, Element, Int) -> Void
  ) {
    let isDictionary = opening == "{"
    let newLine = isLine ? " " : "\n"
    text += indent(depth) + opening + newLine
    for (index, element) in elements.enumerated() {
      text += indent(depth + 1)
      append(&self, element, depth + 1)
      text += (isDictionary ? ";" : index + 1 < elements.count ? "," : "") + newLine
    }
    text += indent(depth) + closing
  }

  private func indent(_ depth: Int) -> String {
    isLine ? "" : String(repeating: "    ", count: depth)
  }

  /// Appends a string, with quotes unless it is made of ASCII letters and digits.
  private mutating func appendQuoted(_ string: String) {
    let isPlain = !string.isEmpty && string.utf8.allSatisfy { $0.isLetter || $0.isDigit }
    if isPlain { return text += string }
    text += "\""
    for scalar in string.unicodeScalars { text += AppleText.escaped(scalar, isAppleText) }
    text += "\""
  }

  /// Returns the text of a number, a boolean, a date, a UID or a string.
  private static func plain(_ value: Value) -> String {
    switch value {
    case .integer(let number): number.description
    case .real(let number): text(of: number)
    case .single(let number): text(of: Double(number))
    case .boolean(let flag): flag ? "1" : "0"
    case .date(let date): text(of: date)
    case .uid(let number): "<CFKeyedArchiverUID>{value = \(number)}"
    case .string(let string): string
    case .data, .array, .dictionary: ""
    }
  }

  /// Returns the shortest text that reads back as the number, in single precision if that holds the
  /// number exactly. A whole number has no point.
  private static func text(of number: Double) -> String {
    let single = Float(number)
    // The text goes through Double, because the text of a Float has an exponent for smaller
    // numbers.
    let shortest = Double(single) == number ? Double("\(single)") : nil
    let text = "\(shortest ?? number)"
    return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
  }

  /// Returns a date as `2026-11-21 07:20:00 +0000`: whole seconds in UTC.
  private static func text(of date: AbsoluteTime) -> String {
    let text = date.inWholeSeconds.text
    guard text.hasSuffix("Z") else { return text }
    return text.dropLast().replacing("T", with: " ", maxReplacements: 1) + " +0000"
  }

  /// Returns data as `{length = 3, bytes = 0x010203}`. If there are more than 24 bytes, the text
  /// has the first 16 and the last 8.
  private static func text(of data: [UInt8]) -> String {
    let head = "{length = \(data.count), bytes = 0x"
    guard data.count > 24 else { return head + data.hexadecimal + "}" }
    let words = [0, 4, 8, 12].map { data[$0..<$0 + 4].hexadecimal }
    let last = [data.count - 8, data.count - 4].map { data[$0..<$0 + 4].hexadecimal }
    return head + words.joined(separator: " ") + " ... " + last.joined(separator: " ") + " }"
  }
}

extension Collection<UInt8> {
  /// The bytes as hexadecimal digits, two for each.
  public var hexadecimal: String {
    map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }
}

/// The forms in which Apple's programs write text in ASCII.
enum AppleText {
  /// Returns a character of a quoted string in a description, escaped if that is necessary.
  /// - Parameter isASCII: whether characters that are not ASCII are escaped too.
  static func escaped(_ scalar: Unicode.Scalar, _ isASCII: Bool) -> String {
    switch scalar {
    case "\"": return "\\\""
    case "\\": return "\\\\"
    case "\n": return "\\n"
    case "\t": return "\\t"
    case "\r": return "\\r"
    case _ where scalar.value < 0x20 || scalar.value == 0x7F:
      return "\\" + octal(scalar.value)
    case _ where isASCII && !scalar.isASCII:
      return scalar.utf16.map { "\\U" + hex($0) }.joined()
    default: return String(scalar)
    }
  }

  /// Returns the text in NSNonLossyASCIIStringEncoding: `\340` for Latin-1, `\u20ac` for other
  /// characters, and `\\` for a backslash.
  static func nonLossyASCII(_ text: String) -> String {
    text.utf16.map { unit in
      switch unit {
      case UInt16(UInt8(ascii: "\\")): "\\\\"
      case 0x09, 0x0A, 0x0D, 0x20..<0x7F: String(UnicodeScalar(UInt8(unit)))
      case ..<0x100: "\\" + octal(UInt32(unit))
      default: "\\u" + hex(unit)
      }
    }.joined()
  }

  private static func octal(_ number: UInt32) -> String {
    let text = String(number, radix: 8)
    return String(repeating: "0", count: max(0, 3 - text.utf8.count)) + text
  }

  private static func hex(_ unit: UInt16) -> String {
    let text = String(unit, radix: 16)
    return String(repeating: "0", count: 4 - text.utf8.count) + text
  }
}
