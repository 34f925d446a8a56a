/// Checks that bytes that arrive in pieces are UTF-8 as Unicode defines it: no overlong forms, no
/// surrogates, nothing above U+10FFFF. Cost: O(bytes); at least eight ASCII bytes are checked at a
/// time.
struct UTF8Validator: Sendable {
  /// How many continuation bytes the current character still needs.
  private var missing = 0
  /// The smallest and the largest value that the next continuation byte may have.
  private var low: UInt8 = 0x80
  private var high: UInt8 = 0xBF

  /// Whether the bytes so far do not end inside a character.
  var isComplete: Bool { missing == 0 }

  /// Whether every byte is below 0x80.
  static func isASCII(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
    guard bytes.count >= 8 else { return bytes.allSatisfy { $0 < 0x80 } }
    // The last eight bytes come first; they can overlap the eight before them.
    var seen = bytes.eight(at: bytes.count &- 8)
    var index = 0
    while index &+ 8 < bytes.count, seen & UInt8(0x80).repeated == 0 {
      seen |= bytes.eight(at: index)
      index &+= 8
    }
    return seen & UInt8(0x80).repeated == 0
  }

  /// Checks the next bytes.
  /// - Returns: false if no UTF-8 text begins with the bytes so far.
  mutating func feed(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
    var index = 0
    while index < bytes.count {
      if missing == 0 {
        index = bytes.endOfASCII(from: index)
        guard index < bytes.count else { return true }
      }
      guard consume(bytes[index]) else { return false }
      index += 1
    }
    return true
  }

  @inline(__always)
  private mutating func consume(_ byte: UInt8) -> Bool {
    if missing > 0 {
      guard byte >= low, byte <= high else { return false }
      missing -= 1
      (low, high) = (0x80, 0xBF)
      return true
    }
    switch byte {
    case 0..<0x80: return true
    case 0xC2...0xDF: missing = 1
    case 0xE0: (missing, low) = (2, 0xA0)
    case 0xED: (missing, high) = (2, 0x9F)
    case 0xE1...0xEF: missing = 2
    case 0xF0: (missing, low) = (3, 0x90)
    case 0xF4: (missing, high) = (3, 0x8F)
    case 0xF1...0xF3: missing = 3
    default: return false
    }
    return true
  }
}

extension UnsafeBufferPointer<UInt8> {
  /// Returns the end of the run of bytes below 0x80 that begins at `start`, or an index up to seven
  /// bytes before that end.
  fileprivate func endOfASCII(from start: Int) -> Int {
    let high = UInt8(0x80).repeated
    var index = start
    while index &+ 32 <= count {
      let all = eight(at: index) | eight(at: index &+ 8) | eight(at: index &+ 16)
      guard (all | eight(at: index &+ 24)) & high == 0 else { break }
      index &+= 32
    }
    while index &+ 8 <= count, eight(at: index) & high == 0 { index &+= 8 }
    return index
  }
}

extension String {
  /// Creates a string of UTF-8 bytes; nil if they are not. Cost: less than that of
  /// `String(validating:as:)`, which looks up generic types at each call.
  package init?(utf8 bytes: ArraySlice<UInt8>) {
    guard let span = try? UTF8Span(validating: bytes.span) else { return nil }
    self.init(copying: span)
  }

  /// Creates a string of bytes that are known to be UTF-8.
  @inline(__always)
  init(valid bytes: UnsafeBufferPointer<UInt8>) {
    self.init(valid: bytes, isASCII: UTF8Validator.isASCII(bytes))
  }

  /// Creates a string of bytes that are known to be UTF-8.
  /// - Parameter isASCII: whether they are known to be ASCII.
  @inline(__always)
  init(valid bytes: UnsafeBufferPointer<UInt8>, isASCII: Bool) {
    self.init(copying: UTF8Span(unchecked: bytes.span, isKnownASCII: isASCII))
  }
}
