import PropertyList

/// What is wrong with a text of another system.
package struct Malformed: Error {
  /// What is wrong, without a full stop.
  package let reason: String

  init(_ reason: String) { self.reason = reason }
}

/// Reads the text form of a GVariant, in which dconf and GSettings print values.
///
/// Integers of every size, and handles, become integers; `double` a real; strings, object paths and
/// signatures strings; arrays of bytes data; other arrays, and tuples, arrays; dictionaries with
/// strings as keys dictionaries, and others arrays of pairs; a variant is what is in it.
///
/// As `kept`, nothing of a type is lost: arrays of bytes are arrays of integers, and what JSON has no
/// form for (variants, handles, infinities) is a string with its text, as is a value that has a maybe
/// type, or a dictionary with other keys, anywhere. So the module for GSettings programs keeps
/// values in a mount, or reads them.
///
/// It reads scalars, not characters: a quote ends a string also before a combining mark.
///
/// Source: "GVariant Text Format" of the GLib manual.
package struct VariantText {
  private typealias Text = Substring.UnicodeScalarView

  private var rest: Text
  private let isKept: Bool
  /// Whether what JSON has no form for was there, and its type is only said once for several: a maybe
  /// type, or a dictionary without strings as keys; but in a variant.
  private var isText = false

  /// Returns the value of a text; nil for `nothing`, which is no value.
  package static func value(of text: some StringProtocol) throws(Malformed) -> Value? {
    try value(of: text, isKept: false)
  }

  /// Returns the value of a text in the form in which programs that use GSettings have it in a
  /// mount.
  package static func kept(_ text: some StringProtocol) throws(Malformed) -> Value {
    guard let value = try value(of: text, isKept: true) else { throw Malformed("it has no value") }
    return value
  }

  private static func value(
    of text: some StringProtocol, isKept: Bool
  ) throws(Malformed) -> Value? {
    let whole = Substring(text).unicodeScalars
    var parser = VariantText(rest: whole, isKept: isKept)
    let value = try parser.value(depth: 0)
    let rest = parser.rest
    parser.skipBlanks()
    guard parser.rest.isEmpty else { throw Malformed("there is more: \(Substring(rest))") }
    guard isKept, parser.isText else { return value }
    return .string(String(Substring(whole[..<rest.startIndex])))
  }

  private static let deepest = 100
  private static let types: Set<String> = [
    "boolean", "byte", "int16", "uint16", "int32", "uint32", "handle", "int64", "uint64", "double",
    "string", "objectpath", "signature",
  ]

  private mutating func skipBlanks() { rest = rest.drop(while: \.properties.isWhitespace) }

  private mutating func skip(_ word: Unicode.Scalar) -> Bool {
    skipBlanks()
    guard rest.first == word else { return false }
    rest.removeFirst()
    return true
  }

  private mutating func word() -> String {
    skipBlanks()
    let ends = ",:]})>".unicodeScalars
    let word = rest.prefix { !$0.properties.isWhitespace && !ends.contains($0) }
    rest = rest.dropFirst(word.count)
    return String(Substring(word))
  }

  private mutating func value(depth: Int) throws(Malformed) -> Value? {
    skipBlanks()
    let start = rest
    let value = try parse(depth)
    guard isKept, Self.hasOtherForm(start, value) else { return value }
    return .string(String(Substring(start[..<rest.startIndex])))
  }

  /// Whether JSON has no form for the value with that text.
  private static func hasOtherForm(_ text: Text, _ value: Value?) -> Bool {
    switch text.first {
    case "<", "h": return true
    case "@": return Substring(text).hasPrefix("@h ")
    default:
      if case .real(let number)? = value { return !number.isFinite }
      return false
    }
  }

  private mutating func parse(_ depth: Int) throws(Malformed) -> Value? {
    guard depth < Self.deepest else { throw Malformed("it is nested too deep") }
    switch rest.first {
    case nil: throw Malformed("it ends too early")
    case "'", "\"": return .string(try string())
    case "[": return try array(depth)
    case "(": return .array(try elements("(", ")", depth).compactMap { $0 })
    case "{": return try dictionary(depth)
    case "<":
      _ = skip("<")
      let wasText = isText
      let inner = try value(depth: depth + 1)
      guard skip(">") else { throw Malformed("expected >") }
      isText = wasText
      return inner
    case "@":
      let type = String(Substring(rest.prefix { !$0.properties.isWhitespace }))
      rest = rest.dropFirst(type.unicodeScalars.count)
      isText = isText || VariantType.isText(type)
      let inner = try value(depth: depth + 1)
      return type == "@ay" && !isKept ? Self.data(inner) ?? inner : inner
    case "b" where rest.dropFirst().first == "'" || rest.dropFirst().first == "\"":
      rest.removeFirst()
      let bytes = try bytes() + [0]
      return isKept ? .array(bytes.map { .integer(WideInteger(UInt64($0))) }) : .data(bytes)
    default: return try scalar(depth)
    }
  }

  private mutating func scalar(_ depth: Int) throws(Malformed) -> Value? {
    let word = word()
    switch word {
    case "true", "false": return .boolean(word == "true")
    case "nothing", "just":
      isText = true
      return word == "just" ? try value(depth: depth + 1) : nil
    case _ where Self.types.contains(word): return try value(depth: depth + 1)
    default: break
    }
    let isHex = word.hasPrefix("0x") || word.hasPrefix("-0x")
    if isHex, let number = Int64(word.replacing("0x", with: ""), radix: 16) {
      return .integer(WideInteger(number))
    }
    // From 2^63 on.
    if isHex, let number = UInt64(word.dropFirst(2), radix: 16) {
      return .integer(WideInteger(number))
    }
    if let number = Int64(word) { return .integer(WideInteger(number)) }
    if let number = UInt64(word) { return .integer(WideInteger(number)) }
    if let number = Double(word) { return .real(number) }
    throw Malformed("\(word) is not a value")
  }

  // MARK: - Containers

  private mutating func elements(
    _ begin: Unicode.Scalar, _ end: Unicode.Scalar, _ depth: Int
  ) throws(Malformed) -> [Value?] {
    _ = skip(begin)
    var elements: [Value?] = []
    while !skip(end) {
      elements.append(try value(depth: depth + 1))
      if skip(",") { continue }
      guard skip(end) else { throw Malformed("expected \(end)") }
      break
    }
    return elements
  }

  private mutating func array(_ depth: Int) throws(Malformed) -> Value {
    let first = rest.dropFirst().drop(while: \.properties.isWhitespace)
    let isBytes = Substring(first).hasPrefix("byte ")
    let values = Value.array(try elements("[", "]", depth).compactMap { $0 })
    return isBytes && !isKept ? Self.data(values) ?? values : values
  }

  private static func data(_ value: Value?) -> Value? {
    guard case .array(let elements)? = value else { return nil }
    let bytes = elements.compactMap { element -> UInt8? in
      guard case .integer(let number) = element else { return nil }
      return number.unsigned.flatMap { UInt8(exactly: $0) }
    }
    return bytes.count == elements.count ? .data(bytes) : nil
  }

  private mutating func dictionary(_ depth: Int) throws(Malformed) -> Value {
    _ = skip("{")
    var pairs: [(key: Value, value: Value)] = []
    while !skip("}") {
      skipBlanks()
      let key = try parse(depth + 1)
      guard skip(":") || skip(",") else { throw Malformed("expected : after a key") }
      if let value = try value(depth: depth + 1), let key { pairs.append((key, value)) }
      if skip(",") { continue }
      guard skip("}") else { throw Malformed("expected }") }
      break
    }
    var values: ValueDictionary = [:]
    for pair in pairs {
      guard case .string(let key) = pair.key else {
        isText = true
        return .array(pairs.map { .array([$0.key, $0.value]) })
      }
      values[Key(key)] = pair.value
    }
    return .dictionary(values)
  }

  // MARK: - Strings

  private mutating func string() throws(Malformed) -> String {
    guard let quote = rest.popFirst() else { throw Malformed("it ends too early") }
    var text = ""
    while let character = rest.popFirst() {
      if character == quote { return text }
      guard character == "\\" else {
        text.unicodeScalars.append(character)
        continue
      }
      text.unicodeScalars.append(try escaped())
    }
    throw Malformed("a string does not end")
  }

  /// Reads a string of bytes, in which an escape may be the octal number of one.
  private mutating func bytes() throws(Malformed) -> [UInt8] {
    let quote = rest.popFirst()
    var bytes: [UInt8] = []
    while let character = rest.popFirst() {
      if character == quote { return bytes }
      let digits = rest.prefix(3).prefix { ("0"..."7").contains($0) }
      if character != "\\" {
        bytes += Array(UTF8.encode(character) ?? .init())
      } else if let byte = UInt8(Substring(digits), radix: 8) {
        bytes.append(byte)
        rest = rest.dropFirst(digits.count)
      } else {
        bytes += Array(UTF8.encode(try escaped()) ?? .init())
      }
    }
    throw Malformed("a string does not end")
  }

  private mutating func escaped() throws(Malformed) -> Unicode.Scalar {
    guard let character = rest.popFirst() else { throw Malformed("a string does not end") }
    let simple: [Unicode.Scalar: Unicode.Scalar] = [
      "n": "\n", "t": "\t", "r": "\r", "a": "\u{7}", "b": "\u{8}", "f": "\u{C}", "v": "\u{B}",
    ]
    if let known = simple[character] { return known }
    guard character == "u" || character == "U" else { return character }
    let digits = Substring(rest.prefix(character == "u" ? 4 : 8))
    rest = rest.dropFirst(digits.unicodeScalars.count)
    guard let scalar = UInt32(digits, radix: 16).flatMap({ Unicode.Scalar($0) }) else {
      throw Malformed("\\\(character)\(digits) is not a character")
    }
    return scalar
  }
}
