// Reads the strings, data and typed values of old-style lists.

extension OpenStepParser {
  mutating func beginString(_ byte: UInt8, isKey: Bool) throws(FormatError) {
    self.isKey = isKey
    if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") {
      quote = byte
      beginToken(.quoted)
    } else if byte.isPlain {
      beginToken(.plain)
      token.append(byte)
    } else {
      throw failure(isKey ? "expected a key or '}'" : "expected a value")
    }
  }

  mutating func beginToken(_ next: State) {
    state = next
    token.removeAll(keepingCapacity: true)
  }

  mutating func consumeInPlain(_ byte: UInt8) throws(FormatError) {
    if byte.isPlain { return token.append(byte) }
    try endString()
    try consume(byte)
  }

  mutating func consumeInQuoted(_ byte: UInt8) throws(FormatError) {
    if byte == UInt8(ascii: "\\") {
      state = .escape
      return
    }
    try endSurrogate()
    if byte == quote { try endString() } else { token.append(byte) }
  }

  /// Ends the string in `token`.
  mutating func endString() throws(FormatError) {
    let token = self.token
    try token.withUnsafeBufferPointer { text throws(FormatError) in try endString(text) }
  }

  /// Adds a complete string: a key, a value, or the first string of the document.
  mutating func endString(_ text: UnsafeBufferPointer<UInt8>) throws(FormatError) {
    if isKey {
      builder.add(key: text)
      state = .equals
    } else if builder.depth == 0 {
      firstString = String(valid: text)
      state = .separator
    } else {
      try add(.string(String(valid: text)))
    }
  }

  mutating func consumeEscape(_ byte: UInt8) throws(FormatError) {
    state = .quoted
    let isUnicode = byte == UInt8(ascii: "U") || byte == UInt8(ascii: "u")
    if !isUnicode { try endSurrogate() }
    switch byte {
    case UInt8(ascii: "a"): token.append(7)
    case UInt8(ascii: "b"): token.append(8)
    case UInt8(ascii: "f"): token.append(12)
    case UInt8(ascii: "n"): token.append(10)
    case UInt8(ascii: "r"): token.append(13)
    case UInt8(ascii: "t"): token.append(9)
    case UInt8(ascii: "v"): token.append(11)
    case UInt8(ascii: "U"), UInt8(ascii: "u"):
      (state, number, digits, escape) = (.unicode, 0, 0, [byte])
    case UInt8(ascii: "0")...UInt8(ascii: "7"):
      (state, number, digits) = (.octal, UInt32(byte & 7), 1)
    default: token.append(byte)
    }
  }

  mutating func consumeOctal(_ byte: UInt8) throws(FormatError) {
    if digits < 3, (UInt8(ascii: "0")...UInt8(ascii: "7")).contains(byte) {
      number = number << 3 | UInt32(byte & 7)
      digits += 1
      return
    }
    append(NeXTSTEPEncoding.scalar(UInt8(truncatingIfNeeded: number)))
    state = .quoted
    try consumeInQuoted(byte)
  }

  mutating func consumeUnicode(_ byte: UInt8) throws(FormatError) {
    if digits < 4, let digit = byte.hexValue {
      number = number << 4 | UInt32(digit)
      digits += 1
      escape.append(byte)
      return
    }
    // GNUstep's \u has four digits, \U of OpenStep one to four. Anything else stands for itself, as
    // after any other backslash (C:\users).
    if digits == 4 || digits > 0 && escape.first == UInt8(ascii: "U") {
      try endUnicode()
    } else {
      try endSurrogate()
      token.append(contentsOf: escape)
    }
    state = .quoted
    try consumeInQuoted(byte)
  }

  /// Ends a `\U` escape. It is a UTF-16 code unit, so a character beyond U+FFFF takes two of them.
  mutating func endUnicode() throws(FormatError) {
    switch (highSurrogate, number) {
    case (nil, 0xD800...0xDBFF): highSurrogate = number
    case (let high?, 0xDC00...0xDFFF):
      highSurrogate = nil
      append(Unicode.Scalar(0x10000 + (high - 0xD800) << 10 + (number - 0xDC00)) ?? "\u{FFFD}")
    case (.some, _):
      try endSurrogate()
      try endUnicode()
    case (nil, 0xDC00...0xDFFF): try appendHalf()
    default: append(Unicode.Scalar(number) ?? "\u{FFFD}")
    }
  }

  /// Ends the first half of a surrogate pair that no second half follows.
  private mutating func endSurrogate() throws(FormatError) {
    if highSurrogate.take() != nil { try appendHalf() }
  }

  private mutating func appendHalf() throws(FormatError) {
    guard isLenient else { throw failure("half of a surrogate pair") }
    append("\u{FFFD}")
  }

  mutating func append(_ scalar: Unicode.Scalar) {
    token.append(contentsOf: Array(String(Character(scalar)).utf8))
  }

  mutating func consumeInData(_ byte: UInt8) throws(FormatError) {
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

  /// Returns the value of a typed value of GNUstep: `*I5`, `*R1.5`, `*BY`, `*BN` or
  /// `*D2001-01-01 00:00:00 +0000`.
  func typedValue() throws(FormatError) -> Value {
    let text = Array(token.dropFirst(2))
    let kinds: [UInt8: Kind] = [0x49: .integer, 0x52: .real, 0x42: .boolean, 0x44: .date]
    let spelled = text == [0x59] ? Array("yes".utf8) : text == [0x4E] ? Array("no".utf8) : text
    guard token.count > 2, let kind = kinds[token[1]],
      let value = Recogniser.value(of: spelled, kind: kind)
    else { throw failure("a typed value <*...> that cannot be read") }
    return value
  }
}

extension UnsafeBufferPointer<UInt8> {
  /// Returns the end of the unquoted string that continues at `start`.
  func endOfPlain(from start: Int) -> Int {
    var index = start
    while index < count, self[index].isPlain { index += 1 }
    return index
  }
}

extension UInt8 {
  /// Whether an unquoted string may contain the byte: a letter, a digit or one of `_ $ / : . -`.
  var isPlain: Bool {
    switch self {
    case _ where isLetter || isDigit: true
    case UInt8(ascii: "_"), UInt8(ascii: "$"), UInt8(ascii: "/"), UInt8(ascii: ":"),
      UInt8(ascii: "."), UInt8(ascii: "-"):
      true
    default: false
    }
  }
}
