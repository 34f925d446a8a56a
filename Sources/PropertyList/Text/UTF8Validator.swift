/// A resumable check that bytes are UTF-8 as Unicode defines it (no overlong forms, no
/// surrogates, nothing above U+10FFFF). Cost: eight ASCII bytes at a time.
struct UTF8Validator: Sendable {
  /// Continuation bytes that are still to come.
  private var missing = 0
  /// What the next continuation byte may be.
  private var low: UInt8 = 0x80
  private var high: UInt8 = 0xBF

  /// Whether what was taken ends between two characters.
  var isComplete: Bool { missing == 0 }

  /// Whether every byte is below 0x80.
  static func isASCII(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
    guard bytes.count >= 8 else { return bytes.allSatisfy { $0 < 0x80 } }
    // The last eight overlap those before.
    var seen = bytes.eight(at: bytes.count &- 8)
    var index = 0
    while index &+ 8 < bytes.count, seen & UInt8(0x80).repeated == 0 {
      seen |= bytes.eight(at: index)
      index &+= 8
    }
    return seen & UInt8(0x80).repeated == 0
  }

  /// Takes the next bytes; false when no UTF-8 begins with what was taken.
  mutating func feed(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
    var index = 0
    while index < bytes.count {
      if missing == 0 {
        index = bytes.endOfASCII(from: index)
        guard index < bytes.count else { return true }
      }
      guard take(bytes[index]) else { return false }
      index += 1
    }
    return true
  }

  @inline(__always)
  private mutating func take(_ byte: UInt8) -> Bool {
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
  /// Where the bytes below 0x80 from the index on end, or up to seven bytes before.
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
  /// The text of bytes that are known to be UTF-8.
  @inline(__always)
  init(valid bytes: UnsafeBufferPointer<UInt8>) {
    self.init(valid: bytes, isASCII: UTF8Validator.isASCII(bytes))
  }

  /// The text of bytes that are known to be UTF-8, or ASCII.
  @inline(__always)
  init(valid bytes: UnsafeBufferPointer<UInt8>, isASCII: Bool) {
    self.init(copying: UTF8Span(unchecked: bytes.span, isKnownASCII: isASCII))
  }
}
