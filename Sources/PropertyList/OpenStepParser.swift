/// Reads old-style (OpenStep) lists in pieces: `{ key = value; }`, `( a, b )`, `"quoted"` and
/// plain strings, `<0fbd77>` data, comments; `key = value;` pairs without braces (.strings
/// files); and GNUstep's typed values `<*I5>`, `<*R1.5>`, `<*BY>`, `<*D2001-01-01 ...>`.
struct OpenStepParser: DocumentParser {
  private enum State {
    case key, value, equals, pairEnd, separator, element
    case plain, quoted, escape, octal, unicode, data
    case slash, lineComment, blockComment, blockCommentStar
  }

  private var state: State
  private var afterComment: State
  private var builder: ValueBuilder
  private var position = TextPosition()
  private var utf8 = UTF8Validator()
  private var token: [UInt8] = []
  private var quote: UInt8 = 0
  private var isKey = false
  private var number: UInt32 = 0
  private var digits = 0
  private var highSurrogate: UInt32?
  /// The document is `key = value;` pairs without braces.
  private var isBare = false
  /// The first string of the document, which may yet turn out to be a key.
  private var firstString: String?

  init(limits: Limits = .standard) {
    builder = ValueBuilder(limits: limits)
    (state, afterComment) = (.value, .value)
  }

  mutating func feed(_ bytes: UnsafeBufferPointer<UInt8>) throws(FormatError) {
    guard utf8.feed(bytes) else { throw failure("text that is not UTF-8") }
    for byte in bytes {
      try take(byte)
      position.pass(byte)
    }
  }

  func result() throws(FormatError) -> Value {
    var copy = self
    if copy.state == .lineComment { copy.state = copy.afterComment }
    if copy.state == .plain { try copy.endString() }
    if copy.state == .key, copy.isBare, copy.builder.depth == 1 {
      try copy.end()
    } else if let firstString = copy.firstString {
      return .string(firstString)
    }
    guard copy.state == .separator, let root = copy.builder.root else {
      throw failure("the text ends too early")
    }
    return root
  }

  private func failure(_ reason: String) -> FormatError {
    FormatError(.openStep, offset: position.offset, line: position.line, reason)
  }

  private mutating func take(_ byte: UInt8) throws(FormatError) {
    switch state {
    case .plain: try takeInPlain(byte)
    case .quoted: try takeInQuoted(byte)
    case .escape: try takeEscape(byte)
    case .octal: try takeOctal(byte)
    case .unicode: try takeUnicode(byte)
    case .data: try takeInData(byte)
    case .slash: try takeAfterSlash(byte)
    case .lineComment: if byte == UInt8(ascii: "\n") { state = afterComment }
    case .blockComment: if byte == UInt8(ascii: "*") { state = .blockCommentStar }
    case .blockCommentStar:
      if byte == UInt8(ascii: "/") {
        state = afterComment
      } else if byte != UInt8(ascii: "*") {
        state = .blockComment
      }
    case _ where byte.isBlank || byte == 11 || byte == 12: break
    case _ where byte == UInt8(ascii: "/"): (afterComment, state) = (state, .slash)
    default: try takeStructure(byte)
    }
  }

