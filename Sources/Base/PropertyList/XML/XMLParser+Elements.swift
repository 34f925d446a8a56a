// The meaning of the tags of an XML property list, and of the text between them.

extension XMLParser {
  private static let elements: [(name: [UInt8], element: Element)] = {
    let containers: [(String, Element)] = [
      ("dict", .dictionary), ("array", .array), ("plist", .plist),
    ]
    let scalars = Scalar.allCases.map { ($0.rawValue, Element.scalar($0)) }
    return (scalars + containers).map { (Array($0.0.utf8), $0.1) }
  }()

  /// Whether the tag that is being read can still become a tag of a property list.
  var isPossibleTag: Bool {
    guard let first = markup.first, first != UInt8(ascii: "!") else { return true }
    let name = markup.drop { $0 == UInt8(ascii: "/") }.prefix { !$0.isBlank && $0 != 0x2F }
    return Self.elements.contains { $0.name.starts(with: name) }
  }

  /// Handles the tag in `markup`, which is complete.
  mutating func endTag() throws(FormatError) {
    let closes = markup.first == UInt8(ascii: "/")
    let empty = !closes && markup.last == UInt8(ascii: "/")
    let tag = markup[(closes ? 1 : 0)..<(empty ? markup.count - 1 : markup.count)]
    let name = tag.prefix { !$0.isBlank }
    guard let element = Self.elements.first(where: { $0.name.elementsEqual(name) })?.element else {
      throw failure("an unknown element")
    }
    if closes {
      try close(element)
    } else {
      try open(element)
      if empty { try close(element) }
    }
    endMarkup()
  }

  mutating func open(_ element: Element) throws(FormatError) {
    guard scalar == nil else { throw failure("an element inside <\(scalar?.rawValue ?? "")>") }
    switch element {
    case .plist:
      guard plist == .absent, builder.root == nil, builder.depth == 0 else {
        throw failure("<plist> inside a property list")
      }
      plist = .open
    case .dictionary:
      try expectElement(isKey: false)
      try builder.begin(.dictionary)
    case .array:
      try expectElement(isKey: false)
      try builder.begin(.array)
    case .scalar(let kind):
      try expectElement(isKey: kind == .key)
      scalar = kind
      text.removeAll(keepingCapacity: true)
    }
  }

  /// Throws if a key (`isKey`) or a value must not begin here. A `<key>` where a value is expected is
  /// a string to a lenient parser.
  func expectElement(isKey: Bool) throws(FormatError) {
    guard plist != .closed else { throw failure("an element after </plist>") }
    if builder.awaitsKey {
      guard isKey else { throw failure("a value where a <key> was expected") }
    } else if isKey, !isLenient {
      throw failure("<key> where a value was expected")
    } else if builder.depth == 0, builder.root != nil {
      throw failure("an element after the value")
    }
  }

  mutating func close(_ element: Element) throws(FormatError) {
    if let open = scalar {
      guard element == .scalar(open) else { throw failure("expected </\(open.rawValue)>") }
      return try endScalar(open)
    }
    switch (element, builder.open) {
    case (.dictionary, .dictionary):
      guard !builder.hasPendingKey else { throw failure("</dict> where a value was expected") }
      try builder.end()
    case (.array, .array): try builder.end()
    case (.plist, nil) where plist == .open && builder.root != nil: plist = .closed
    default: throw failure("an unexpected end tag")
    }
  }

  /// Ends the open scalar, whose text is in `text`.
  private mutating func endScalar(_ kind: Scalar) throws(FormatError) {
    let text = self.text
    scalar = nil
    try text.withUnsafeBufferPointer { text throws(FormatError) in try endScalar(kind, text) }
  }

  /// Adds the key or value of a complete element with this text.
  mutating func endScalar(
    _ kind: Scalar, _ text: UnsafeBufferPointer<UInt8>
  ) throws(FormatError) {
    if kind == .key, builder.awaitsKey { return builder.add(key: text) }
    guard let value = value(of: kind, text) ?? lenientValue(of: kind, text) else {
      throw failure("the text of <\(kind.rawValue)> is not valid")
    }
    try builder.add(value)
  }

  private func value(of kind: Scalar, _ text: UnsafeBufferPointer<UInt8>) -> Value? {
    switch kind {
    case .key, .string: .string(String(valid: text))
    case .integer: integer(text).map { .integer($0) }
    case .real: real(text).map { .real($0) }
    case .date: Padded.value(of: text, DateParser())
    case .data: Base64.decode(text).map { .data($0) }
    case .yes: text.allSatisfy(\.isBlank) ? .boolean(true) : nil
    case .no: text.allSatisfy(\.isBlank) ? .boolean(false) : nil
    }
  }

