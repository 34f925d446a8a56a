/// The text of a value, as the file of a key shows it.
public enum ValueText {
  /// The format in which arrays and dictionaries are shown.
  public enum Style: String, Sendable, CaseIterable {
    /// JSON if it holds the value exactly (apart from the precision of reals), else XML.
    case automatic = "auto"
    /// Always XML.
    case xml
    /// JSON with dates as ISO text and data as base64; XML if that cannot hold the value.
    case json
  }

  /// Returns the canonical text of the value. A file shows it until a program writes other bytes
  /// for the same value.
  ///
  /// Data is shown as it is, and any other scalar as its text and one newline. Arrays and
  /// dictionaries are shown in the style. In XML, dates have whole seconds. A value that neither
  /// JSON nor XML can hold (a dictionary of `CF$UID` alone) is shown as a binary list. Cost:
  /// O(size).
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
    let form: JSONWriter.Form = style == .json ? .editable : .exact
    if style != .xml, let json = try? JSONWriter.write(value, as: form) { return json }
    if let xml = try? XMLWriter.write(value, .shown) { return xml }
    return BinaryWriter.write(value)
  }

  /// Whether the text stands for the value: it gives the value if it is read as the value's kind,
  /// or as the text of a new key. Cost: O(text).
  public static func denotes(_ text: [UInt8], _ value: Value) -> Bool {
    Recogniser.value(of: text, kind: value.kind, template: value, shown: value) == value
      || Inference.value(of: text) == value
  }

  /// Converts the value to another kind; nil if that is not possible.
  ///
  /// A whole real becomes an integer, an integer becomes the nearest real, and a boolean becomes 1
  /// or 0. Data becomes the text that it is. In every other case, the text of the value is read as
  /// the new kind; every text can be read as data, which has all bytes of it: a newline at the end
  /// of a string's text is not part of the string, but of the file that is put back as data.
  /// - Parameter text: the text that the file of the value shows.
  public static func convert(_ value: Value, text: [UInt8], to kind: Kind) -> Value? {
    if value.kind == kind { return value }
    switch (value, kind) {
    case (.data(let data), .string): return Recogniser.value(of: data, kind: .string)
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