  private mutating func takeStructure(_ byte: UInt8) throws(FormatError) {
    switch (state, byte) {
    case (.key, UInt8(ascii: "}")) where !isBare || builder.depth > 1: try end()
    case (.key, _): try beginString(byte, isKey: true)
    case (.equals, UInt8(ascii: "=")): state = .value
    case (.equals, UInt8(ascii: ";")):
      try building { builder throws(BuilderError) in try builder.repeatKeyAsValue() }
      state = .key
    case (.pairEnd, UInt8(ascii: ";")): state = .key
    case (.element, UInt8(ascii: ")")): try end()
    case (.separator, UInt8(ascii: ")")) where builder.open == .array: try end()
    case (.separator, UInt8(ascii: ",")) where builder.open == .array: state = .element
    case (.separator, UInt8(ascii: "=")) where firstString != nil: try beginBare()
    case (.value, UInt8(ascii: "{")), (.element, UInt8(ascii: "{")): try begin(.dictionary)
    case (.value, UInt8(ascii: "(")), (.element, UInt8(ascii: "(")): try begin(.array)
    case (.value, UInt8(ascii: "<")), (.element, UInt8(ascii: "<")): (state, token) = (.data, [])
    case (.value, _), (.element, _): try beginString(byte, isKey: false)
    case (.equals, _): throw failure("expected '=' or ';' after a key")
    case (.pairEnd, _): throw failure("expected ';' after a value")
    case (.separator, _) where builder.open == .array: throw failure("expected ',' or ')'")
    default: throw failure("text after the end of the value")
    }
  }

  private mutating func begin(_ container: ValueBuilder.Container) throws(FormatError) {
    try building { builder throws(BuilderError) in try builder.begin(container) }
    state = container == .array ? .element : .key
  }

  /// The first string was a key after all: `key = value;` pairs follow.
  private mutating func beginBare() throws(FormatError) {
    guard let key = firstString else { return }
    firstString = nil
    isBare = true
    try begin(.dictionary)
    builder.add(key: Key(key))
    state = .value
  }

  private mutating func end() throws(FormatError) {
    try building { builder throws(BuilderError) in try builder.end() }
    endValue()
  }

  private mutating func endValue() {
    state = builder.open == .dictionary ? .pairEnd : .separator
  }

  private mutating func building(
    _ step: (inout ValueBuilder) throws(BuilderError) -> Void
  ) throws(FormatError) {
    do { try step(&builder) } catch { throw failure(error.reason) }
  }

  private mutating func add(_ value: Value) throws(FormatError) {
    try building { builder throws(BuilderError) in try builder.add(value) }
    endValue()
  }

  private mutating func takeAfterSlash(_ byte: UInt8) throws(FormatError) {
    switch byte {
    case UInt8(ascii: "/"): state = .lineComment
    case UInt8(ascii: "*"): state = .blockComment
    default:
      state = afterComment
      guard state == .key || state == .value || state == .element else {
        throw failure("expected a comment after '/'")
      }
      try beginString(UInt8(ascii: "/"), isKey: state == .key)
      try take(byte)
    }
  }
}

// MARK: - Strings and data

