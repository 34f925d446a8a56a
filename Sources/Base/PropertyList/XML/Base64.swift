/// Base64 (RFC 4648) as property lists use it: with blanks anywhere and padding at the end.
package enum Base64 {
  private static let alphabet = Array(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

  /// The value of each digit; 0xFF for bytes that are not base64 digits.
  private static let values: [UInt8] = {
    var values = [UInt8](repeating: 0xFF, count: 256)
    for (value, byte) in alphabet.enumerated() { values[Int(byte)] = UInt8(value) }
    return values
  }()

  /// Returns the bytes that the text stands for; nil if it is not base64.
  static func decode(_ text: UnsafeBufferPointer<UInt8>) -> [UInt8]? {
    var isValid = false
    let bytes = [UInt8](unsafeUninitializedCapacity: text.count / 4 * 3 + 2) { bytes, count in
      values.withUnsafeBufferPointer { values in
        if let end = decode(text, values, into: bytes) { (isValid, count) = (true, end) }
      }
    }
    return isValid ? bytes : nil
  }

  /// Decodes the text into `bytes`.
  /// - Returns: the number of bytes; nil if the text is not base64.
  private static func decode(
    _ text: UnsafeBufferPointer<UInt8>, _ values: UnsafeBufferPointer<UInt8>,
    into bytes: UnsafeMutableBufferPointer<UInt8>
  ) -> Int? {
    var (bits, digits, padding, count) = (UInt32(0), 0, 0, 0)
    for byte in text {
      let value = values[Int(byte)]
      if value != 0xFF {
        guard padding == 0 else { return nil }
        bits = bits << 6 | UInt32(value)
        digits &+= 1
        guard digits & 3 != 1 else { continue }
        // The second, third and fourth digits of a group each complete a byte.
        bytes[count] = UInt8(truncatingIfNeeded: bits >> (UInt32(3 &- (digits &- 1) & 3) &* 2))
        count &+= 1
      } else if byte == UInt8(ascii: "=") {
        padding += 1
      } else if !byte.isBlank {
        return nil
      }
    }
    switch (digits & 3, padding) {
    case (0, 0), (2, 2), (3, 1): return count
    default: return nil
    }
  }

  /// Returns the bytes that CoreFoundation reads from any text: what is no digit is skipped, a group
  /// of fewer than four digits is dropped, and `=` is a digit whose bits shorten its group.
  static func decodeLeniently(_ text: UnsafeBufferPointer<UInt8>) -> [UInt8] {
    var (bits, digits, padding) = (UInt32(0), 0, 0)
    var bytes: [UInt8] = []
    for byte in text {
      let isPadding = byte == UInt8(ascii: "=")
      if isPadding { padding += 1 } else if byte > 32 { padding = 0 }
      let value = isPadding ? 0 : values[Int(byte)]
      guard value != 0xFF else { continue }
      bits = bits << 6 | UInt32(value)
      digits += 1
      guard digits & 3 == 0 else { continue }
      bytes.append(UInt8(truncatingIfNeeded: bits >> 16))
      if padding < 2 { bytes.append(UInt8(truncatingIfNeeded: bits >> 8)) }
      if padding < 1 { bytes.append(UInt8(truncatingIfNeeded: bits)) }
    }
    return bytes
  }

  /// Appends the base64 text of the bytes, with padding and without line breaks.
  static func encode(_ bytes: [UInt8], to sink: inout ByteSink) {
    alphabet.withUnsafeBufferPointer { alphabet in
      sink.write((bytes.count + 2) / 3 * 4) { place in
        var (index, written) = (0, 0)
        while index < bytes.count {
          let rest = bytes.count &- index
          let bits =
            UInt32(bytes[index]) << 16 | (rest > 1 ? UInt32(bytes[index &+ 1]) << 8 : 0)
            | (rest > 2 ? UInt32(bytes[index &+ 2]) : 0)
          for step in 0..<4 {
            let digit = alphabet[Int(bits >> UInt32(18 &- 6 &* step) & 63)]
            place.storeBytes(
              of: step <= rest ? digit : UInt8(ascii: "="), toByteOffset: written &+ step,
              as: UInt8.self)
          }
          (index, written) = (index &+ 3, written &+ 4)
        }
        return written
      }
    }
  }
}

extension Base64 {
  /// Returns the base64 text of the bytes, with padding and without line breaks.
  package static func encode(_ bytes: [UInt8]) -> String {
    var sink = ByteSink(room: (bytes.count + 2) / 3 * 4)
    encode(bytes, to: &sink)
    return String(decoding: sink.finish(), as: UTF8.self)
  }

  /// Returns the bytes that the text stands for; nil if it is not base64.
  package static func decode(_ text: [UInt8]) -> [UInt8]? {
    text.withUnsafeBufferPointer { decode($0) }
  }
}
