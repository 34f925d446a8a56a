/// A resumable reader of a real's text: decimal and exponent forms, `inf`, `infinity`, `nan` in
/// any case, with an optional sign, and `nan(0x...)` with all bits of the number; no other
/// hexadecimal, no blanks. Cost: O(1) a byte.
struct RealScanner: ScalarScanner {
  private enum State {
    case start, sign, whole, point, fraction, exponent, exponentSign, power, word
  }

  private var state = State.start
  private var text: [UInt8] = []
  /// Bytes; the longest exact decimal form of a double has 1,077.
  private static let longest = 1100
  private static let words = ["inf", "infinity", "nan"]

  /// Takes the next byte; false when no real begins with what was taken.
  mutating func take(_ byte: UInt8) -> Bool {
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
    case (.start, _), (.sign, _), (.word, _): return takeWord(lower)
    default: return false
    }
    text.append(byte)
    // More digits of a positive exponent do not bring the number back.
    return state != .power || shrinks || number?.isInfinite != true
  }

  /// Whether the exponent is negative.
  private var shrinks: Bool {
    text.lastIndex { $0 | 0x20 == UInt8(ascii: "e") }.map { text[$0 + 1] == UInt8(ascii: "-") }
      ?? false
  }

  private mutating func takeWord(_ byte: UInt8) -> Bool {
    state = .word
    text.append(byte)
    let letters = String(
      decoding: text.drop { $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "+") }, as: UTF8.self)
    return Self.words.contains { $0.hasPrefix(letters) } || isBitsPrefix
  }

  private static let bitsMark = Array("nan(0x".utf8)

  /// Whether the text is the beginning of `nan(0x` and 1 to 16 digits with a parenthesis.
  private var isBitsPrefix: Bool {
    guard text.starts(with: Self.bitsMark) else { return Self.bitsMark.starts(with: text) }
    let digits = text.dropFirst(Self.bitsMark.count)
    let isClosed = digits.last == UInt8(ascii: ")")
    let body = isClosed ? digits.dropLast() : digits
    return body.count <= 16 && body.allSatisfy { $0.hexValue != nil }
      && (!isClosed || bits?.isNaN == true)
  }

  /// The number whose bits are given.
  private var bits: Double? {
    guard text.count > Self.bitsMark.count, text.last == UInt8(ascii: ")") else { return nil }
    let digits = text.dropFirst(Self.bitsMark.count).dropLast()
    return UInt64(String(decoding: digits, as: UTF8.self), radix: 16).map {
      Double(bitPattern: $0)
    }
  }

  private var number: Double? { bits ?? Double(String(decoding: text, as: UTF8.self)) }

  /// The real, when what was taken is the text of one.
  var result: Double? {
    switch state {
    case .whole, .fraction, .power, .word:
      guard let number, state == .word || number.isFinite else { return nil }
      return number
    default: return nil
    }
  }
}
