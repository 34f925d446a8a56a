/// Parses old-style (OpenStep) lists in pieces.
///
/// It knows `{ key = value; }`, `( a, b )`, `"quoted"` and plain strings, `<0fbd77>` data,
/// comments, `key = value;` pairs without braces (.strings files), and the typed values of GNUstep:
/// `<*I5>`, `<*R1.5>`, `<*BY>`, `<*D2001-01-01 ...>`.
struct OpenStepParser: TextParser {
  enum State {
    case key, value, equals, pairEnd, separator, element
    case plain, quoted, escape, octal, unicode, data
    case slash, lineComment, blockComment, blockCommentStar
  }

  var state: State
  /// The state to return to when the current comment ends.
  var afterComment: State
  var builder: ValueBuilder
  var position = TextPosition()
  var utf8 = UTF8Validator()
  /// The bytes of the string or data so far.
  var token: [UInt8] = []
  /// The quotation mark that ends the current string.
  var quote: UInt8 = 0
  /// Whether the current string is a key.
  var isKey = false
  /// The number of an octal or `\U` escape so far, and how many of its digits have come.
  var number: UInt32 = 0
  var digits = 0
  /// The first half of a surrogate pair, which waits for the second.
  var highSurrogate: UInt32?
  /// Whether the document is `key = value;` pairs without braces.
  var isBare = false
  /// The string that begins the document. If `=` follows, it is the first key of pairs without
  /// braces.
  var firstString: String?

  /// Whether nothing but blanks and comments is an empty dictionary.
  private let readsBlank: Bool
  let isLenient: Bool
  /// The bytes of a `\U` or `\u` escape so far, without the backslash.
  var escape: [UInt8] = []

  /// Creates a parser that has received no text.
  /// - Parameters:
  ///   - size: the size of the document in bytes, or 0 if it is not known.
  ///   - readsBlank: whether nothing but blanks and comments is an empty dictionary, as in
  ///     Foundation. It is no value that somebody writes.
  ///   - isLenient: whether half of a surrogate pair is U+FFFD, as in Foundation.
  init(
    limits: Limits = .standard, size: Int = 0, readsBlank: Bool = false, isLenient: Bool = false
  ) {
    (self.readsBlank, self.isLenient) = (readsBlank, isLenient)
    builder = ValueBuilder(limits: limits, size: size)
    (state, afterComment) = (.value, .value)
  }

  mutating func step(
    _ piece: UnsafeBufferPointer<UInt8>, at index: Int
  ) throws(FormatError) -> Int {
    let end: Int
    switch state {
    case .key, .value, .equals, .pairEnd, .separator, .element:
      if piece[index].isBlank { return piece.endOfBlanks(from: index) }
      end = index
    case .quoted where highSurrogate == nil:
      end = piece.endOfRun(from: index, without: quote, UInt8(ascii: "\\"), controls: true)
    case .plain: end = piece.endOfPlain(from: index)
    default: end = index
    }
    let run = UnsafeBufferPointer(rebasing: piece[index..<end])
    if state == .quoted, token.isEmpty, end < piece.count, piece[end] == quote,
      highSurrogate == nil
    {
      try endString(run)
      return end + 1
    }
    guard run.isEmpty else {
      token.append(contentsOf: run)
      return end
    }
    try consume(piece[index])
    return index + 1
  }

  /// Returns the value if the bytes so far are a whole document. Cost: O(1); for pairs without
  /// braces, O(pairs) for each call.
  func result() throws(FormatError) -> Value {
    var copy = self
    if copy.state == .lineComment { copy.state = copy.afterComment }
    if readsBlank, copy.state == .value, copy.builder.depth == 0 { return .dictionary([:]) }
    if copy.state == .plain { try copy.endString() }
    if copy.state == .key, copy.isBare, copy.builder.depth == 1 {
      try copy.end()
    } else if let firstString = copy.firstString {
      return .string(firstString)
    }
    guard copy.state == .separator, let root = copy.builder.root else {
      throw failure("the text ends too early")
    }
    return root
  }

  static let format = Format.openStep

