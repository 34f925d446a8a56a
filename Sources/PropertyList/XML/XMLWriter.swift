/// Writes Apple's XML property lists, keys sorted, tabs for depth.
struct XMLWriter {
  /// Who is to read it.
  enum Dialect {
    /// Foundation, plistlib and libplist: what they cannot hold (a fraction of a second, control
    /// characters, a dictionary that looks like a UID) is refused rather than lost.
    case portable
    /// A person or a program that reads a file of a mount. Everything can be written; dates are in whole
    /// seconds, because other readers refuse a fraction: `Recogniser` knows what was left out where the
    /// text comes back.
    case shown
  }

  private var sink: ByteSink
  private let dialect: Dialect

  /// The document.
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
      sink.append("<data>")
      Base64.encode(data, to: &sink)
      sink.append("</data>\n")
    case .uid(let number): try add(ValueDictionary.uid(number), depth: depth)
    case .array(let items): try add(items, depth: depth)
    case .dictionary(let items):
      if items.asUID != nil {
        throw FormatError(.xml, "a dictionary of CF$UID alone would be read as a UID")
      }
      try add(items, depth: depth)
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

  /// Adds text where it needs no escapes.
  @inline(__always)
  private mutating func addPlain(_ utf8: UnsafeBufferPointer<UInt8>) -> Bool {
    guard utf8.isPlainXML else { return false }
    sink.append(utf8)
    return true
  }

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
        guard dialect == .shown else {
          throw FormatError(.xml, "XML cannot hold the control character \(byte)")
        }
        sink.append(text: "&#\(byte);")
      default: sink.append(byte)
      }
    }
  }

  private mutating func add(_ time: AbsoluteTime) throws(FormatError) {
    let start = sink.count
    sink.append(dialect == .shown ? time.inWholeSeconds : time)
    guard dialect == .shown || sink.count - start == 20 else {
      throw FormatError(
        .xml, "XML dates have whole seconds and years 0000 to 9999, not \(time.text)")
    }
  }

  /// Other readers know one NaN.
  private func realText(_ number: Double) throws(FormatError) -> String {
    guard dialect == .shown || !number.isNaN || number.bitPattern == Double.nan.bitPattern else {
      throw FormatError(.xml, "XML holds no NaN with a sign or payload")
    }
    return RealText.text(number)
  }
}

extension UnsafeBufferPointer<UInt8> {
  /// Whether all stand for themselves in XML; 0xEF may begin a character that it lacks.
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

/// The text of a real.
enum RealText {
  /// The shortest text that reads back to the same double, with a point or an exponent:
  /// `1.0`, `5e-324`; `inf`, `-inf`, `nan`; a NaN with another sign or payload
  /// with its bits, `nan(0x7ff8000000000001)`.
  static func text(_ number: Double) -> String {
    guard number.isNaN, number.bitPattern != Double.nan.bitPattern else { return "\(number)" }
    return "nan(0x\(String(number.bitPattern, radix: 16)))"
  }
}
