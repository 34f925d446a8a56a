/// Writes Apple's XML property lists, keys sorted, tabs for depth.
struct XMLWriter {
  /// Who is to read it.
  enum Dialect {
    /// Foundation, plistlib and libplist: what they cannot hold (a fraction of a second, control
    /// characters, a dictionary that looks like a UID) is refused rather than lost.
    case portable
    /// `XMLParser`, which reads every value back exactly.
    case exact
  }

  private var bytes: [UInt8] = []
  private let dialect: Dialect

  /// The document.
  static func write(_ value: Value, _ dialect: Dialect) throws(FormatError) -> [UInt8] {
    var writer = XMLWriter(dialect: dialect)
    writer.append(
      """
      <?xml version="1.0" encoding="UTF-8"?>
      <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" \
      "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
      <plist version="1.0">

      """)
    try writer.add(value, depth: 0)
    writer.append("</plist>\n" as StaticString)
    return writer.bytes
  }

  private init(dialect: Dialect) { self.dialect = dialect }

  private mutating func append(_ text: String) { bytes.append(contentsOf: text.utf8) }

  private mutating func append(_ text: StaticString) {
    bytes.append(
      contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  private mutating func indent(_ depth: Int) {
    bytes.append(contentsOf: repeatElement(UInt8(ascii: "\t"), count: depth))
  }

  private mutating func add(_ value: Value, depth: Int) throws(FormatError) {
    indent(depth)
    switch value {
    case .string(let text): try element("<string>", text, "</string>\n")
    case .integer(let number): append("<integer>\(number)</integer>\n")
    case .real(let number): append("<real>\(try realText(number))</real>\n")
    case .boolean(let flag): append(flag ? "<true/>\n" : "<false/>\n" as StaticString)
    case .date(let time): append("<date>\(try text(time))</date>\n")
    case .data(let data):
      append("<data>" as StaticString)
      bytes += Base64.encode(data)
      append("</data>\n" as StaticString)
    case .uid(let number):
      try add(
        [ValueDictionary.uidKey: .integer(WideInteger(number))] as ValueDictionary, depth: depth)
    case .array(let items): try add(items, depth: depth)
    case .dictionary(let items):
      if items.asUID != nil {
        throw FormatError(.xml, "a dictionary of CF$UID alone would be read as a UID")
      }
      try add(items, depth: depth)
    }
  }

  private mutating func add(_ items: [Value], depth: Int) throws(FormatError) {
    if items.isEmpty { return append("<array/>\n" as StaticString) }
    append("<array>\n" as StaticString)
    for item in items { try add(item, depth: depth + 1) }
    indent(depth)
    append("</array>\n" as StaticString)
  }

  private mutating func add(_ items: ValueDictionary, depth: Int) throws(FormatError) {
    if items.isEmpty { return append("<dict/>\n" as StaticString) }
    append("<dict>\n" as StaticString)
    for (key, item) in items.sortedItems {
      indent(depth + 1)
      try element("<key>", key.string, "</key>\n")
      try add(item, depth: depth + 1)
    }
    indent(depth)
    append("</dict>\n" as StaticString)
  }

  private mutating func element(
    _ open: StaticString, _ text: String, _ close: StaticString
  ) throws(FormatError) {
    append(open)
    let isPlain = text.withBytes { utf8 in
      guard utf8.allSatisfy(Self.isPlain) else { return false }
      bytes.append(contentsOf: utf8)
      return true
    }
    if !isPlain { try escape(text) }
    append(close)
  }

  /// Bytes that stand for themselves in every text; 0xEF may begin a character that XML lacks.
  private static func isPlain(_ byte: UInt8) -> Bool {
    byte >= 0x20 && byte != 0x3C && byte != 0x3E && byte != 0x26 && byte != 0xEF
  }

  private mutating func escape(_ text: String) throws(FormatError) {
    if dialect == .portable, text.unicodeScalars.contains(where: { $0.value & 0xFFFE == 0xFFFE }) {
      throw FormatError(.xml, "XML cannot hold U+FFFE and U+FFFF")
    }
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "<"): append("&lt;" as StaticString)
      case UInt8(ascii: ">"): append("&gt;" as StaticString)
      case UInt8(ascii: "&"): append("&amp;" as StaticString)
      case 13: append("&#13;" as StaticString)
      case 0..<9, 11, 12, 14..<32:
        guard dialect == .exact else {
          throw FormatError(.xml, "XML cannot hold the control character \(byte)")
        }
        append("&#\(byte);")
      default: bytes.append(byte)
      }
    }
  }

  private func text(_ time: AbsoluteTime) throws(FormatError) -> String {
    let text = time.text
    guard dialect == .exact || text.utf8.count == 20 else {
      throw FormatError(.xml, "XML dates have whole seconds and years 0000 to 9999, not \(text)")
    }
    return text
  }

  /// Other readers know one NaN.
  private func realText(_ number: Double) throws(FormatError) -> String {
    guard dialect == .exact || !number.isNaN || number.bitPattern == Double.nan.bitPattern else {
      throw FormatError(.xml, "XML holds no NaN with a sign or payload")
    }
    return RealText.text(number)
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
