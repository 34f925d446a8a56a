import PropertyList

// Inlinable, because unspecialised generic code is ten times slower.

/// Builds records of the journal, and messages, from little-endian numbers and strings of bytes.
package struct ByteWriter {
  package private(set) var bytes: [UInt8] = []

  package init() {}

  package mutating func append(_ byte: UInt8) { bytes.append(byte) }

  @inlinable
  package mutating func append<Number: FixedWidthInteger>(_ number: Number) {
    withUnsafeBytes(of: number.littleEndian) { append($0) }
  }

  @usableFromInline
  mutating func append(_ content: UnsafeRawBufferPointer) { bytes.append(contentsOf: content) }

  /// Appends the bytes alone, without their number.
  package mutating func append(raw content: [UInt8]) { bytes += content }

  /// Replaces the four bytes at the offset by the number.
  package mutating func overwrite(at offset: Int, with number: UInt32) {
    withUnsafeBytes(of: number.littleEndian) {
      bytes.replaceSubrange(offset..<offset + 4, with: $0)
    }
  }

  /// Appends the number of bytes, as 32 bits, and then the bytes.
  package mutating func append(counted content: some Collection<UInt8>) {
    append(UInt32(clamping: content.count))
    let isCopied: Void? = content.withContiguousStorageIfAvailable {
      append(UnsafeRawBufferPointer($0))
    }
    if isCopied == nil { bytes.append(contentsOf: content) }
  }
}

/// Reads what a `ByteWriter` wrote. Every read beyond the end throws.
package struct ByteReader {
  /// There are fewer bytes than a read needs.
  package struct Exhausted: Error {
    @usableFromInline
    init() {}
  }

  private let bytes: ArraySlice<UInt8>
  private var position: Int

  package init(_ bytes: ArraySlice<UInt8>) {
    self.bytes = bytes
    position = bytes.startIndex
  }

  package var isAtEnd: Bool { position == bytes.endIndex }

  /// Removes that many bytes from the front and returns them.
  package mutating func removeNext(_ count: Int) throws(Exhausted) -> ArraySlice<UInt8> {
    guard count >= 0, count <= bytes.endIndex - position else { throw Exhausted() }
    defer { position += count }
    return bytes[position..<position + count]
  }

  @inlinable
  package mutating func number<Number: FixedWidthInteger>(
    _: Number.Type = Number.self
  ) throws(Exhausted) -> Number {
    Number(truncatingIfNeeded: try word(Number.bitWidth / 8))
  }

  /// Reads a little-endian number of that many bytes, at most eight.
  @usableFromInline
  mutating func word(_ count: Int) throws(Exhausted) -> UInt64 {
    var word: UInt64 = 0
    var shift: UInt64 = 0
    for byte in try removeNext(count) {
      word |= UInt64(byte) << shift
      shift += 8
    }
    return word
  }

  /// Reads a length of 32 bits and as many bytes; returns the bytes.
  package mutating func counted() throws(Exhausted) -> ArraySlice<UInt8> {
    try removeNext(Int(try number(UInt32.self)))
  }
}
