/// The text of a value, as a key's file shows it.
public enum ValueText {
  /// How arrays and dictionaries are shown.
  public enum Style: String, Sendable, CaseIterable {
    /// JSON where it holds the value exactly, else XML.
    case automatic = "auto"
    /// Always XML.
    case xml
    /// JSON, with dates as ISO text and data as base64.
    case json
  }

  /// The canonical text: what is shown until somebody writes other bytes for the same value.
  ///
  /// Scalars and one newline; data as it is; arrays and dictionaries by the style, with dates in whole
  /// seconds. What neither
  /// JSON nor XML holds exactly (a dictionary of `CF$UID` alone) is shown as a binary list.
  /// Cost: O(size).
  public static func canonical(_ value: Value, style: Style = .automatic) -> [UInt8] {
    switch value {
    case .string(let text): Array(text.utf8) + [UInt8(ascii: "\n")]
    case .integer(let number): line(number.description)
    case .real(let number): line(RealText.text(number))
    case .single(let number): line(RealText.text(Double(number)))
    case .boolean(let flag): line(flag ? "true" : "false")
    case .date(let time): line(time.text)
    case .data(let data): data
    case .uid(let number): line(String(number))
    case .array, .dictionary: document(value, style)
    }
  }

  private static func line(_ text: String) -> [UInt8] {
    Array(text.utf8) + [UInt8(ascii: "\n")]
  }

  private static func document(_ value: Value, _ style: Style) -> [UInt8] {
    if style != .xml, let json = try? JSONWriter.write(value, lossy: style == .json) { return json }
    if let xml = try? XMLWriter.write(value, .shown) { return xml }
    return BinaryWriter.write(value)
  }

  /// Whether the text is one of the value's: read as its kind, or as a new key's text, it gives
  /// the value. Cost: O(text).
  public static func denotes(_ text: [UInt8], _ value: Value) -> Bool {
    Recogniser.value(of: text, kind: value.kind, template: value, shown: value) == value
      || Inference.value(of: text) == value
  }

  /// The value as another kind, by its meaning; nil where it has none there.
  ///
  /// A text that the other kind accepts is taken at its word; else a real without a fraction is
  /// an integer, a boolean is 1 or 0, and anything is a string, or data, of its text.
  public static func convert(_ value: Value, text: [UInt8], to kind: Kind) -> Value? {
    if value.kind == kind { return value }
    switch (value, kind) {
    case (.data(let data), .string): return Recogniser.value(of: data, kind: .string)
    case (.string(let string), .data): return .data(Array(string.utf8))
    case (.real(let real), .integer):
      if let number = Int64(exactly: real) { return .integer(WideInteger(number)) }
      return UInt64(exactly: real).map { .integer(WideInteger($0)) }
    case (.boolean(let flag), .integer): return flag ? 1 : 0
    case (.boolean(let flag), .real): return flag ? 1.0 : 0.0
    case (.single(let real), .integer): return convert(.real(Double(real)), text: text, to: kind)
    case (.integer(let number), .real): return .real(number.double)
    default: return Recogniser.value(of: text, kind: kind)
    }
  }
}
