/// Scans the text of a real, one byte at a time.
///
/// It accepts decimal and exponent forms, and `inf`, `infinity` and `nan` in any case, all with an
/// optional sign, and `nan(0x...)` with the bits of a NaN. It does not accept other hexadecimal
/// forms or blanks. The text has at most 1,100 bytes, which bounds the cost of each byte.
struct RealScanner: ScalarScanner {
  private enum State {
    case start, sign, whole, point, fraction, exponent, exponentSign, power, word
  }

  private var state = State.start
  private var text: [UInt8] = []
  /// How many digits the exponent has so far. Only the first 8 are judged while the text is scanned,
  /// so that a long exponent is not read anew at each digit.
  private var powerDigits = 0
  /// The length of the longest text, in bytes. The longest exact decimal form of a double has
  /// 1,077.
  private static let longest = 1100
  private static let words = ["inf", "infinity", "nan"]

  /// Consumes the next byte.
  /// - Returns: false if no real begins with the bytes so far.
  mutating func consume(_ byte: UInt8) -> Bool {
    let lower = byte | 0x20
    guard text.count < Self.longest else { return false }
    switch (state, byte) {
    case (.start, UInt8(ascii: "+")), (.start, UInt8(ascii: "-")): state = .sign
    case (.start, _) where byte.isDigit, (.sign, _) where byte.isDigit: state = .whole
    case (.start, UInt8(ascii: ".")), (.sign, UInt8(ascii: ".")): state = .point
    case (.whole, _) where byte.isDigit: break
    case (.whole, UInt8(ascii: ".")): state = .fraction
    case (.point, _) where byte.isDigit: state = .fraction
    case (.fraction, _) where byte.isDigit: break
    case (.whole, _) where lower == UInt8(ascii: "e"),
      (.fraction, _) where lower == UInt8(ascii: "e"):
      state = .exponent
    case (.exponent, UInt8(ascii: "+")), (.exponent, UInt8(ascii: "-")): state = .exponentSign
    case (.exponent, _) where byte.isDigit, (.exponentSign, _) where byte.isDigit: state = .power
    case (.power, _) where byte.isDigit: break
    case (.start, _), (.sign, _), (.word, _): return consumeWord(lower)
    default: return false
    }
    text.append(byte)
    guard state == .power else { return true }
    powerDigits += 1
    // With a positive exponent, an infinite number stays infinite whatever digits follow.
    return powerDigits > 8 || shrinks || number?.isInfinite != true
  }

  /// Whether the exponent is negative.
  private var shrinks: Bool {
    text.lastIndex { $0 | 0x20 == UInt8(ascii: "e") }.map { text[$0 + 1] == UInt8(ascii: "-") }
      ?? false
  }

  private mutating func consumeWord(_ byte: UInt8) -> Bool {
    state = .word
    text.append(byte)
    let isSigned = text.first == UInt8(ascii: "-") || text.first == UInt8(ascii: "+")
    let letters = String(decoding: text.dropFirst(isSigned ? 1 : 0), as: UTF8.self)
    // Every word has the prefix "". A control character comes here as a sign, because of `| 0x20`.
    guard !letters.isEmpty else { return false }
    return Self.words.contains { $0.hasPrefix(letters) } || isBitsPrefix
  }

  private static let bitsMark = Array("nan(0x".utf8)

  /// Whether the text is, or can become, `nan(0x`, the 1 to 16 digits of a NaN and `)`.
  private var isBitsPrefix: Bool {
    guard text.starts(with: Self.bitsMark) else { return Self.bitsMark.starts(with: text) }
    let digits = text.dropFirst(Self.bitsMark.count)
    let isClosed = digits.last == UInt8(ascii: ")")
    let body = isClosed ? digits.dropLast() : digits
    return body.count <= 16 && body.allSatisfy { $0.hexValue != nil }
      && (!isClosed || bits?.isNaN == true)
  }

  /// The number whose bits the text gives in `nan(0x...)`; nil for other text.
  private var bits: Double? {
    guard text.count > Self.bitsMark.count, text.last == UInt8(ascii: ")") else { return nil }
    let digits = text.dropFirst(Self.bitsMark.count).dropLast()
    return UInt64(String(decoding: digits, as: UTF8.self), radix: 16).map {
      Double(bitPattern: $0)
    }
  }

  private var number: Double? { bits ?? Double(String(decoding: text, as: UTF8.self)) }

  /// The real, if the bytes so far are the text of one.
  var result: Double? {
    switch state {
    case .whole, .fraction, .power, .word:
      guard let number, state == .word || number.isFinite else { return nil }
      return number
    default: return nil
    }
  }
}
