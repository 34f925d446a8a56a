import Glibc
import PropertyList

/// Builds records of the journal, and messages, from little-endian numbers and strings of bytes.
///
/// Cost: a number is one store, so there is a method for each width: generic code that is not
/// specialised costs twenty times that.
package struct ByteWriter {
  /// What was written, and free room behind it.
  private var buffer: [UInt8] = []

  /// The number of bytes that were written.
  package private(set) var count = 0

  package init() {}

  /// What was written. Cost: a copy.
  package var bytes: [UInt8] { Array(buffer[..<count]) }

  package var isEmpty: Bool { count == 0 }

  /// Calls the body with what was written, which is valid during the call. Cost: no copy.
  package func withBytes<Result, Failure>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try buffer.withUnsafeBufferPointer { bytes throws(Failure) in
      try body(UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: bytes[..<count])))
    }
  }

  /// Removes everything, and keeps the memory for what is written next, unless it has more than
  /// 64 KiB.
  package mutating func removeAll() {
    count = 0
    if buffer.count > 1 << 16 { buffer = [] }
  }

  package mutating func append(_ byte: UInt8) { append(word: UInt64(byte), 1) }
  package mutating func append(_ number: UInt16) { append(word: UInt64(number), 2) }
  package mutating func append(_ number: UInt32) { append(word: UInt64(number), 4) }
  package mutating func append(_ number: Int32) {
    append(word: UInt64(truncatingIfNeeded: number), 4)
  }
  package mutating func append(_ number: UInt64) { append(word: number, 8) }
  package mutating func append(_ number: Int64) {
    append(word: UInt64(truncatingIfNeeded: number), 8)
  }

  /// Stores eight bytes, of which the first ones count.
  private mutating func append(word: UInt64, _ width: Int) {
    makeRoom(for: 8)
    let end = count
    buffer.withUnsafeMutableBytes {
      $0.storeBytes(of: word.littleEndian, toByteOffset: end, as: UInt64.self)
    }
    count = end + width
  }

  private mutating func makeRoom(for room: Int) {
    if buffer.count - count < room { grow(by: room) }
  }

  private mutating func grow(by room: Int) {
    let size = buffer.count + max(256, buffer.count, room)
    buffer = [UInt8](unsafeUninitializedCapacity: size) { memory, initialized in
      let all = UnsafeMutableRawBufferPointer(memory)
      buffer.withUnsafeBytes { all.copyMemory(from: $0) }
      if let free = all.baseAddress { memset(free + buffer.count, 0, size - buffer.count) }
      initialized = size
    }
  }

  /// Appends the bytes as they are.
  package mutating func append(raw content: UnsafeRawBufferPointer) {
    makeRoom(for: content.count)
    let end = count
    buffer.withUnsafeMutableBytes { buffer in
      UnsafeMutableRawBufferPointer(rebasing: buffer[end...]).copyMemory(from: content)
    }
    count = end + content.count
  }

  /// Appends the bytes alone, without their number.
  package mutating func append(raw content: [UInt8]) {
    content.withUnsafeBytes { append(raw: $0) }
  }

  /// Replaces the four bytes at the offset by the number.
  package mutating func overwrite(at offset: Int, with number: UInt32) {
    buffer.withUnsafeMutableBytes {
      $0.storeBytes(of: number.littleEndian, toByteOffset: offset, as: UInt32.self)
    }
  }

  /// Appends the number in as few bytes as it takes: seven bits each, the lowest first; the highest
  /// bit of all but the last byte is set (LEB128).
  package mutating func append(variable number: UInt64) {
    var rest = number
    while rest > 0x7F {
      append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    append(UInt8(rest))
  }

  /// Appends the number of bytes, as 32 bits, and then the bytes.
  package mutating func append(counted content: some Collection<UInt8>) {
    append(UInt32(clamping: content.count))
    let isCopied: Void? = content.withContiguousStorageIfAvailable {
      append(raw: UnsafeRawBufferPointer($0))
    }
    if isCopied == nil { append(raw: Array(content)) }
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
    guard count >= 0, count <= 8, count <= bytes.endIndex - position else { throw Exhausted() }
    let start = position - bytes.startIndex
    position += count
    return bytes.withUnsafeBytes { bytes in
      var word: UInt64 = 0
      for index in 0..<count { word |= UInt64(bytes[start + index]) << UInt64(8 * index) }
      return word
    }
  }

  /// Reads a number that `append(variable:)` wrote.
  package mutating func variable() throws(Exhausted) -> UInt64 {
    var number: UInt64 = 0
    for shift in stride(from: UInt64(0), to: 64, by: 7) {
      let byte = try self.number(UInt8.self)
      number |= UInt64(byte & 0x7F) << shift
      if byte & 0x80 == 0 { return number }
    }
    throw Exhausted()
  }

  /// Reads a length of 32 bits and as many bytes; returns the bytes.
  package mutating func counted() throws(Exhausted) -> ArraySlice<UInt8> {
    try removeNext(Int(try number(UInt32.self)))
  }
}
