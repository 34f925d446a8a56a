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

extension DocumentParser {
  /// Takes the next bytes.
  mutating func feed(_ bytes: ArraySlice<UInt8>) throws(FormatError) {
    var failure: FormatError?
    bytes.withUnsafeBufferPointer { buffer in
      do throws(FormatError) { try feed(buffer) } catch { failure = error }
    }
    if let failure { throw failure }
  }
}

/// A parser of text: a state machine that takes a byte at a time, and whole runs of plain bytes
/// where its state allows it. The lines are counted a piece at a time, which costs nearly nothing.
protocol TextParser: DocumentParser {
  /// Where the present piece begins, and where the parser is once it has failed.
  var position: TextPosition { get set }
  var utf8: UTF8Validator { get set }

  /// Takes one byte or more at the index, which is one of the piece's.
  /// - Returns: the index of the next.
  mutating func step(
    _ piece: UnsafeBufferPointer<UInt8>, at index: Int
  ) throws(FormatError) -> Int

  /// Throws what can be said only at the end of a piece.
  func endPiece() throws(FormatError)

  /// The format of the documents, for errors.
  static var format: Format { get }
}

extension TextParser {
  mutating func feed(_ bytes: UnsafeBufferPointer<UInt8>) throws(FormatError) {
    try take(bytes)
    position.pass(bytes, upTo: bytes.count)
  }

  /// Takes a whole document; its lines are counted only for an error.
  mutating func read(_ bytes: UnsafeBufferPointer<UInt8>) throws(FormatError) -> Value {
    try take(bytes)
    do {
      return try result()
    } catch {
      position.pass(bytes, upTo: bytes.count)
      throw failure(error.reason)
    }
  }

  private mutating func take(_ bytes: UnsafeBufferPointer<UInt8>) throws(FormatError) {
    guard utf8.feed(bytes) else { throw failure("text that is not UTF-8") }
    var index = 0
    do throws(FormatError) {
      while index < bytes.count { index = try step(bytes, at: index) }
      try endPiece()
    } catch {
      position.pass(bytes, upTo: index)
      throw failure(error.reason)
    }
  }

  func endPiece() throws(FormatError) {}

  /// An error at the present position.
  func failure(_ reason: String) -> FormatError {
    FormatError(Self.format, offset: position.offset, line: position.line, reason)
  }
}

/// Where in a text document a parser is.
struct TextPosition: Sendable {
  var offset = 0
  var line = 1

  /// Moves over the bytes before the index.
  mutating func pass(_ bytes: UnsafeBufferPointer<UInt8>, upTo end: Int) {
    offset += end
    line += bytes.newlines(before: end)
  }
}
