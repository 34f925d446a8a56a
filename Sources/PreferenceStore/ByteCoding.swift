import PropertyList

/// Puts numbers (little-endian) and strings of bytes together: the journal's records.
struct ByteWriter {
  private(set) var bytes: [UInt8] = []

  mutating func append(_ byte: UInt8) { bytes.append(byte) }

  mutating func append<Number: FixedWidthInteger>(_ number: Number) {
    withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
  }

  /// Puts a number over what stands at the offset.
  mutating func overwrite<Number: FixedWidthInteger>(at offset: Int, with number: Number) {
    withUnsafeBytes(of: number.littleEndian) {
      bytes.replaceSubrange(offset..<offset + $0.count, with: $0)
    }
  }

  /// A length of 32 bits, and the bytes.
  mutating func append(counted content: some Collection<UInt8>) {
    append(UInt32(content.count))
    bytes.append(contentsOf: content)
  }
}

/// Takes them apart again; every read beyond the end throws.
struct ByteReader {
  struct Exhausted: Error {}

  private let bytes: ArraySlice<UInt8>
  private var position: Int

  init(_ bytes: ArraySlice<UInt8>) {
    self.bytes = bytes
    position = bytes.startIndex
  }

  var isAtEnd: Bool { position == bytes.endIndex }

  mutating func take(_ count: Int) throws(Exhausted) -> ArraySlice<UInt8> {
    guard count >= 0, count <= bytes.endIndex - position else { throw Exhausted() }
    defer { position += count }
    return bytes[position..<position + count]
  }

  mutating func number<Number: FixedWidthInteger>(
    _: Number.Type = Number.self
  ) throws(Exhausted) -> Number {
    let part = try take(Number.bitWidth / 8)
    return part.reversed().reduce(0) { $0 << 8 | Number(truncatingIfNeeded: $1) }
  }

  mutating func counted() throws(Exhausted) -> ArraySlice<UInt8> {
    try take(Int(try number(UInt32.self)))
  }
}

/// CRC-32C (Castagnoli), eight bytes at a time.
enum Checksum {
  /// Table k gives what a byte contributes from k places before the end of eight.
  private static let tables: [UInt32] = {
    let first = (0..<256).map { (index: Int) -> UInt32 in
      var value = UInt32(index)
      for _ in 0..<8 { value = value & 1 == 1 ? (value >> 1) ^ 0x82F6_3B78 : value >> 1 }
      return value
    }
    var all = first
    for level in 1..<8 {
      for index in 0..<256 {
        let previous = all[(level - 1) * 256 + index]
        all.append((previous >> 8) ^ first[Int(previous & 0xFF)])
      }
    }
    return all
  }()

  static func crc32c(_ bytes: ArraySlice<UInt8>) -> UInt32 {
    bytes.withUnsafeBytes { bytes in tables.withUnsafeBufferPointer { ~sum(bytes, $0) } }
  }

  private static func sum(
    _ bytes: UnsafeRawBufferPointer, _ tables: UnsafeBufferPointer<UInt32>
  ) -> UInt32 {
    var sum: UInt32 = ~0
    var index = 0
    while index + 8 <= bytes.count {
      let eight = bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self).littleEndian
      let mixed = eight ^ UInt64(sum)
      sum = 0
      for place in 0..<8 {
        let byte = Int(truncatingIfNeeded: mixed >> UInt64(8 * place)) & 0xFF
        sum ^= tables[(7 - place) * 256 + byte]
      }
      index += 8
    }
    for byte in bytes[index...] {
      let mixed = UInt8(truncatingIfNeeded: sum) ^ byte
      sum = (sum >> 8) ^ tables[Int(mixed)]
    }
    return sum
  }
}
