/// A growing buffer of bytes that a writer appends to.
///
/// The array is longer than the bytes that were written, so a write is one comparison and a store,
/// and `finish` does not copy. Cost: O(1) for each byte. If the initial room is sufficient, nothing
/// is copied to grow.
struct ByteSink {
  /// The bytes that were written, and free room behind them.
  private var bytes: [UInt8]
  /// How many bytes were written.
  private(set) var count = 0

  /// Creates an empty sink with room for `room` bytes.
  init(room: Int) { bytes = Self.uninitialized(max(room, 64)) }

  private static func uninitialized(_ count: Int) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: count) { $1 = count }
  }

  /// Returns the bytes that were written.
  consuming func finish() -> [UInt8] {
    bytes.removeLast(bytes.count - count)
    return bytes
  }

  /// Returns the bytes that were written as text; they must be UTF-8.
  consuming func text() -> String {
    String(decoding: bytes[..<count], as: UTF8.self)
  }

  /// Writes up to `most` bytes. The body gets the address to write to, and returns how many bytes
  /// it has written there.
  @inline(__always)
  mutating func write(_ most: Int, _ body: (UnsafeMutableRawPointer) -> Int) {
    if bytes.count &- count < most { grow(most) }
    let start = count
    count &+= bytes.withUnsafeMutableBytes { bytes in
      bytes.baseAddress.map { body($0 + start) } ?? 0
    }
  }

  @inline(never)
  private mutating func grow(_ more: Int) {
    var larger = Self.uninitialized(max(2 * bytes.count, count + more))
    larger.withUnsafeMutableBytes { larger in
      bytes.withUnsafeBytes {
        larger.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[..<count]))
      }
    }
    bytes = larger
  }
}

// MARK: - Pieces

extension ByteSink {
  @inline(__always)
  mutating func append(_ byte: UInt8) {
    write(1) { place in
      place.storeBytes(of: byte, as: UInt8.self)
      return 1
    }
  }

  @inline(__always)
  mutating func append(_ other: UnsafeBufferPointer<UInt8>) {
    guard let base = other.baseAddress else { return }
    write(other.count) { place in
      place.copyMemory(from: base, byteCount: other.count)
      return other.count
    }
  }

  /// Appends a string literal.
  @inline(__always)
  mutating func append(_ text: StaticString) {
    append(UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  @inline(__always)
  mutating func append(text: String) { text.withBytes { append($0) } }

  mutating func append(repeating byte: UInt8, count: Int) {
    write(count) { place in
      place.initializeMemory(as: UInt8.self, repeating: byte, count: count)
      return count
    }
  }

  /// Appends the lowest `size` bytes of a number, in big-endian order.
  @inline(__always)
  mutating func append(bigEndian number: UInt64, size: Int) {
    write(8) { place in
      let shifted = number << UInt64(64 - 8 * size)
      place.storeBytes(of: shifted.bigEndian, as: UInt64.self)
      return size
    }
  }

  /// Overwrites the bytes at the offset with the lowest `size` bytes of a number, in big-endian
  /// order.
  @inline(__always)
  mutating func set(_ offset: Int, bigEndian number: UInt64, size: Int) {
    bytes.withUnsafeMutableBytes { bytes in
      for step in 0..<size {
        bytes[offset + size - 1 - step] = UInt8(truncatingIfNeeded: number >> UInt64(8 * step))
      }
    }
  }
}

// MARK: - Numbers

extension ByteSink {
  /// Appends a number in decimal, with leading zeros up to `width` digits.
  mutating func append(decimal number: UInt64, width: Int = 1) {
    // A number has at most 20 digits; the buffer has 24 bytes.
    var digits: (UInt64, UInt64, UInt64) = (0, 0, 0)
    withUnsafeMutableBytes(of: &digits) { digits in
      var (rest, start) = (number, digits.count)
      while rest > 0 || start > digits.count - width {
        start -= 1
        let (quotient, digit) = rest.quotientAndRemainder(dividingBy: 10)
        digits[start] = UInt8(ascii: "0") | UInt8(truncatingIfNeeded: digit)
        rest = quotient
      }
      append(UnsafeBufferPointer(rebasing: digits.bindMemory(to: UInt8.self)[start...]))
    }
  }

  /// Appends an integer in decimal.
  mutating func append(_ number: WideInteger) {
    if let unsigned = number.unsigned { return append(decimal: unsigned) }
    append(UInt8(ascii: "-"))
    append(decimal: number.signed?.magnitude ?? 0)
  }
}