  /// Returns the value that CoreFoundation reads from a text that `value(of:_:)` refuses; nil if
  /// there is none, and if this parser is not lenient.
  private func lenientValue(of kind: Scalar, _ text: UnsafeBufferPointer<UInt8>) -> Value? {
    guard isLenient else { return nil }
    switch kind {
    case .data: return .data(Base64.decodeLeniently(text))
    case .date: return LenientDate.time(text).map { .date($0) }
    case .integer: return lenientInteger(text).map { .integer($0) }
    case .key, .string, .real, .yes, .no: return nil
    }
  }

  /// Returns the integer of a text with blanks behind the sign, or of another kind around it.
  private func lenientInteger(_ text: UnsafeBufferPointer<UInt8>) -> WideInteger? {
    func isBlank(_ scalar: Unicode.Scalar) -> Bool {
      scalar.value <= 0x20 || scalar.value == 0x7F || scalar == "\u{200B}"
        || scalar.properties.isWhitespace
    }
    let scalars = String(decoding: text, as: UTF8.self).unicodeScalars.drop(while: isBlank)
    let hasSign = scalars.first == "-" || scalars.first == "+"
    let digits = hasSign ? scalars.dropFirst().drop(while: isBlank) : scalars
    guard let first = digits.first, first != "-", first != "+" else { return nil }
    let number = (scalars.first == "-" ? "-" : "") + String(String.UnicodeScalarView(digits))
    return number.withBytes { integer($0) }
  }

  /// Returns the integer that the text stands for; nil if it is not one. The text is decimal or, as
  /// CoreFoundation and plistlib accept it, hexadecimal.
  private func integer(_ text: UnsafeBufferPointer<UInt8>) -> WideInteger? {
    let digits = text.trimmed
    if let number = WideInteger(decimal: digits) { return number }
    let negative = digits.first == UInt8(ascii: "-")
    let unsigned = negative || digits.first == UInt8(ascii: "+") ? digits.dropFirst() : digits
    guard unsigned.count > 2, unsigned.first == 0x30,
      unsigned.dropFirst().first.map({ $0 | 0x20 }) == 0x78,
      unsigned.dropFirst(2).first?.hexValue != nil,
      let magnitude = UInt64(String(decoding: unsigned.dropFirst(2), as: UTF8.self), radix: 16)
    else { return nil }
    return WideInteger(negative: negative, magnitude: magnitude)
  }

  /// Returns the real that the text stands for; nil if it is not one. A number beyond the range of
  /// a double is infinite, as in CoreFoundation.
  private func real(_ text: UnsafeBufferPointer<UInt8>) -> Double? {
    if case .real(let number)? = Padded.value(of: text, RealScanner()) { return number }
    let digits = text.trimmed
    guard digits.count < 1100, digits.allSatisfy({ $0.isDigit || "+-.eE".utf8.contains($0) })
    else { return nil }
    return Double(String(decoding: digits, as: UTF8.self))
  }

  /// Consumes a byte of an entity or a character reference.
  mutating func consumeInEntity(_ byte: UInt8) throws(FormatError) {
    guard byte == UInt8(ascii: ";") else {
      markup.append(byte)
      guard markup.count <= 10, byte != UInt8(ascii: "<") else {
        throw failure("'&' without an entity")
      }
      return
    }
    let name = String(decoding: markup, as: UTF8.self)
    guard let scalar = Self.entities[name] ?? Self.characterReference(name) else {
      throw failure("an unknown entity")
    }
    text.append(contentsOf: Array(String(Character(scalar)).utf8))
    endMarkup()
  }

  private static let entities: [String: Unicode.Scalar] = [
    "lt": "<", "gt": ">", "amp": "&", "quot": "\"", "apos": "'",
  ]

  /// Returns the character that `#65` or `#x41` stands for; nil if there is none.
  private static func characterReference(_ name: String) -> Unicode.Scalar? {
    let digits = name.utf8.dropFirst()
    guard name.utf8.first == UInt8(ascii: "#"), let first = digits.first else { return nil }
    let isHex = first == UInt8(ascii: "x")
    let text = String(decoding: isHex ? digits.dropFirst() : digits, as: UTF8.self)
    guard text.utf8.first?.hexValue != nil else { return nil }
    return UInt32(text, radix: isHex ? 16 : 10).flatMap(Unicode.Scalar.init)
  }
}

extension UnsafeBufferPointer<UInt8> {
  /// The bytes without the blanks at both ends.
  fileprivate var trimmed: Slice<Self> {
    var slice = self[...]
    while slice.first?.isBlank == true { slice.removeFirst() }
    while slice.last?.isBlank == true { slice.removeLast() }
    return slice
  }
}
