/// A part of a write(2) with O_APPEND that the kernel may go on with.
///
/// The kernel sends one write(2) in parts where it crosses the end of a page that is not in the cache
/// (fs/fuse/file.c, fuse_fill_write_pages). On one mount it lets nobody else write in between; another mount
/// of the store may. The next part then goes behind this one, not to the end, so that what was written with
/// one call stays in one piece.
struct AppendedPart {
  /// The thread that wrote.
  var writer: Int32
  /// Where the kernel believes that the part ended.
  var kernelEnd: Int
  /// Where it ends.
  var end: Int
  /// Its last bytes.
  var tail: [UInt8]

  /// Where the kernel splits.
  private static let pageSize = 4096
  private static let longestTail = 256
  /// How far others may have moved the part.
  private static let farthest = 1 << 16

  /// nil where no other part can follow.
  init?(_ bytes: [UInt8], writer: Int32, kernelOffset: Int, end: Int) {
    kernelEnd = kernelOffset + bytes.count
    guard kernelEnd % Self.pageSize == 0, writer != 0, !bytes.isEmpty else { return nil }
    (self.writer, self.end) = (writer, end)
    tail = Array(bytes.suffix(Self.longestTail))
  }

  /// Whether a write can be the next part: the same thread's, where the kernel believes the part to end.
  func goesOn(_ writer: Int32, at offset: Int) -> Bool {
    writer == self.writer && offset == kernelEnd
  }

  /// Where the part ends in the text as it is now; nil where it is not to be found: then the rest goes to the
  /// end.
  func end(in text: [UInt8]) -> Int? {
    let last = min(text.count, end + Self.farthest)
    guard end <= last else { return nil }
    return (end...last).first { position in
      position >= tail.count && text[(position - tail.count)..<position].elementsEqual(tail)
    }
  }
}