  mutating func consume(_ byte: UInt8) throws(FormatError) {
    switch state {
    case .plain: try consumeInPlain(byte)
    case .quoted: try consumeInQuoted(byte)
    case .escape: try consumeEscape(byte)
    case .octal: try consumeOctal(byte)
    case .unicode: try consumeUnicode(byte)
    case .data: try consumeInData(byte)
    case .slash: try consumeAfterSlash(byte)
    case .lineComment: if byte == UInt8(ascii: "\n") || byte == 13 { state = afterComment }
    case .blockComment: if byte == UInt8(ascii: "*") { state = .blockCommentStar }
    case .blockCommentStar:
      if byte == UInt8(ascii: "/") {
        state = afterComment
      } else if byte != UInt8(ascii: "*") {
        state = .blockComment
      }
    case _ where byte.isBlank || byte == 11 || byte == 12: break
    case _ where byte == UInt8(ascii: "/"): (afterComment, state) = (state, .slash)
    default: try consumeStructure(byte)
    }
  }

  /// Consumes a byte outside of strings, data, comments and blanks.
  mutating func consumeStructure(_ byte: UInt8) throws(FormatError) {
    switch (state, byte) {
    case (.key, UInt8(ascii: "}")) where !isBare || builder.depth > 1: try end()
    case (.key, _): try beginString(byte, isKey: true)
    case (.equals, UInt8(ascii: "=")): state = .value
    case (.equals, UInt8(ascii: ";")): try repeatKey()
    case (.pairEnd, UInt8(ascii: ";")): state = .key
    case (.element, UInt8(ascii: ")")): try end()
    case (.separator, UInt8(ascii: ")")) where builder.open == .array: try end()
    case (.separator, UInt8(ascii: ",")) where builder.open == .array: state = .element
    case (.separator, UInt8(ascii: "=")) where firstString != nil: try beginBare()
    case (.separator, UInt8(ascii: ";")) where firstString != nil:
      try beginBare()
      try repeatKey()
    case (.value, UInt8(ascii: "{")), (.element, UInt8(ascii: "{")): try begin(.dictionary)
    case (.value, UInt8(ascii: "(")), (.element, UInt8(ascii: "(")): try begin(.array)
    case (.value, UInt8(ascii: "<")), (.element, UInt8(ascii: "<")): beginToken(.data)
    case (.value, _), (.element, _): try beginString(byte, isKey: false)
    case (.equals, _): throw failure("expected '=' or ';' after a key")
    case (.pairEnd, _): throw failure("expected ';' after a value")
    case (.separator, _) where builder.open == .array: throw failure("expected ',' or ')'")
    default: throw failure("text after the end of the value")
    }
  }

  /// Ends a pair that has only a key: its value is the key.
  private mutating func repeatKey() throws(FormatError) {
    try builder.repeatKeyAsValue()
    state = .key
  }

  mutating func begin(_ container: ValueBuilder.Container) throws(FormatError) {
    try builder.begin(container)
    state = container == .array ? .element : .key
  }

  /// Begins the dictionary of a document without braces. Its first string is the first key.
  mutating func beginBare() throws(FormatError) {
    guard let key = firstString else { return }
    firstString = nil
    isBare = true
    try begin(.dictionary)
    key.withBytes { builder.add(key: $0) }
    state = .value
  }

  mutating func end() throws(FormatError) {
    try builder.end()
    endValue()
  }

  mutating func endValue() {
    state = builder.open == .dictionary ? .pairEnd : .separator
  }

  mutating func add(_ value: consuming Value) throws(FormatError) {
    try builder.add(value)
    endValue()
  }

  mutating func consumeAfterSlash(_ byte: UInt8) throws(FormatError) {
    switch byte {
    case UInt8(ascii: "/"): state = .lineComment
    case UInt8(ascii: "*"): state = .blockComment
    default:
      state = afterComment
      guard state == .key || state == .value || state == .element else {
        throw failure("expected a comment after '/'")
      }
      try beginString(UInt8(ascii: "/"), isKey: state == .key)
      try consume(byte)
    }
  }
}
