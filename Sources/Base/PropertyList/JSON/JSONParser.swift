/// Parses JSON (RFC 8259) in pieces.
///
/// A number with a point or an exponent is a real, every other number an integer. Integers outside
/// of -2^63...2^64-1 and reals beyond the range of a double are refused instead of being rounded.
/// `null`, which property lists do not have, duplicate keys and text after the value are refused
/// too.
struct JSONParser: TextParser {
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
  /// The code unit of a `\u` escape so far, and how many of its digits have come.
  var codeUnit: UInt16 = 0
  var hexDigits = 0
  /// The first half of a surrogate pair, which waits for the second.
  var highSurrogate: UInt16?
  var numberScanner = RealScanner()
  /// What `null` stands for; nil if it is refused.
  let null: Value?

  /// Creates a parser that has received no text.
  /// - Parameter size: the size of the document in bytes, or 0 if it is not known.
  init(limits: Limits = .standard, size: Int = 0) {
    builder = ValueBuilder(limits: limits, size: size)
    null = limits.null
  }

  mutating func step(
    _ piece: UnsafeBufferPointer<UInt8>, at index: Int
  ) throws(FormatError) -> Int {
    switch state {
    case .string:
      let end = piece.endOfRun(from: index, without: 0x22, 0x5C, controls: false)
      guard end > index else { break }
      try endSurrogate()
      token.append(contentsOf: piece[index..<end])
      return end
    case .escape, .unicode, .number, .literal: break
    case _ where piece[index].isBlank: return piece.endOfBlanks(from: index)
    default: break
    }
    try consume(piece[index])
    return index + 1
  }

  func result() throws(FormatError) -> Value {
    if state == .number, builder.depth == 0 { return try number() }
    guard state == .separator, let root = builder.root else {
      throw failure("the text ends too early")
    }
    return root
  }

  static let format = Format.json

  mutating func consume(_ byte: UInt8) throws(FormatError) {
    switch state {
    case .string: try consumeInString(byte)
    case .escape: try consumeEscape(byte)
    case .unicode: try consumeHexDigit(byte)
    case .number: try consumeInNumber(byte)
    case .literal: try consumeInLiteral(byte)
    case _ where byte.isBlank: break
    case _ where byte == UInt8(ascii: "/"): throw failure("JSON has no comments")
    case .value: try beginValue(byte)
    case .firstElement where byte == UInt8(ascii: "]"): try end()
    case .firstElement: try beginValue(byte)
    case .firstKey where byte == UInt8(ascii: "}"): try end()
    case .firstKey, .key:
      guard byte == UInt8(ascii: "\"") else { throw failure("expected a key in quotes") }
      beginString(isKey: true)
    case .colon:
      guard byte == UInt8(ascii: ":") else { throw failure("expected ':' after a key") }
      state = .value
    case .separator: try consumeSeparator(byte)
    }
  }

  mutating func consumeSeparator(_ byte: UInt8) throws(FormatError) {
    switch (builder.open, byte) {
    case (.array, UInt8(ascii: ",")): state = .value
    case (.array, UInt8(ascii: "]")): try end()
    case (.dictionary, UInt8(ascii: ",")): state = .key
    case (.dictionary, UInt8(ascii: "}")): try end()
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
      state = .number
      token.removeAll(keepingCapacity: true)
      numberScanner = RealScanner()
      try consumeInNumber(byte)
    case UInt8(ascii: "n") where null != nil: (state, token) = (.literal, [byte])
    case UInt8(ascii: "n"): throw failure("a property list cannot hold null")
    default: throw failure("expected a value")
    }
  }

  mutating func begin(
    _ container: ValueBuilder.Container, then next: State
  ) throws(FormatError) {
    try builder.begin(container)
    state = next
  }

  mutating func end() throws(FormatError) {
    try builder.end(uniqueKeys: true)
    state = .separator
  }

  mutating func add(_ value: consuming Value) throws(FormatError) {
    try builder.add(value)
    state = .separator
  }
}
