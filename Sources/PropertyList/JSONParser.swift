/// Reads JSON (RFC 8259) in pieces.
///
/// A number with a point or an exponent is a real, every other an integer; integers beyond
/// -2^63...2^64-1 and reals beyond a double are refused rather than rounded. So are `null`,
/// which no property list holds, keys that stand twice, and text after the value.
struct JSONParser: DocumentParser {
  private enum State {
    case value, firstElement, firstKey, key, colon, separator
    case string, escape, unicode, number, literal
  }

  private var state = State.value
  private var builder: ValueBuilder
  private var position = TextPosition()
  private var utf8 = UTF8Validator()
  /// The bytes of the string, number or literal so far.
  private var token: [UInt8] = []
  private var tokenIsKey = false
  private var codeUnit: UInt16 = 0
  private var hexDigits = 0
  private var highSurrogate: UInt16?

  init(limits: Limits = .standard) { builder = ValueBuilder(limits: limits) }

  mutating func feed(_ bytes: UnsafeBufferPointer<UInt8>) throws(FormatError) {
    guard utf8.feed(bytes) else { throw failure("text that is not UTF-8") }
    var index = 0
    while index < bytes.count {
      if state == .string {
        let end =
          bytes[index...].firstIndex { $0 == 0x22 || $0 == 0x5C || $0 < 0x20 } ?? bytes.count
        if end > index {
          try endSurrogate()
          token.append(contentsOf: bytes[index..<end])
          position.offset += end - index
          index = end
          continue
        }
      }
      try take(bytes[index])
      position.pass(bytes[index])
      index += 1
    }
  }

  func result() throws(FormatError) -> Value {
    if state == .number, builder.depth == 0 { return try number() }
    guard state == .separator, let root = builder.root else {
      throw failure("the text ends too early")
    }
    return root
  }

  private func failure(_ reason: String) -> FormatError {
    FormatError(.json, offset: position.offset, line: position.line, reason)
  }

  private mutating func take(_ byte: UInt8) throws(FormatError) {
    switch state {
    case .string: try takeInString(byte)
    case .escape: try takeEscape(byte)
    case .unicode: try takeHexDigit(byte)
    case .number: try takeInNumber(byte)
    case .literal: try takeInLiteral(byte)
    case _ where byte.isBlank: break
    case .value: try beginValue(byte)
    case .firstElement where byte == UInt8(ascii: "]"): try end(.array)
    case .firstElement: try beginValue(byte)
    case .firstKey where byte == UInt8(ascii: "}"): try end(.dictionary)
    case .firstKey, .key:
      guard byte == UInt8(ascii: "\"") else { throw failure("expected a key in quotes") }
      beginString(isKey: true)
    case .colon:
      guard byte == UInt8(ascii: ":") else { throw failure("expected ':' after a key") }
      state = .value
    case .separator: try takeSeparator(byte)
    }
  }

  private mutating func takeSeparator(_ byte: UInt8) throws(FormatError) {
    switch (builder.open, byte) {
    case (.array, UInt8(ascii: ",")): state = .value
    case (.array, UInt8(ascii: "]")): try end(.array)
    case (.dictionary, UInt8(ascii: ",")): state = .key
    case (.dictionary, UInt8(ascii: "}")): try end(.dictionary)
    case (.array, _): throw failure("expected ',' or ']'")
    case (.dictionary, _): throw failure("expected ',' or '}'")
    case (nil, _): throw failure("text after the end of the value")
    }
  }

  private mutating func beginValue(_ byte: UInt8) throws(FormatError) {
    switch byte {
    case UInt8(ascii: "{"): try begin(.dictionary, then: .firstKey)
    case UInt8(ascii: "["): try begin(.array, then: .firstElement)
    case UInt8(ascii: "\""): beginString(isKey: false)
    case UInt8(ascii: "t"), UInt8(ascii: "f"): (state, token) = (.literal, [byte])
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
      (state, token) = (.number, [])
      try takeInNumber(byte)
    case UInt8(ascii: "n"): throw failure("null is no property list value")
    default: throw failure("expected a value")
    }
  }

  private mutating func begin(
    _ container: ValueBuilder.Container, then next: State
  ) throws(FormatError) {
    do { try builder.begin(container) } catch { throw failure(error.reason) }
    state = next
  }

  private mutating func end(_ container: ValueBuilder.Container) throws(FormatError) {
    do { try builder.end(uniqueKeys: true) } catch { throw failure(error.reason) }
    state = .separator
  }

  private mutating func add(_ value: Value) throws(FormatError) {
    do { try builder.add(value) } catch { throw failure(error.reason) }
    state = .separator
  }
}

// MARK: - Strings

extension JSONParser {
  private mutating func beginString(isKey: Bool) {
    token.removeAll(keepingCapacity: true)
    tokenIsKey = isKey
    state = .string
  }

