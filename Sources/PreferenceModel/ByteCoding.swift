import PropertyList

/// Puts numbers (little-endian) and strings of bytes together: records of the journal, and messages.
package struct ByteWriter {
  package private(set) var bytes: [UInt8] = []

  package init() {}

  package mutating func append(_ byte: UInt8) { bytes.append(byte) }

  package mutating func append<Number: FixedWidthInteger>(_ number: Number) {
    withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
  }

  /// Puts a number over what stands at the offset.
  package mutating func overwrite<Number: FixedWidthInteger>(at offset: Int, with number: Number) {
    withUnsafeBytes(of: number.littleEndian) {
      bytes.replaceSubrange(offset..<offset + $0.count, with: $0)
    }
  }

  /// A length of 32 bits, and the bytes.
  package mutating func append(counted content: some Collection<UInt8>) {
    append(UInt32(content.count))
    bytes.append(contentsOf: content)
  }
}

/// Takes them apart again; every read beyond the end throws.
package struct ByteReader {
  package struct Exhausted: Error {}

  private let bytes: ArraySlice<UInt8>
  private var position: Int

  package init(_ bytes: ArraySlice<UInt8>) {
    self.bytes = bytes
    position = bytes.startIndex
  }

  package var isAtEnd: Bool { position == bytes.endIndex }

  package mutating func take(_ count: Int) throws(Exhausted) -> ArraySlice<UInt8> {
    guard count >= 0, count <= bytes.endIndex - position else { throw Exhausted() }
    defer { position += count }
    return bytes[position..<position + count]
  }

  package mutating func number<Number: FixedWidthInteger>(
    _: Number.Type = Number.self
  ) throws(Exhausted) -> Number {
    let part = try take(Number.bitWidth / 8)
    return part.reversed().reduce(0) { $0 << 8 | Number(truncatingIfNeeded: $1) }
  }

  package mutating func counted() throws(Exhausted) -> ArraySlice<UInt8> {
    try take(Int(try number(UInt32.self)))
  }
}