extension OpenStepParser {
  private mutating func beginString(_ byte: UInt8, isKey: Bool) throws(FormatError) {
    self.isKey = isKey
    if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") {
      (state, token, quote) = (.quoted, [], byte)
    } else if byte.isPlain {
      (state, token) = (.plain, [byte])
    } else {
      throw failure(isKey ? "expected a key or '}'" : "expected a value")
    }
  }

  private mutating func takeInPlain(_ byte: UInt8) throws(FormatError) {
    if byte.isPlain { return token.append(byte) }
    try endString()
    try take(byte)
  }

  private mutating func takeInQuoted(_ byte: UInt8) throws(FormatError) {
    if byte == UInt8(ascii: "\\") {
      state = .escape
      return
    }
    guard highSurrogate == nil else { throw failure("half of a surrogate pair") }
    if byte == quote { try endString() } else { token.append(byte) }
  }

  private mutating func endString() throws(FormatError) {
    let text = String(decoding: token, as: UTF8.self)
    if isKey {
      builder.add(key: Key(text))
      state = .equals
    } else if builder.depth == 0 {
      firstString = text
      state = .separator
    } else {
      try add(.string(text))
    }
  }

  private mutating func takeEscape(_ byte: UInt8) throws(FormatError) {
    state = .quoted
    switch byte {
    case UInt8(ascii: "a"): token.append(7)
    case UInt8(ascii: "b"): token.append(8)
    case UInt8(ascii: "f"): token.append(12)
    case UInt8(ascii: "n"): token.append(10)
    case UInt8(ascii: "r"): token.append(13)
    case UInt8(ascii: "t"): token.append(9)
    case UInt8(ascii: "v"): token.append(11)
    case UInt8(ascii: "U"), UInt8(ascii: "u"): (state, number, digits) = (.unicode, 0, 0)
    case UInt8(ascii: "0")...UInt8(ascii: "7"):
      (state, number, digits) = (.octal, UInt32(byte & 7), 1)
    default: token.append(byte)
    }
  }

  private mutating func takeOctal(_ byte: UInt8) throws(FormatError) {
    if digits < 3, (UInt8(ascii: "0")...UInt8(ascii: "7")).contains(byte) {
      number = number << 3 | UInt32(byte & 7)
      digits += 1
      return
    }
    append(NeXTSTEPEncoding.scalar(UInt8(truncatingIfNeeded: number)))
    state = .quoted
    try takeInQuoted(byte)
  }

  private mutating func takeUnicode(_ byte: UInt8) throws(FormatError) {
    if digits < 4, let digit = byte.hexValue {
      number = number << 4 | UInt32(digit)
      digits += 1
      return
    }
    try endUnicode()
    state = .quoted
    try takeInQuoted(byte)
  }

  /// A code unit of UTF-16; two of them make a character beyond U+FFFF.
  private mutating func endUnicode() throws(FormatError) {
    switch (highSurrogate, number) {
    case (nil, 0xD800...0xDBFF): highSurrogate = number
    case (let high?, 0xDC00...0xDFFF):
      highSurrogate = nil
      append(Unicode.Scalar(0x10000 + (high - 0xD800) << 10 + (number - 0xDC00)) ?? "\u{FFFD}")
    case (.some, _), (nil, 0xDC00...0xDFFF): throw failure("half of a surrogate pair")
    default: append(Unicode.Scalar(number) ?? "\u{FFFD}")
    }
  }

  private mutating func append(_ scalar: Unicode.Scalar) {
    token.append(contentsOf: Array(String(Character(scalar)).utf8))
  }

  private mutating func takeInData(_ byte: UInt8) throws(FormatError) {
    guard byte == UInt8(ascii: ">") else {
      let isTyped = token.first == UInt8(ascii: "*")
      guard
        isTyped || byte.hexValue != nil || byte.isBlank
          || (token.isEmpty && byte == UInt8(ascii: "*"))
      else { throw failure("expected hexadecimal digits or '>'") }
      guard isTyped || !byte.isBlank else { return }
      return token.append(byte)
    }
    if token.first == UInt8(ascii: "*") { return try add(try typedValue()) }
    guard token.count % 2 == 0 else { throw failure("an odd number of hexadecimal digits") }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(token.count / 2)
    for index in stride(from: 0, to: token.count, by: 2) {
      bytes.append((token[index].hexValue ?? 0) << 4 | (token[index + 1].hexValue ?? 0))
    }
    try add(.data(bytes))
  }

  /// GNUstep: `*I5`, `*R1.5`, `*BY`, `*BN`, `*D2001-01-01 00:00:00 +0000`.
  private func typedValue() throws(FormatError) -> Value {
    let text = Array(token.dropFirst(2))
    let kinds: [UInt8: Kind] = [0x49: .integer, 0x52: .real, 0x42: .boolean, 0x44: .date]
    let spelled = text == [0x59] ? Array("yes".utf8) : text == [0x4E] ? Array("no".utf8) : text
    guard token.count > 2, let kind = kinds[token[1]],
      let value = Recogniser.value(of: spelled, kind: kind)
    else { throw failure("a typed value <*...> that cannot be read") }
    return value
  }
}

extension UInt8 {
  /// What a string without quotes may hold: letters, digits and `_ $ / : . -`.
  fileprivate var isPlain: Bool {
    switch self {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "$"),
      UInt8(ascii: "/"), UInt8(ascii: ":"), UInt8(ascii: "."), UInt8(ascii: "-"):
      true
    default: false
    }
  }
}
