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

  /// Moves over a run of bytes.
  mutating func pass(_ bytes: Slice<UnsafeBufferPointer<UInt8>>) {
    offset += bytes.count
    for byte in bytes where byte == UInt8(ascii: "\n") { line += 1 }
  }
}
