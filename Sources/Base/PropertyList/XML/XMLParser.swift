/// Parses Apple's XML property lists in pieces: a `<plist>` element with one value, or the value
/// alone.
///
/// It knows the five predefined entities and character references. It skips a DTD, so a document
/// cannot define entities. Integers may be hexadecimal (`0x1F`), dates may have a fraction and a
/// zone, and comments may be anywhere. The text must be UTF-8; `Document.read` converts UTF-16.
struct XMLParser: TextParser {
  enum State {
    case content, text, entity, markup, comment, instruction, doctype, doctypeComment, cdata, rest
  }

  /// An element that holds text; `true` and `false` hold none.
  enum Scalar: String, CaseIterable {
    case key, string, integer, real, date, data
    case yes = "true"
    case no = "false"
  }

  /// An element of a property list.
  enum Element: Equatable {
    case plist, dictionary, array
    case scalar(Scalar)
  }

  private(set) var state = State.content
  var builder: ValueBuilder
  var position = TextPosition()
  /// The open scalar element.
  var scalar: Scalar?
  var utf8 = UTF8Validator()
  /// The text of the open scalar.
  var text: [UInt8] = []
  /// The bytes of the current tag, comment, entity or declaration, from behind its `<` or `&` (in a
  /// comment, instruction or CDATA section, from behind its opening mark).
  var markup: [UInt8] = []
  /// The quotation mark that is open in a tag or a DTD.
  private var quote: UInt8?
  /// The number of open brackets in a DTD.
  private var doctypeDepth = 0
  /// The last four bytes of a DTD.
  private var doctypeEnd: UInt32 = 0
  var plist = PlistElement.absent
  private let checksEncoding: Bool
  let isLenient: Bool

  enum PlistElement { case absent, open, closed }

  /// Creates a parser that has received no text.
  /// - Parameters:
  ///   - size: the size of the document in bytes, or 0 if it is not known.
  ///   - checksEncoding: whether the encoding that the document declares must be UTF-8 or ASCII;
  ///     false if the text was converted to UTF-8.
  ///   - isLenient: whether it reads odd lists as Foundation does: anything may follow the list, a
  ///     date may be the 30th of February, base64 may be of any length. A text that somebody writes
  ///     as a value must be right, and end with it.
  init(
    limits: Limits = .standard, size: Int = 0, checksEncoding: Bool = true,
    isLenient: Bool = false
  ) {
    builder = ValueBuilder(limits: limits, size: size, findsUIDs: true)
    (self.checksEncoding, self.isLenient) = (checksEncoding, isLenient)
  }

  /// Whether the list is complete.
  private var isComplete: Bool { builder.root != nil && plist != .open }

  mutating func step(
    _ piece: UnsafeBufferPointer<UInt8>, at index: Int
  ) throws(FormatError) -> Int {
    if state == .content, isLenient, isComplete { state = .rest }
    if state == .rest { return piece.count }
    if state == .content, let end = try consumePlainElement(piece, at: index) { return end }
    let end = endOfRun(piece, from: index)
    if end > index {
      keep(UnsafeBufferPointer(rebasing: piece[index..<end]))
      return end
    }
    try consume(piece[index])
    return index + 1
  }

  func endPiece() throws(FormatError) {
    if state == .markup, !isPossibleTag { throw failure("an unknown element") }
  }

  /// Returns the end of the run of bytes from `start` on that do not change the state: text up to a
  /// tag or an entity, blanks between elements, or the name of a tag.
  private func endOfRun(_ bytes: UnsafeBufferPointer<UInt8>, from start: Int) -> Int {
    var index = start
    switch state {
    case .text: index = bytes.endOfRun(from: start, without: 0x3C, 0x26, controls: true)
    case .content: index = bytes.endOfBlanks(from: start)
    case .markup where quote == nil && !markup.isEmpty && markup.first != 0x21 && markup.count < 64:
      while index < bytes.count, bytes[index].isLetter { index += 1 }
    default: break
    }
    return index
  }

  /// Keeps a run of bytes that do not change the state.
  private mutating func keep(_ run: UnsafeBufferPointer<UInt8>) {
    switch state {
    case .text: text.append(contentsOf: run)
    case .markup: markup.append(contentsOf: run)
    default: break
    }
  }

  func result() throws(FormatError) -> Value {
    guard state == .content || state == .rest, scalar == nil, plist != .open,
      let root = builder.root
    else {
      throw failure("the text ends too early")
    }
    return root
  }

  static let format = Format.xml

  private mutating func consume(_ byte: UInt8) throws(FormatError) {
    switch state {
    case .content:
      if byte == UInt8(ascii: "<") {
        beginMarkup()
      } else if !byte.isBlank {
        throw failure("text outside of an element")
      }
    case .text:
      if byte == UInt8(ascii: "<") { beginMarkup() } else { (state, markup) = (.entity, []) }
    case .entity: try consumeInEntity(byte)
    case .markup: try consumeInMarkup(byte)
    case .comment: if endsMarkup(byte, "-->") { endMarkup() }
    case .cdata:
      if endsMarkup(byte, "]]>") {
        text.append(contentsOf: markup.dropLast(3))
        endMarkup()
      }
    case .instruction: if endsMarkup(byte, "?>") { try endInstruction() }
    case .doctype: consumeInDoctype(byte)
    case .doctypeComment: consumeInDoctypeComment(byte)
    case .rest: break
    }
  }

