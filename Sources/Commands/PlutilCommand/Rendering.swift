import PropertyList

/// Writes a value in one of the output formats.
struct Rendering {
  /// The path of the input, which generated source code is named after.
  let file: String
  /// The path of the result; `-` is standard output.
  let output: String
  /// Whether JSON has line breaks and indents.
  let isReadable: Bool
  /// The path of the value in its list, for messages.
  let keyPath: String

  func bytes(_ value: Value, _ format: OutputFormat) throws(Refusal) -> [UInt8] {
    switch format {
    case .xml, .unchanged: return Document.anyXML(value.inWholeSeconds)
    case .binary: return Document.binary(value)
    case .json: return Array(try JSONText.text(of: value, isReadable: isReadable).utf8)
    case .swift: return Array(try Literal.swift(value, file: file).utf8)
    case .objc: return Array(try Literal.objectiveC(value, file: file, output: output).utf8)
    case .raw: return try raw(value)
    case .type: return Array(value.typeWord.utf8)
    case .openStep: throw Refusal("Conversion to OpenStep format is not supported")
    }
  }

  /// Returns the header file that declares the Objective-C literal of the value.
  func header(_ value: Value) -> [UInt8] { Array(Literal.header(value, file: file).utf8) }

  /// Returns the text of a scalar, the number of elements of an array, or the keys of a dictionary.
  private func raw(_ value: Value) throws(Refusal) -> [UInt8] {
    switch value {
    case .boolean(let flag): return Array((flag ? "true" : "false").utf8)
    case .integer(let number): return Array(number.description.utf8)
    case .real(let number): return Array(PlainText.cFormat("%f", number).utf8)
    case .single(let number): return Array(PlainText.cFormat("%f", Double(number)).utf8)
    case .string(let text): return Array(text.utf8)
    case .date(let time): return Array(time.inWholeSeconds.text.utf8)
    case .data(let bytes): return Array(Base64.encode(bytes).utf8)
    case .array(let items): return Array("\(items.count)".utf8)
    case .dictionary(let pairs):
      return Array(KeyOrder.sorted(pairs).map(\.key).joined(separator: "\n").utf8)
    case .uid:
      throw Refusal("Value at \(keyPath) is a any type and cannot be extracted in raw format")
    }
  }
}

/// Writes JSON like the command of macOS: slashes are escaped, and there is no newline at the end.
enum JSONText {
  static func text(of value: Value, isReadable: Bool) throws(Refusal) -> String {
    guard value.kind == .array || value.kind == .dictionary else { throw refusal }
    return try text(value, isReadable ? 0 : nil)
  }

  private static let refusal = Refusal("Invalid object in plist for JSON format")

  /// Returns the JSON text of a value.
  /// - Parameter depth: the number of containers around the value; nil if there is no white space.
  private static func text(_ value: Value, _ depth: Int?) throws(Refusal) -> String {
    switch value {
    case .string(let text): return quoted(text)
    case .integer(let number): return number.description
    case .boolean(let flag): return flag ? "true" : "false"
    case .real(let number): return try text(number)
    case .single(let number): return try text(Double(number))
    case .array(let items):
      var parts: [String] = []
      for item in items { parts.append(try text(item, depth.map { $0 + 1 })) }
      return container(parts, "[", "]", depth)
    case .dictionary(let pairs):
      var parts: [String] = []
      for (key, item) in KeyOrder.sorted(pairs) {
        let colon = depth == nil ? ":" : " : "
        parts.append(quoted(key) + colon + (try text(item, depth.map { $0 + 1 })))
      }
      return container(parts, "{", "}", depth)
    case .date, .data, .uid: throw refusal
    }
  }

  private static func text(_ number: Double) throws(Refusal) -> String {
    guard number.isFinite else { throw refusal }
    let text = "\(number)"
    return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
  }

  private static func container(
    _ parts: [String], _ opening: String, _ closing: String, _ depth: Int?
  ) -> String {
    guard let depth else { return opening + parts.joined(separator: ",") + closing }
    let indent = String(repeating: "  ", count: depth)
    if parts.isEmpty { return "\(opening)\n\n\(indent)\(closing)" }
    return "\(opening)\n" + parts.map { "\(indent)  \($0)" }.joined(separator: ",\n")
      + "\n\(indent)\(closing)"
  }

  private static func quoted(_ text: String) -> String {
    var result = "\""
    for character in text.unicodeScalars {
      switch character {
      case "\"": result += "\\\""
      case "\\": result += "\\\\"
      case "/": result += "\\/"
      case "\u{8}": result += "\\b"
      case "\u{C}": result += "\\f"
      case "\n": result += "\\n"
      case "\r": result += "\\r"
      case "\t": result += "\\t"
      case _ where character.value < 0x20:
        let digits = String(character.value, radix: 16)
        result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: result.unicodeScalars.append(character)
      }
    }
    return result + "\""
  }
}
