/// A part of a write(2) with O_APPEND, which another part may follow.
///
/// The kernel splits a write(2) into several requests where it crosses the end of a page that is
/// not in the page cache (fs/fuse/file.c, fuse_fill_write_pages). On one mount the kernel lets no
/// other write come between the parts, but another mount of the store may append meanwhile. The
/// next part then goes directly behind this one and not to the end of the text, so that the bytes
/// of one write(2) stay in one piece. A part that ends inside a character, or inside a value, is
/// held by the file's editor. If the other mount's change takes the editor away, the next part
/// brings the held bytes with it.
struct AppendedPart: Equatable {
  /// The id of the thread that wrote the part.
  var writer: Int32
  /// The offset at which the part ended in the kernel's view of the file.
  var kernelEnd: Int
  /// The offset in the text behind which the next part goes: where the part ended when it was
  /// written, or, with held bytes, where these began.
  var end: Int
  /// The last bytes before `end`, by which it is found again.
  var tail: [UInt8]
  /// The bytes up to the end of the part that the editor held when the part was written, so that
  /// no value has them. Empty if the engine has the part.
  var held: [UInt8]

  /// Bytes of a page: the kernel splits a write(2) at multiples of it.
  private static let pageSize = 4096
  /// Bytes that are kept in `tail` at most.
  private static let longestTail = 256
  /// Bytes by which other writers may have moved the part towards the end of the text.
  private static let farthest = 1 << 16

  /// Creates a part that was saved.
  init(writer: Int32, kernelEnd: Int, end: Int, tail: [UInt8], held: [UInt8]) {
    (self.writer, self.kernelEnd, self.end) = (writer, kernelEnd, end)
    (self.tail, self.held) = (tail, held)
  }

  /// Returns nil if no other part can follow: the write did not end at a page's end, or its thread
  /// is not known.
  /// - Parameters:
  ///   - part: the range of the part in the text, with the held bytes that it brought, and the last
  ///     bytes of an earlier part.
  ///   - held: the range of the bytes that the editor holds; nil: none.
  init?(
    _ part: Range<Int>, in text: [UInt8], held: Range<Int>?, writer: Int32, kernelEnd: Int
  ) {
    guard kernelEnd % Self.pageSize == 0, writer != 0, !part.isEmpty else { return nil }
    (self.writer, self.kernelEnd) = (writer, kernelEnd)
    let unsaved = held?.clamped(to: 0..<part.upperBound) ?? part.upperBound..<part.upperBound
    end = unsaved.lowerBound
    tail = Array(text[min(part.lowerBound, end)..<end].suffix(Self.longestTail))
    self.held = Array(text[unsaved])
  }

  /// Whether a write can be the next part: the same thread makes it, at the kernel's end of this
  /// part.
  func goesOn(_ writer: Int32, at offset: Int) -> Bool {
    writer == self.writer && offset == kernelEnd
  }

  /// Finds the end of the part in the present text; nil if it is not found, so that the next part
  /// must go to the end of the text.
  func end(in text: [UInt8]) -> Int? {
    let last = min(text.count, end + Self.farthest)
    guard end <= last, !tail.isEmpty else { return nil }
    return (end...last).first { position in
      position >= tail.count && text[(position - tail.count)..<position].elementsEqual(tail)
    }
  }
}
