/// The bytes that a writer puts one after the other.
///
/// They lie in an array that is longer than what was written, so that to write is to store: there is one
/// comparison before each piece, and no copy at the end. Cost: O(1) a byte; a room that fits from the
/// start spares the copies of growing.
struct ByteSink {
  /// As many as there is room for.
  private var bytes: [UInt8]
  /// How many were written.
  private(set) var count = 0

  /// Nothing, with room for so many bytes.
  init(room: Int) { bytes = Self.uninitialized(max(room, 64)) }

  private static func uninitialized(_ count: Int) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: count) { $1 = count }
  }

  /// What was written.
  consuming func finish() -> [UInt8] {
    bytes.removeLast(bytes.count - count)
    return bytes
  }

  /// What was written, which was text.
  consuming func text() -> String {
    String(decoding: bytes[..<count], as: UTF8.self)
  }

  /// Writes at most so many bytes: the body is given where to, and says how many it wrote.
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

  /// Text of the program.
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

  /// The lowest bytes of a number, the highest of them first.
  @inline(__always)
  mutating func append(bigEndian number: UInt64, size: Int) {
    write(8) { place in
      let shifted = number << UInt64(64 - 8 * size)
      place.storeBytes(of: shifted.bigEndian, as: UInt64.self)
      return size
    }
  }

  /// Over what was written there.
  @inline(__always)
  mutating func set(_ offset: Int, bigEndian number: UInt64, size: Int) {
    bytes.withUnsafeMutableBytes { bytes in
      for step in 0..<size {
        bytes[offset + size - 1 - step] = UInt8(truncatingIfNeeded: number >> UInt64(8 * step))
      }
    }
  }

  /// Whether the bytes were written at the offset.
  @inline(__always)
  func holds(_ other: UnsafeBufferPointer<UInt8>, at offset: Int) -> Bool {
    bytes.withUnsafeBufferPointer {
      UnsafeBufferPointer(rebasing: $0[offset..<offset + other.count]).isEqual(to: other)
    }
  }
}

// MARK: - Numbers and moments

extension ByteSink {
  /// A number in decimal, with zeros before it up to the width.
  mutating func append(decimal number: UInt64, width: Int = 1) {
    // Twenty digits hold every number.
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

  /// An integer in decimal.
  mutating func append(_ number: WideInteger) {
    if let unsigned = number.unsigned { return append(decimal: unsigned) }
    append(UInt8(ascii: "-"))
    append(decimal: number.signed?.magnitude ?? 0)
  }
}
