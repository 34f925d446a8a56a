/// A parser of a text format, which receives its document in pieces of any size. After each piece it
/// can tell whether it has a whole document, the beginning of one, or neither. It is a state machine
/// that consumes one byte at a time, or a whole run of plain bytes where its state allows it. Lines
/// are counted once for each piece, which is cheap.
///
/// The same parsers read files and judge text while a program writes it, so the two cannot
/// disagree. A parser must not be used after it has thrown.
protocol TextParser: Sendable {
  /// Returns the value if the bytes so far are a whole document, and throws otherwise. The parser
  /// stays as it is, so more bytes can follow.
  func result() throws(FormatError) -> Value

  /// The beginning of the current piece or, after an error, the position of the error.
  var position: TextPosition { get set }
  /// Checks that the document is UTF-8.
  var utf8: UTF8Validator { get set }

  /// Consumes one or more bytes of the piece, from the index on. The index is inside the piece.
  /// - Returns: the index of the first byte that it did not consume.
  mutating func step(
    _ piece: UnsafeBufferPointer<UInt8>, at index: Int
  ) throws(FormatError) -> Int

  /// Called at the end of each piece, for checks that are too expensive for every byte. Throws if
  /// no document begins with the bytes so far.
  func endPiece() throws(FormatError)

  /// The format of the documents, for errors.
  static var format: Format { get }
}

extension TextParser {
  /// Parses the next bytes. Throws if no document begins with the bytes so far.
  mutating func feed(_ bytes: UnsafeBufferPointer<UInt8>) throws(FormatError) {
    try consume(bytes)
    position.pass(bytes, upTo: bytes.count)
  }

  /// Parses the next bytes.
  mutating func feed(_ bytes: ArraySlice<UInt8>) throws(FormatError) {
    try bytes.withUnsafeBufferPointer { bytes throws(FormatError) in try feed(bytes) }
  }

  /// Parses a whole document and returns its value. Lines are counted only if there is an error.
  mutating func read(_ bytes: UnsafeBufferPointer<UInt8>) throws(FormatError) -> Value {
    try consume(bytes)
    do {
      return try result()
    } catch {
      position.pass(bytes, upTo: bytes.count)
      throw failure(error.reason)
    }
  }

  private mutating func consume(_ bytes: UnsafeBufferPointer<UInt8>) throws(FormatError) {
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

  /// Returns an error at the current position.
  func failure(_ reason: String) -> FormatError {
    FormatError(Self.format, offset: position.offset, line: position.line, reason)
  }
}

/// A position in a text document.
struct TextPosition: Sendable {
  /// The offset in bytes, from 0.
  var offset = 0
  /// The line, from 1.
  var line = 1

  /// Advances over the bytes of a piece before `end`.
  mutating func pass(_ bytes: UnsafeBufferPointer<UInt8>, upTo end: Int) {
    offset += end
    line += bytes.newlines(before: end)
  }
}