  private mutating func takeInString(_ byte: UInt8) throws(FormatError) {
    if byte == UInt8(ascii: "\\") {
      state = .escape
      return
    }
    try endSurrogate()
    guard byte == UInt8(ascii: "\"") else { throw failure("a control character inside a string") }
    let text = String(decoding: token, as: UTF8.self)
    if tokenIsKey {
      builder.add(key: Key(text))
      state = .colon
    } else {
      try add(.string(text))
    }
  }

  private mutating func takeEscape(_ byte: UInt8) throws(FormatError) {
    if byte == UInt8(ascii: "u") {
      (state, hexDigits, codeUnit) = (.unicode, 0, 0)
      return
    }
    try endSurrogate()
    guard let character = Self.escapes[byte] else { throw failure("an unknown escape") }
    token.append(character)
    state = .string
  }

  private static let escapes: [UInt8: UInt8] = [
    UInt8(ascii: "\""): 0x22, UInt8(ascii: "\\"): 0x5C, UInt8(ascii: "/"): 0x2F,
    UInt8(ascii: "b"): 8, UInt8(ascii: "f"): 12, UInt8(ascii: "n"): 10, UInt8(ascii: "r"): 13,
    UInt8(ascii: "t"): 9,
  ]

  private mutating func takeHexDigit(_ byte: UInt8) throws(FormatError) {
    guard let digit = byte.hexValue else { throw failure("expected four hexadecimal digits") }
    codeUnit = codeUnit << 4 | UInt16(digit)
    hexDigits += 1
    guard hexDigits == 4 else { return }
    state = .string
    switch (highSurrogate, codeUnit) {
    case (nil, 0xD800...0xDBFF): highSurrogate = codeUnit
    case (let high?, 0xDC00...0xDFFF):
      highSurrogate = nil
      append(scalar: 0x10000 + UInt32(high - 0xD800) << 10 + UInt32(codeUnit - 0xDC00))
    case (.some, _), (nil, 0xDC00...0xDFFF): throw failure("half of a surrogate pair")
    default: append(scalar: UInt32(codeUnit))
    }
  }

  private mutating func append(scalar number: UInt32) {
    guard let scalar = Unicode.Scalar(number) else { return }
    token.append(contentsOf: Array(String(Character(scalar)).utf8))
  }

  private func endSurrogate() throws(FormatError) {
    if highSurrogate != nil { throw failure("half of a surrogate pair") }
  }
}

// MARK: - Numbers and literals

extension JSONParser {
  private mutating func takeInLiteral(_ byte: UInt8) throws(FormatError) {
    token.append(byte)
    let word: StaticString = token.first == UInt8(ascii: "t") ? "true" : "false"
    guard token.count <= word.utf8CodeUnitCount, byte == word.utf8Start[token.count - 1] else {
      throw failure("expected \(word)")
    }
    if token.count == word.utf8CodeUnitCount { try add(.boolean(token.count == 4)) }
  }

  private mutating func takeInNumber(_ byte: UInt8) throws(FormatError) {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"),
      UInt8(ascii: "+"), UInt8(ascii: "e"), UInt8(ascii: "E"):
      guard token.count < Self.longestNumber, Self.follows(byte, token) else {
        throw failure("expected a number")
      }
      token.append(byte)
    default:
      try add(try number())
      try take(byte)
    }
  }

  /// Bytes; the longest exact decimal form of a double has 1,077.
  private static var longestNumber: Int { 1100 }

  /// Whether the byte may follow in RFC 8259's number.
  private static func follows(_ byte: UInt8, _ token: [UInt8]) -> Bool {
    let hasExponent = token.contains { $0 | 0x20 == UInt8(ascii: "e") }
    let isLeadingZero = token == [48] || token == [45, 48]
    switch (token.last, byte) {
    case (nil, UInt8(ascii: "-")): return true
    case (_, _) where byte.isDigit: return !isLeadingZero
    case (let last?, UInt8(ascii: ".")):
      return last.isDigit && !hasExponent && !token.contains(UInt8(ascii: "."))
    case (let last?, UInt8(ascii: "e")), (let last?, UInt8(ascii: "E")):
      return last.isDigit && !hasExponent
    case (let last?, UInt8(ascii: "+")), (let last?, UInt8(ascii: "-")):
      return last | 0x20 == UInt8(ascii: "e")
    default: return false
    }
  }

  private func number() throws(FormatError) -> Value {
    guard token.last?.isDigit == true else { throw failure("expected a digit") }
    if token.allSatisfy({ $0.isDigit || $0 == UInt8(ascii: "-") }) {
      guard let integer = WideInteger(decimal: token) else {
        throw failure("an integer beyond 64 bits")
      }
      return .integer(integer)
    }
    guard let real = Double(String(decoding: token, as: UTF8.self)), real.isFinite else {
      throw failure("a number beyond the range of a real")
    }
    return .real(real)
  }
}
