/// Writes JSON with an indentation of two spaces and sorted keys.
struct JSONWriter {
  /// What becomes of a value that JSON has no form for.
  enum Form {
    /// It is refused.
    case exact
    /// Dates become ISO text and data base64; UIDs, infinities and NaN are refused.
    case editable
    /// Dates, data, infinities and NaN become text, and a UID a dictionary of `CF$UID`: nothing is
    /// refused.
    case report
  }

  private var sink: ByteSink
  private let form: Form

  /// Returns the value as a document that ends with a newline.
  static func write(_ value: Value, as form: Form = .exact) throws(FormatError) -> [UInt8] {
    var writer = JSONWriter(sink: ByteSink(room: value.extent(of: 8)), form: form)
    try writer.add(value, depth: 0)
    writer.sink.append("\n")
    return writer.sink.finish()
  }

  private mutating func newLine(_ depth: Int) {
    sink.append("\n")
    sink.append(repeating: UInt8(ascii: " "), count: 2 * depth)
  }

  private mutating func add(_ value: Value, depth: Int) throws(FormatError) {
    switch value {
    case .string(let text): add(text: text)
    case .integer(let number): sink.append(number)
    case .real(let number) where number.isFinite: sink.append(text: RealText.text(number))
    case .single(let number) where number.isFinite:
      sink.append(text: RealText.text(Double(number)))
    case .boolean(let flag): sink.append(flag ? "true" : "false")
    case .real(let number) where form == .report: add(text: RealText.text(number))
    case .single(let number) where form == .report: add(text: RealText.text(Double(number)))
    case .uid(let number) where form == .report:
      try add(["CF$UID": .integer(WideInteger(number))] as ValueDictionary, depth: depth)
    case .date(let time) where form != .exact:
      sink.append("\"")
      sink.append(time)
      sink.append("\"")
    case .data(let data) where form != .exact:
      sink.append("\"")
      Base64.encode(data, to: &sink)
      sink.append("\"")
    case .real, .single, .date, .data, .uid:
      throw FormatError(.json, "JSON cannot hold this \(value.kind.rawValue)")
    case .array(let items): try add(items, depth: depth)
    case .dictionary(let items): try add(items, depth: depth)
    }
  }

  private mutating func add(_ items: [Value], depth: Int) throws(FormatError) {
    sink.append("[")
    for (index, item) in items.enumerated() {
      beginItem(index, depth)
      try add(item, depth: depth + 1)
    }
    if !items.isEmpty { newLine(depth) }
    sink.append("]")
  }

  private mutating func add(_ items: ValueDictionary, depth: Int) throws(FormatError) {
    sink.append("{")
    for (index, item) in items.sortedItems.enumerated() {
      beginItem(index, depth)
      item.key.withBytes { add($0) }
      sink.append(": ")
      try add(item.value, depth: depth + 1)
    }
    if !items.isEmpty { newLine(depth) }
    sink.append("}")
  }

  /// Begins an element or a pair of a container on a new line.
  private mutating func beginItem(_ index: Int, _ depth: Int) {
    if index > 0 { sink.append(",") }
    newLine(depth + 1)
  }

  private mutating func add(text: String) { text.withBytes { add($0) } }

  private mutating func add(_ text: UnsafeBufferPointer<UInt8>) {
    sink.append("\"")
    if text.isPlainJSON { sink.append(text) } else { escape(text) }
    sink.append("\"")
  }

  private mutating func escape(_ utf8: UnsafeBufferPointer<UInt8>) {
    for byte in utf8 {
      switch byte {
      case UInt8(ascii: "\""): sink.append("\\\"")
      case UInt8(ascii: "\\"): sink.append("\\\\")
      case 10: sink.append("\\n")
      case 9: sink.append("\\t")
      case 13: sink.append("\\r")
      case 0..<32:
        sink.append(text: "\\u00" + (byte < 16 ? "0" : "") + String(byte, radix: 16))
      default: sink.append(byte)
      }
    }
  }
}

extension UnsafeBufferPointer<UInt8> {
  /// Whether all bytes can be written to a JSON string without escapes.
  fileprivate var isPlainJSON: Bool {
    isEveryEight { $0.firstByte(equal: 0x22) | $0.firstByte(equal: 0x5C) | $0.firstControl == 0 }
  }
}
