/// Writes JSON with two-space indentation and sorted keys.
struct JSONWriter {
  private var bytes: [UInt8] = []
  /// Whether dates become ISO text and data base64; otherwise they are refused.
  private let isLossy: Bool

  /// The document, with a newline at its end. Dates, data and UIDs throw, and so do infinities
  /// and NaN; `lossy` writes dates as ISO text and data as base64.
  static func write(_ value: Value, lossy: Bool = false) throws(FormatError) -> [UInt8] {
    var writer = JSONWriter(isLossy: lossy)
    try writer.add(value, depth: 0)
    writer.bytes.append(UInt8(ascii: "\n"))
    return writer.bytes
  }

  private init(isLossy: Bool) { self.isLossy = isLossy }

  private mutating func append(_ text: String) { bytes.append(contentsOf: text.utf8) }

  private mutating func newLine(_ depth: Int) {
    bytes.append(UInt8(ascii: "\n"))
    bytes.append(contentsOf: repeatElement(UInt8(ascii: " "), count: 2 * depth))
  }

  private mutating func add(_ value: Value, depth: Int) throws(FormatError) {
    switch value {
    case .string(let text): add(text)
    case .integer(let number): append(number.description)
    case .real(let number) where number.isFinite: append(RealText.text(number))
    case .boolean(let flag): append(flag ? "true" : "false")
    case .date(let time) where isLossy: add(time.text)
    case .data(let data) where isLossy: add(String(decoding: Base64.encode(data), as: UTF8.self))
    case .real, .date, .data, .uid: throw FormatError(.json, "JSON has no \(value.kind.rawValue)")
    case .array(let items):
      try addItems(items, depth: depth, "[", "]") { writer, item throws(FormatError) in
        try writer.add(item, depth: depth + 1)
      }
    case .dictionary(let items):
      let sorted = items.sortedItems
      try addItems(sorted, depth: depth, "{", "}") { writer, item throws(FormatError) in
        writer.add(item.key.string)
        writer.append(": ")
        try writer.add(item.value, depth: depth + 1)
      }
    }
  }

  private mutating func addItems<Item>(
    _ items: [Item], depth: Int, _ open: String, _ close: String,
    _ add: (inout JSONWriter, Item) throws(FormatError) -> Void
  ) throws(FormatError) {
    append(open)
    for (index, item) in items.enumerated() {
      if index > 0 { bytes.append(UInt8(ascii: ",")) }
      newLine(depth + 1)
      try add(&self, item)
    }
    if !items.isEmpty { newLine(depth) }
    append(close)
  }

  private mutating func add(_ text: String) {
    bytes.append(UInt8(ascii: "\""))
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "\""): append("\\\"")
      case UInt8(ascii: "\\"): append("\\\\")
      case 10: append("\\n")
      case 9: append("\\t")
      case 13: append("\\r")
      case 0..<32: append("\\u00" + (byte < 16 ? "0" : "") + String(byte, radix: 16))
      default: bytes.append(byte)
      }
    }
    bytes.append(UInt8(ascii: "\""))
  }
}
