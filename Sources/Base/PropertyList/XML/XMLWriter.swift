/// Writes Apple's XML property lists, with sorted keys and tabs as indentation.
struct XMLWriter {
  /// The readers that a document is for. In the first two dialects, a dictionary that would be read
  /// as a UID is refused.
  enum Dialect {
    /// For Foundation, plistlib and libplist. A value that they cannot read back exactly (a
    /// fraction of a second, a control character, a NaN with a payload) is refused instead of being
    /// lost. Foundation alone reads dates before the year 0 and after 9999; plistlib reads them in
    /// no format.
    case portable
    /// For a person or a program that reads a file of a mount. Control characters are character
    /// references. Dates have whole seconds, because other readers refuse a fraction; when the text
    /// is written back, `Recogniser` restores the fraction.
    case shown
    /// For those who need XML whatever the value is: as `shown`, but a dictionary that would be read
    /// as a UID is written, and a NaN has no payload.
    case any
  }

  private var sink: ByteSink
  private let dialect: Dialect

  /// Returns the value as a document. Throws if the dialect cannot hold the value.
  static func write(_ value: Value, _ dialect: Dialect) throws(FormatError) -> [UInt8] {
    var writer = XMLWriter(dialect, room: 256 + value.extent(of: 24))
    writer.sink.append(
      """
      <?xml version="1.0" encoding="UTF-8"?>
      <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" \
      "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
      <plist version="1.0">

      """)
    try writer.add(value, depth: 0)
    writer.sink.append("</plist>\n")
    return writer.sink.finish()
  }

  /// Returns the element of a value as it stands in a document at that depth, without the line's
  /// indentation and end.
  static func write(
    _ value: Value, depth: Int, _ dialect: Dialect = .portable
  ) throws(FormatError) -> [UInt8] {
    var writer = XMLWriter(dialect, room: value.extent(of: 24))
    try writer.add(value, depth: depth)
    return Array(writer.sink.finish().dropFirst(depth).dropLast())
  }

  /// Returns the element of a key; nil where XML cannot hold it.
  static func element(of key: Key, _ dialect: Dialect = .portable) -> [UInt8]? {
    guard let name = try? write(.string(key.string), depth: 0, dialect) else { return nil }
    // <string>KEY</string>
    let text = name.dropFirst("<string>".utf8.count).dropLast("</string>".utf8.count)
    return Array("<key>".utf8) + text + Array("</key>".utf8)
  }

  private init(_ dialect: Dialect, room: Int) {
    self.dialect = dialect
    sink = ByteSink(room: room)
  }

  private mutating func indent(_ depth: Int) {
    sink.append(repeating: UInt8(ascii: "\t"), count: depth)
  }

  private mutating func add(_ value: Value, depth: Int) throws(FormatError) {
    indent(depth)
    switch value {
    case .string(let text):
      sink.append("<string>")
      if !text.withBytes({ addPlain($0) }) { try escape(text) }
      sink.append("</string>\n")
    case .boolean(let flag): sink.append(flag ? "<true/>\n" : "<false/>\n")
    case .integer(let number):
      sink.append("<integer>")
      sink.append(number)
      sink.append("</integer>\n")
    case .real(let number):
      sink.append("<real>")
      sink.append(text: try realText(number))
      sink.append("</real>\n")
    case .single(let number):
      sink.append("<real>")
      sink.append(text: try realText(Double(number)))
      sink.append("</real>\n")
    case .date(let time):
      sink.append("<date>")
      try add(time)
      sink.append("</date>\n")
    case .data(let data):
      sink.append("<data>\n")
      addLines(of: data, depth: depth)
      indent(depth)
      sink.append("</data>\n")
    case .uid(let number): try add(ValueDictionary.uid(number), depth: depth)
    case .array(let items): try add(items, depth: depth)
    case .dictionary(let items):
      if dialect != .any, items.asUID != nil {
        throw FormatError(.xml, "a dictionary of CF$UID alone would be read as a UID")
      }
      try add(items, depth: depth)
    }
  }

  /// Appends base64 in lines of 76 columns, as CoreFoundation has them: a tab counts for 8 columns,
  /// and 8 tabs at most are counted and written.
  private mutating func addLines(of data: [UInt8], depth: Int) {
    let indentation = min(depth, 8)
    let bytes = (76 - 8 * indentation) / 4 * 3
    for start in stride(from: 0, to: data.count, by: bytes) {
      indent(indentation)
      Base64.encode(Array(data[start..<min(start + bytes, data.count)]), to: &sink)
      sink.append("\n")
    }
  }

