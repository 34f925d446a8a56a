import SystemCalls

/// A part of a write(2) with O_APPEND, which another part may follow.
///
/// The kernel splits a write(2) into several requests where it crosses the end of a page that is
/// not in the page cache (fs/fuse/file.c, fuse_fill_write_pages). On one mount the kernel lets no
/// other write come between the parts, but another mount of the store may append meanwhile. The
/// next part then goes directly behind this one and not to the end of the text, so that the bytes
/// of one write(2) stay in one piece. A part that ends inside a character, or inside a value, is
/// held by the file's editor. If the other mount's change takes the editor away, the held bytes are
/// kept here, and the next part brings them with it.
struct AppendedPart: Equatable {
  /// The id of the thread that wrote the part.
  var writer: Int32
  /// The offset at which the part ended in the kernel's view of the file.
  var kernelEnd: Int
  /// The engine has the first bytes of the write(2), or all: the offset in the text at which they
  /// ended.
  var end: Int
  /// The last of these bytes, by which `end` is found again; empty if the engine has none of them.
  var tail: [UInt8]
  /// The editor holds the other bytes: where they are in its text. It is nil if there are none.
  var held: Range<Int>?
  /// The held bytes, once the editor was taken away, and until when they may still be written.
  var lost: [UInt8] = []
  var lostUntil = Instant(nanoseconds: 0)

  /// Bytes of a page: the kernel splits a write(2) at multiples of it.
  private static let pageSize = 4096
  /// Bytes that are kept in `tail` at most.
  private static let longestTail = 256
  /// Bytes by which other writers may have moved the part towards the end of the text.
  private static let farthest = 1 << 16
}

extension AppendedPart {
  /// Returns nil if no other part can follow: the write did not end at a page's end, or its thread
  /// is not known.
  /// - Parameters:
  ///   - range: where the part is in the editor's text, with what was lost before it.
  ///   - earlier: the part before it; nil if it is the first.
  ///   - wasHeld: whether the editor held the part before it.
  init?(
    _ range: Range<Int>, of editor: TextEditor, after earlier: AppendedPart?, wasHeld: Bool,
    writer: Int32, kernelEnd: Int
  ) {
    guard kernelEnd % Self.pageSize == 0, writer != 0, !range.isEmpty else { return nil }
    (self.writer, self.kernelEnd) = (writer, kernelEnd)
    let text = editor.text
    if !editor.isHeld {
      (end, tail) = (range.upperBound, Array(text[range].suffix(Self.longestTail)))
    } else if wasHeld, let earlier, let before = earlier.held,
      before.upperBound == range.lowerBound
    {
      (end, tail) = (earlier.end, earlier.tail)
      held = before.lowerBound..<range.upperBound
    } else {
      (end, held) = (range.lowerBound, range)
      tail = earlier == nil ? [] : Array(text[..<end].suffix(Self.longestTail))
    }
  }

  /// The part after the editor that held its end was taken away.
  func losing(_ editor: TextEditor) -> AppendedPart {
    guard editor.isHeld, let held, held.upperBound == editor.text.count,
      let until = editor.deadline
    else { return self }
    return losing(Array(editor.text[held]), until)
  }

  /// The part with bytes that no editor holds any more.
  func losing(_ bytes: [UInt8], _ until: Instant) -> AppendedPart {
    var part = self
    (part.lost, part.lostUntil) = (bytes, until)
    return part
  }

  /// Whether a write can be the next part: the same thread makes it, at the kernel's end of this
  /// part.
  func goesOn(_ writer: Int32, at offset: Int) -> Bool {
    writer == self.writer && offset == kernelEnd
  }

  /// Where the next part goes in the present text: behind what the engine has of the write(2), or
  /// else to the end.
  func next(in text: [UInt8]) -> Int {
    // What the editor held was committed, at the end.
    if held != nil, lost.isEmpty { return text.count }
    let last = min(text.count, end + Self.farthest)
    guard end <= last, !tail.isEmpty else { return text.count }
    return (end...last).first { position in
      position >= tail.count && text[(position - tail.count)..<position].elementsEqual(tail)
    } ?? text.count
  }
}

extension [UInt8] {
  /// Whether the last character of the text lacks bytes.
  var endsInsideCharacter: Bool {
    guard let start = suffix(4).lastIndex(where: { $0 & 0xC0 != 0x80 }) else { return false }
    let length = Swift.max(1, (~self[start]).leadingZeroBitCount)
    return self[start] >= 0xC0 && count - start < length
  }
}
