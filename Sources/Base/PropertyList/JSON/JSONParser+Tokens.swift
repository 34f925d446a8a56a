// Reads the strings, numbers and literals of JSON.

extension JSONParser {
  mutating func beginString(isKey: Bool) {
    token.removeAll(keepingCapacity: true)
    tokenIsKey = isKey
    state = .string
  }

  /// Consumes a byte of a string that is not plain: an escape, a control character or the end.
  mutating func consumeInString(_ byte: UInt8) throws(FormatError) {
    if byte == UInt8(ascii: "\\") {
      state = .escape
      return
    }
    try endSurrogate()
    guard byte == UInt8(ascii: "\"") else { throw failure("a control character inside a string") }
    if tokenIsKey {
      token.withUnsafeBufferPointer { builder.add(key: $0) }
      state = .colon
    } else {
      try add(.string(String(decoding: token, as: UTF8.self)))
    }
  }

  mutating func consumeEscape(_ byte: UInt8) throws(FormatError) {
    if byte == UInt8(ascii: "u") {
      (state, hexDigits, codeUnit) = (.unicode, 0, 0)
      return
    }
    try endSurrogate()
    guard let character = Self.escapes[byte] else { throw failure("an unknown escape") }
    token.append(character)
    state = .string
  }

  static let escapes: [UInt8: UInt8] = [
    UInt8(ascii: "\""): 0x22, UInt8(ascii: "\\"): 0x5C, UInt8(ascii: "/"): 0x2F,
    UInt8(ascii: "b"): 8, UInt8(ascii: "f"): 12, UInt8(ascii: "n"): 10, UInt8(ascii: "r"): 13,
    UInt8(ascii: "t"): 9,
  ]

  mutating func consumeHexDigit(_ byte: UInt8) throws(FormatError) {
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

  mutating func append(scalar number: UInt32) {
    guard let scalar = Unicode.Scalar(number) else { return }
    token.append(contentsOf: Array(String(Character(scalar)).utf8))
  }

  /// Throws if the first half of a surrogate pair waits for the second.
  func endSurrogate() throws(FormatError) {
    if highSurrogate != nil { throw failure("half of a surrogate pair") }
  }
}

extension JSONParser {
  mutating func consumeInLiteral(_ byte: UInt8) throws(FormatError) {
    token.append(byte)
    let word: StaticString =
      switch token.first {
      case UInt8(ascii: "t"): "true"
      case UInt8(ascii: "f"): "false"
      default: "null"
      }
    guard token.count <= word.utf8CodeUnitCount, byte == word.utf8Start[token.count - 1] else {
      throw failure("expected \(word)")
    }
    guard token.count == word.utf8CodeUnitCount else { return }
    try add(token.first == UInt8(ascii: "n") ? null ?? .string("") : .boolean(token.count == 4))
  }

  mutating func consumeInNumber(_ byte: UInt8) throws(FormatError) {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"),
      UInt8(ascii: "+"), UInt8(ascii: "e"), UInt8(ascii: "E"):
      guard mayFollow(byte) else { throw failure("expected a number") }
      guard numberScanner.consume(byte) else {
        // A digit that may follow is refused only where the number is too large, or too long.
        throw failure(byte.isDigit ? "a number beyond the range of a real" : "expected a number")
      }
      token.append(byte)
    default:
      try add(try number())
      try consume(byte)
    }
  }

  /// Whether the byte may follow `token` in JSON, which has no leading zeros, and a digit before
  /// each point and exponent. The scanner judges the rest.
  private func mayFollow(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "-"), UInt8(ascii: "+"):
      token.last.map { $0 | 0x20 == UInt8(ascii: "e") } ?? true
    case UInt8(ascii: "0")...UInt8(ascii: "9"): token != [0x30] && token != [0x2D, 0x30]
    default: token.last?.isDigit == true
    }
  }

  /// Returns the number in `token`. Throws if it is not complete or out of range.
  func number() throws(FormatError) -> Value {
    guard token.last?.isDigit == true else { throw failure("expected a digit") }
    if token.allSatisfy({ $0.isDigit || $0 == UInt8(ascii: "-") }) {
      guard let integer = WideInteger(decimal: token) else {
        throw failure("an integer beyond 64 bits")
      }
      return .integer(integer)
    }
    guard let real = numberScanner.result else {
      throw failure("a number beyond the range of a real")
    }
    return .real(real)
  }
}