  private mutating func add(_ items: [Value], depth: Int) throws(FormatError) {
    if items.isEmpty { return sink.append("<array/>\n") }
    sink.append("<array>\n")
    for item in items { try add(item, depth: depth + 1) }
    indent(depth)
    sink.append("</array>\n")
  }

  private mutating func add(_ items: ValueDictionary, depth: Int) throws(FormatError) {
    if items.isEmpty { return sink.append("<dict/>\n") }
    sink.append("<dict>\n")
    for item in items.sortedItems {
      indent(depth + 1)
      sink.append("<key>")
      if !item.key.withBytes({ addPlain($0) }) { try escape(item.key.string) }
      sink.append("</key>\n")
      try add(item.value, depth: depth + 1)
    }
    indent(depth)
    sink.append("</dict>\n")
  }

  /// Appends the text if it needs no escapes.
  /// - Returns: whether it was appended.
  @inline(__always)
  private mutating func addPlain(_ utf8: UnsafeBufferPointer<UInt8>) -> Bool {
    guard utf8.isPlainXML else { return false }
    sink.append(utf8)
    return true
  }

  /// Appends the text with escapes.
  private mutating func escape(_ text: String) throws(FormatError) {
    if dialect == .portable, text.unicodeScalars.contains(where: { $0.value & 0xFFFE == 0xFFFE }) {
      throw FormatError(.xml, "XML cannot hold U+FFFE and U+FFFF")
    }
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "<"): sink.append("&lt;")
      case UInt8(ascii: ">"): sink.append("&gt;")
      case UInt8(ascii: "&"): sink.append("&amp;")
      case 13: sink.append("&#13;")
      case 0..<9, 11, 12, 14..<32:
        guard dialect != .portable else {
          throw FormatError(.xml, "XML cannot hold the control character \(byte)")
        }
        sink.append(text: "&#\(byte);")
      default: sink.append(byte)
      }
    }
  }

  private mutating func add(_ time: AbsoluteTime) throws(FormatError) {
    let isDate = time.isInCalendar && time == time.inWholeSeconds
    guard dialect != .portable || isDate else {
      throw FormatError(.xml, "XML dates have whole seconds, not \(time.text)")
    }
    sink.append(time.inWholeSeconds)
  }

  /// Returns the text of a real. Other readers know a single NaN, so the portable dialect refuses a
  /// NaN with another bit pattern.
  private func realText(_ number: Double) throws(FormatError) -> String {
    if dialect == .any, number.isNaN { return "nan" }
    guard dialect == .shown || !number.isNaN || number.bitPattern == Double.nan.bitPattern else {
      throw FormatError(.xml, "XML cannot hold a NaN with a sign or payload")
    }
    // As CoreFoundation has it.
    if number == number.rounded(), number.magnitude < 1e15, number != 0 {
      return String(Int64(number))
    }
    return RealText.text(number)
  }
}

extension UnsafeBufferPointer<UInt8> {
  /// Whether all bytes can be written to XML without escapes. False for the byte 0xEF too, because
  /// it can begin U+FFFE or U+FFFF, which XML does not have.
  fileprivate var isPlainXML: Bool {
    isEveryEight { eight in
      // '<' and '>' differ in one bit.
      let brackets = (eight & UInt8(0xFD).repeated).firstByte(equal: 0x3C)
      let others = eight.firstByte(equal: 0x26) | eight.firstByte(equal: 0xEF)
      if brackets | others != 0 { return false }
      if eight.firstControl == 0 { return true }
      return eight.controls & ~(eight.bytes(equal: 9) | eight.bytes(equal: 10)) == 0
    }
  }
}

/// Writes reals as text.
enum RealText {
  /// Returns the shortest text that reads back as the same double, with a point or an exponent
  /// (`1.0`, `5e-324`), or `inf`, `-inf`, `nan`. A NaN with another sign or payload has its bits:
  /// `nan(0x7ff8000000000001)`.
  static func text(_ number: Double) -> String {
    guard number.isNaN, number.bitPattern != Double.nan.bitPattern else { return "\(number)" }
    return "nan(0x\(String(number.bitPattern, radix: 16)))"
  }
}
