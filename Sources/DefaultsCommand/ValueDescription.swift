import PropertyList

/// The text of a value as Apple's `description` has it: an old-style list, keys sorted, four blanks deeper
/// for each container; numbers and data as CFNumber and NSData describe themselves.
struct ValueDescription {
  /// Whether everything but ASCII is escaped, as Apple's command does it.
  let isAppleText: Bool
  private var text = ""
  private var isLine = false

  /// The value alone: strings without quotes.
  static func text(of value: Value, isAppleText: Bool) -> String {
    var description = ValueDescription(isAppleText: isAppleText)
    if case .string(let string) = value {
      description.text = string
    } else {
      description.append(value, depth: 0)
    }
    return isAppleText ? AppleText.nonLossyASCII(description.text) : description.text
  }

  /// The value in one line: strings in quotes where they are in containers.
  static func line(of value: Value, _ isAppleText: Bool) -> String {
    var description = ValueDescription(isAppleText: isAppleText)
    description.isLine = true
    description.append(value, depth: 1)
    return isAppleText ? AppleText.nonLossyASCII(description.text) : description.text
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

  /// A nested container begins at its own depth, on the line that it is on.
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

  private mutating func appendQuoted(_ string: String) {
    let isPlain =
      !string.isEmpty
      && string.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "a")...UInt8(ascii: "z"):
          true
        default: false
        }
      }
    if isPlain { return text += string }
    text += "\""
    for scalar in string.unicodeScalars { text += AppleText.escaped(scalar, isAppleText) }
    text += "\""
  }

  /// Numbers, booleans and dates.
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

  /// The shortest text that reads back, as single precision where the number is one; no point without need.
  private static func text(of number: Double) -> String {
    let single = Float(number)
    // Single precision has an exponent earlier.
    let shortest = Double(single) == number ? Double("\(single)") : nil
    let text = "\(shortest ?? number)"
    return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
  }

  /// `2026-11-21 07:20:00 +0000`: whole seconds of UTC.
  private static func text(of date: AbsoluteTime) -> String {
    let text = date.inWholeSeconds.text
    guard text.hasSuffix("Z") else { return text }
    return text.dropLast().replacing("T", with: " ", maxReplacements: 1) + " +0000"
  }

  /// `{length = 3, bytes = 0x010203}`; of more than 24 bytes the first 16 and the last 8.
  private static func text(of data: [UInt8]) -> String {
    let head = "{length = \(data.count), bytes = 0x"
    guard data.count > 24 else { return head + hex(data[...]) + "}" }
    let words = [0, 4, 8, 12].map { hex(data[$0..<$0 + 4]) }
    let last = [data.count - 8, data.count - 4].map { hex(data[$0..<$0 + 4]) }
    return head + words.joined(separator: " ") + " ... " + last.joined(separator: " ") + " }"
  }

  private static func hex(_ bytes: ArraySlice<UInt8>) -> String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }
}

/// Apple's ways to write text in ASCII.
enum AppleText {
  /// A character of a quoted string in a description.
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

  /// NSNonLossyASCIIStringEncoding: `\340` for Latin-1, `\u20ac` for the rest, `\\`.
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
