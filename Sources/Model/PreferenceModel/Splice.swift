import PropertyList

/// A write into the bytes of a string or of data, as pwrite(2) and ftruncate(2) make it: bytes at
/// an offset, and how many bytes there are afterwards. With splices, a long text that comes in
/// pieces costs the journal, messages and memory only the pieces, and not the whole text for each
/// piece.
///
/// Only the end of a value can move: a splice that changes the length reaches to the end. Therefore
/// a sequence of splices that is applied again to its own result, starting with any of them, makes
/// the same value.
public struct Splice: Equatable, Sendable {
  /// How many bytes the value has before.
  public let base: Int
  /// Where the bytes go: an offset in bytes.
  public let offset: Int
  /// The bytes that are written.
  public let bytes: [UInt8]
  /// How many bytes the value has afterwards.
  public let count: Int
  /// Whether the value's text is its bytes alone. Otherwise one newline follows them.
  public let isBare: Bool

  /// Returns nil where the numbers fit no value: they may come from a journal or another process.
  public init?(base: Int, offset: Int, bytes: [UInt8], count: Int, isBare: Bool) {
    let (end, overflow) = offset.addingReportingOverflow(bytes.count)
    guard !overflow, (0...base).contains(offset), end <= count, count == base || end == count,
      count <= Self.largest
    else { return nil }
    (self.base, self.offset, self.bytes) = (base, offset, bytes)
    (self.count, self.isBare) = (count, isBare)
  }

  /// How many bytes the largest value has that a splice can make.
  public static let largest = 1 << 30

  /// The offset behind the bytes that are written.
  var end: Int { offset + bytes.count }
}

/// Bytes in chunks. States of the same bytes share the chunks that a splice has left alone. A value
/// that splices made is kept in this form until its list is rewritten.
///
/// A copy costs O(1); a splice costs its bytes, two chunks, and a reference for each other chunk.
struct ChunkedBytes: Sendable {
  /// Each chunk has `chunkSize` bytes; the last one may have fewer.
  private var chunks: [[UInt8]] = []
  private(set) var count = 0

  private static let chunkSize = 1 << 14

  init(_ bytes: [UInt8]) { write(bytes[...], at: 0) }

  /// All bytes. Cost: O(count).
  var array: [UInt8] {
    var array: [UInt8] = []
    array.reserveCapacity(count)
    for chunk in chunks { array += chunk }
    return array
  }

  /// The byte at an offset that is less than `count`.
  subscript(offset: Int) -> UInt8 {
    chunks[offset / Self.chunkSize][offset % Self.chunkSize]
  }

  /// The bytes after the splice, whose base must be their number.
  func applying(_ splice: Splice) -> ChunkedBytes {
    var result = self
    if splice.end == splice.count { result.truncate(to: splice.offset) }
    result.write(splice.bytes[...], at: splice.offset)
    return result
  }

  private mutating func truncate(to size: Int) {
    let (whole, rest) = size.quotientAndRemainder(dividingBy: Self.chunkSize)
    if rest > 0 { chunks[whole].removeLast(chunks[whole].count - rest) }
    chunks.removeLast(chunks.count - whole - (rest > 0 ? 1 : 0))
    count = size
  }

  /// Puts the bytes in the place of those at the offset, which is at most `count`.
  private mutating func write(_ bytes: ArraySlice<UInt8>, at offset: Int) {
    var (rest, position) = (bytes, offset)
    while !rest.isEmpty {
      let (index, start) = position.quotientAndRemainder(dividingBy: Self.chunkSize)
      let part = rest.prefix(Self.chunkSize - start)
      if index == chunks.count { chunks.append([]) }
      let end = Swift.min(start + part.count, chunks[index].count)
      chunks[index].replaceSubrange(start..<end, with: part)
      position += part.count
      rest = rest.dropFirst(part.count)
    }
    count = Swift.max(count, position)
  }
}
