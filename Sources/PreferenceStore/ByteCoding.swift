import PropertyList

/// Puts numbers (little-endian) and strings of bytes together: the journal's records.
struct ByteWriter {
  private(set) var bytes: [UInt8] = []

  mutating func append(_ byte: UInt8) { bytes.append(byte) }

  mutating func append<Number: FixedWidthInteger>(_ number: Number) {
    withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
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

/// CRC-32C (Castagnoli), eight bits at a time.
enum Checksum {
  private static let table: [UInt32] = (0..<256).map { index in
    (0..<8).reduce(UInt32(index)) { value, _ in
      value & 1 == 1 ? value >> 1 ^ 0x82F6_3B78 : value >> 1
    }
  }

  static func crc32c(_ bytes: some Sequence<UInt8>) -> UInt32 {
    table.withUnsafeBufferPointer { table in
      ~bytes.reduce(~0) { $0 >> 8 ^ table[Int(UInt8(truncatingIfNeeded: $0) ^ $1)] }
    }
  }
}
