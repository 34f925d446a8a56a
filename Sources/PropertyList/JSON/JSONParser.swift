/// Reads JSON (RFC 8259) in pieces.
///
/// A number with a point or an exponent is a real, every other an integer; integers beyond
/// -2^63...2^64-1 and reals beyond a double are refused rather than rounded. So are `null`,
/// which no property list holds, keys that stand twice, and text after the value.
struct JSONParser: DocumentParser {
  enum State {
    case value, firstElement, firstKey, key, colon, separator
    case string, escape, unicode, number, literal
  }

  var state = State.value
  var builder: ValueBuilder
  var position = TextPosition()
  var utf8 = UTF8Validator()
  /// The bytes of the string, number or literal so far.
  var token: [UInt8] = []
  var tokenIsKey = false
  var codeUnit: UInt16 = 0
  var hexDigits = 0
  var highSurrogate: UInt16?

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

  func failure(_ reason: String) -> FormatError {
    FormatError(.json, offset: position.offset, line: position.line, reason)
  }

  mutating func take(_ byte: UInt8) throws(FormatError) {
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

  mutating func takeSeparator(_ byte: UInt8) throws(FormatError) {
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

  mutating func beginValue(_ byte: UInt8) throws(FormatError) {
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

  mutating func begin(
    _ container: ValueBuilder.Container, then next: State
  ) throws(FormatError) {
    do { try builder.begin(container) } catch { throw failure(error.reason) }
    state = next
  }

  mutating func end(_ container: ValueBuilder.Container) throws(FormatError) {
    do { try builder.end(uniqueKeys: true) } catch { throw failure(error.reason) }
    state = .separator
  }

  mutating func add(_ value: Value) throws(FormatError) {
    do { try builder.add(value) } catch { throw failure(error.reason) }
    state = .separator
  }
}
