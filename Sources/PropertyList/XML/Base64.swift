/// Base64 (RFC 4648) as property lists use it: blanks anywhere, padding at the end.
enum Base64 {
  private static let alphabet = Array(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

  private static let values: [UInt8] = {
    var values = [UInt8](repeating: 0xFF, count: 256)
    for (value, byte) in alphabet.enumerated() { values[Int(byte)] = UInt8(value) }
    return values
  }()

  /// The bytes; nil where the text is no base64.
  static func decode(_ text: some Sequence<UInt8>) -> [UInt8]? {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.underestimatedCount * 3 / 4)
    var bits: UInt32 = 0
    var digits = 0
    var padding = 0
    for byte in text {
      let value = values[Int(byte)]
      if value != 0xFF {
        guard padding == 0 else { return nil }
        bits = bits << 6 | UInt32(value)
        digits += 1
        if digits % 4 == 0 { bytes.append(contentsOf: bits.bytes) }
      } else if byte == UInt8(ascii: "=") {
        padding += 1
      } else if !byte.isBlank {
        return nil
      }
    }
    switch digits % 4 {
    case 0: return padding == 0 ? bytes : nil
    case 2 where padding == 2: bytes.append(contentsOf: (bits << 12).bytes.prefix(1))
    case 3 where padding == 1: bytes.append(contentsOf: (bits << 6).bytes.prefix(2))
    default: return nil
    }
    return bytes
  }

  /// The text, with padding and without line breaks.
  static func encode(_ bytes: [UInt8]) -> [UInt8] {
    var text: [UInt8] = []
    text.reserveCapacity((bytes.count + 2) / 3 * 4)
    var index = 0
    while index < bytes.count {
      let rest = min(3, bytes.count - index)
      var bits: UInt32 = 0
      for step in 0..<3 { bits = bits << 8 | (step < rest ? UInt32(bytes[index + step]) : 0) }
      for step in 0..<4 {
        let digit = alphabet[Int(bits >> UInt32(18 - 6 * step) & 63)]
        text.append(step <= rest ? digit : UInt8(ascii: "="))
      }
      index += 3
    }
    return text
  }
}

extension UInt32 {
  /// The three lower bytes.
  fileprivate var bytes: CollectionOfThree {
    CollectionOfThree(
      first: UInt8(self >> 16 & 255), second: UInt8(self >> 8 & 255), third: UInt8(self & 255))
  }
}

/// Three bytes without an array's allocation.
private struct CollectionOfThree: RandomAccessCollection {
  let first: UInt8
  let second: UInt8
  let third: UInt8
  var startIndex: Int { 0 }
  var endIndex: Int { 3 }
  subscript(index: Int) -> UInt8 { index == 0 ? first : index == 1 ? second : third }
}
