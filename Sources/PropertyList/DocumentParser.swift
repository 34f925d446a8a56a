/// A reader that takes its document in pieces of any size and can say after each piece whether
/// it is a whole document, the beginning of one, or neither.
///
/// The readers of files and the recognisers of text that is being written are the same code, so
/// they cannot disagree. After an error the parser is spent.
protocol DocumentParser: Sendable {
  /// Takes the next bytes. Throws when no document begins with what was taken.
  mutating func feed(_ bytes: UnsafeBufferPointer<UInt8>) throws(FormatError)

  /// The value, when what was taken is a whole document. Never changes what comes next.
  func result() throws(FormatError) -> Value
}

/// Where in a text document a parser is.
struct TextPosition: Sendable {
  var offset = 0
  var line = 1

  /// Moves over the byte.
  @inline(__always)
  mutating func pass(_ byte: UInt8) {
    offset &+= 1
    if byte == UInt8(ascii: "\n") { line &+= 1 }
  }

  /// Moves over all bytes, or those before the index. Counting the lines of a piece at its end,
  /// not byte by byte, costs nearly nothing.
  mutating func pass(_ bytes: UnsafeBufferPointer<UInt8>, upTo end: Int) {
    var lines = 0
    for index in 0..<end { lines &+= bytes[index] == UInt8(ascii: "\n") ? 1 : 0 }
    offset += end
    line += lines
  }
}