  private mutating func beginMarkup() {
    markup.removeAll(keepingCapacity: true)
    quote = nil
    state = .markup
  }

  /// Returns to the state outside of markup: the text of the open scalar, or between elements.
  mutating func endMarkup() { state = scalar == nil ? .content : .text }

  private mutating func consumeInMarkup(_ byte: UInt8) throws(FormatError) {
    if let open = quote {
      if byte == open { quote = nil }
    } else if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") {
      quote = byte
    } else if byte == UInt8(ascii: ">") {
      return try endTag()
    } else if byte == UInt8(ascii: "<") {
      throw failure("'<' inside a tag")
    }
    markup.append(byte)
    guard markup.count < 4096 else { throw failure("a tag longer than 4096 bytes") }
    guard markup.first.map({ $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "!") }) == true else {
      return
    }
    switch markup.first {
    case UInt8(ascii: "?"): (state, markup) = (.instruction, [])
    case UInt8(ascii: "!"): try consumeDeclaration()
    default: break
    }
  }

  private mutating func consumeDeclaration() throws(FormatError) {
    let declarations: [(StaticString, State)] =
      scalar == nil
      ? [("!--", .comment), ("!DOCTYPE", .doctype)]
      : [("!--", .comment), ("![CDATA[", .cdata)]
    for (word, next) in declarations where markup.isPrefix(of: word) {
      if markup.count == word.utf8CodeUnitCount { (state, markup, doctypeDepth) = (next, [], 0) }
      return
    }
    throw failure("an unknown declaration")
  }

  /// Keeps the byte, and returns whether it completes the mark that ends a comment, an instruction
  /// or a CDATA section.
  private mutating func endsMarkup(_ byte: UInt8, _ end: StaticString) -> Bool {
    markup.append(byte)
    let count = end.utf8CodeUnitCount
    guard markup.count >= count, byte == UInt8(ascii: ">") else { return false }
    return markup.suffix(count).elementsEqual(
      UnsafeBufferPointer(start: end.utf8Start, count: count))
  }

  /// Skips a byte of a comment in a DTD, in which neither brackets nor quotes count.
  private mutating func consumeInDoctypeComment(_ byte: UInt8) {
    doctypeEnd = doctypeEnd << 8 | UInt32(byte)
    guard doctypeEnd & 0xFF_FFFF == 0x2D_2D3E else { return }  // -->
    state = .doctype
    doctypeDepth -= 1
  }

  /// Skips a byte of a DTD. Only brackets, quotes and comments count, to find its end.
  private mutating func consumeInDoctype(_ byte: UInt8) {
    doctypeEnd = doctypeEnd << 8 | UInt32(byte)
    if let open = quote {
      if byte == open { quote = nil }
      return
    }
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "'"): quote = byte
    case UInt8(ascii: "["), UInt8(ascii: "<"): doctypeDepth += 1
    case UInt8(ascii: "]"): doctypeDepth -= 1
    case UInt8(ascii: ">") where doctypeDepth <= 0: endMarkup()
    case UInt8(ascii: ">"): doctypeDepth -= 1
    case UInt8(ascii: "-") where doctypeEnd == 0x3C21_2D2D:  // <!--
      (state, doctypeEnd) = (.doctypeComment, 0)
    default: break
    }
  }

  /// The encodings, in lower case, that need no conversion to UTF-8.
  static let encodings = ["utf-8", "utf8", "us-ascii", "ascii"]

  /// Ends a processing instruction. Throws if it is an XML declaration with an unsupported
  /// encoding.
  private mutating func endInstruction() throws(FormatError) {
    let declaration = String(decoding: markup, as: UTF8.self)
    endMarkup()
    guard checksEncoding, declaration.hasPrefix("xml"),
      let name = declaration.quoted(after: "encoding=")
    else { return }
    guard Self.encodings.contains(name.lowercased()) else {
      throw failure("the encoding \(name) is not supported (use UTF-8 or UTF-16)")
    }
  }
}

extension [UInt8] {
  fileprivate func isPrefix(of word: StaticString) -> Bool {
    count <= word.utf8CodeUnitCount
      && elementsEqual(UnsafeBufferPointer(start: word.utf8Start, count: count))
  }
}

extension String {
  /// Returns the quoted text right behind the word; nil if there is none.
  func quoted(after word: String) -> String? {
    var rest = utf8[...]
    let key = Array(word.utf8)
    while !rest.isEmpty {
      if rest.starts(with: key) {
        let value = rest.dropFirst(key.count)
        guard let mark = value.first, mark == 0x22 || mark == 0x27 else { return nil }
        return String(value.dropFirst().prefix { $0 != mark })
      }
      rest = rest.dropFirst()
    }
    return nil
  }
}
