/// Scans the text of a scalar, one byte at a time, without blanks around it.
protocol ScalarScanner: Sendable {
  /// Consumes the next byte.
  /// - Returns: false if no value begins with the bytes so far. The scanner must not be used after
  ///   that.
  mutating func consume(_ byte: UInt8) -> Bool

  /// The value, if the bytes so far are the text of one.
  var value: Value? { get }

  /// What the text of a value looks like, for people.
  static var form: String { get }
}

/// Scans an integer from -2^63 to 2^64-1: decimal digits with an optional sign.
struct IntegerScanner: ScalarScanner {
  private var negative = false
  private var magnitude: UInt64?
  private var hasSign = false

  mutating func consume(_ byte: UInt8) -> Bool {
    if magnitude == nil, !hasSign, byte == UInt8(ascii: "-") || byte == UInt8(ascii: "+") {
      (hasSign, negative) = (true, byte == UInt8(ascii: "-"))
      return true
    }
    guard let next = (magnitude ?? 0).appending(digit: byte),
      WideInteger(negative: negative, magnitude: next) != nil
    else { return false }
    magnitude = next
    return true
  }

  var value: Value? {
    magnitude.flatMap { WideInteger(negative: negative, magnitude: $0) }.map { .integer($0) }
  }

  static var form: String { "-9223372036854775808 to 18446744073709551615" }
}

/// Scans a UID: decimal digits without a sign.
struct UIDScanner: ScalarScanner {
  private var number: UInt64?

  mutating func consume(_ byte: UInt8) -> Bool {
    guard let next = (number ?? 0).appending(digit: byte) else { return false }
    number = next
    return true
  }

  var value: Value? { number.map { .uid($0) } }
  static var form: String { "0 or more" }
}

extension RealScanner {
  var value: Value? { result.map { .real($0) } }
  static var form: String { "as 1.5 or 2e-3" }
}

extension DateParser {
  var value: Value? { result.map { .date($0) } }
  static var form: String { "as 2026-11-21T07:20:00Z" }
}

/// Scans a boolean: true, false, yes, no (in any case), 1 or 0.
struct BooleanScanner: ScalarScanner {
  private var text: [UInt8] = []
  private static let words: [(text: [UInt8], value: Bool)] = [
    ("true", true), ("false", false), ("yes", true), ("no", false), ("1", true), ("0", false),
  ].map { (Array($0.0.utf8), $0.1) }

  mutating func consume(_ byte: UInt8) -> Bool {
    text.append(byte.isDigit ? byte : byte | 0x20)
    return byte >= 0x30 && Self.words.contains { $0.text.starts(with: text) }
  }

  var value: Value? { Self.words.first { $0.text == text }.map { .boolean($0.value) } }
  static var form: String { "true, false, yes, no, 1 or 0" }
}

/// Scans a scalar that may have blanks and newlines around it.
struct Padded: Sendable {
  private enum State { case before, inside, after, failed }

  private var state = State.before
  private var scanner: any ScalarScanner

  init(_ scanner: some ScalarScanner) { self.scanner = scanner }

  /// What the text of a value looks like, for people.
  var form: String { type(of: scanner).form }

  /// Consumes the next bytes.
  /// - Returns: false if no value begins with the bytes so far.
  mutating func feed(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
    for byte in bytes where !consume(byte) {
      state = .failed
      return false
    }
    return state != .failed
  }

  private mutating func consume(_ byte: UInt8) -> Bool {
    switch state {
    case .before where byte.isBlank: return true
    case .before, .inside:
      state = .inside
      if !byte.isBlank { return scanner.consume(byte) }
      // A blank can be part of a date. A copy tries it, because a scanner that has returned false
      // must not be used any more.
      var next = scanner
      if next.consume(byte) {
        scanner = next
        return true
      }
      guard scanner.value != nil else { return false }
      state = .after
      return true
    case .after: return byte.isBlank
    case .failed: return false
    }
  }

  /// The value, if the bytes so far are the text of one.
  var value: Value? { state == .inside || state == .after ? scanner.value : nil }

  /// Returns the value of a whole text; nil if it is not the text of one.
  static func value(
    of text: UnsafeBufferPointer<UInt8>, _ scanner: some ScalarScanner
  ) -> Value? {
    var padded = Padded(scanner)
    return padded.feed(text) ? padded.value : nil
  }
}

extension WideInteger {
  /// Creates an integer from decimal digits with an optional sign; nil for any other text and for
  /// numbers out of range.
  public init?(decimal text: some Sequence<UInt8>) {
    var scanner = IntegerScanner()
    guard text.allSatisfy({ scanner.consume($0) }), case .integer(let number)? = scanner.value
    else { return nil }
    self = number
  }
}
