import PreferenceStore
import PropertyList

/// What is fuzzed: each target takes any bytes, must not trap, and says what is wrong when a
/// promise about what it read does not hold.
public enum FuzzTarget: String, CaseIterable, Sendable {
  /// Whole documents, whatever their format.
  case document
  /// The text of a value, in pieces; the first byte says which kind and how long the pieces are.
  case text
  /// The payload of a record of the journal.
  case record
  /// A file of the journal.
  case journal

  /// What does not hold; nil where all is well.
  public func fault(_ input: [UInt8]) -> String? {
    switch self {
    case .document: Self.document(input)
    case .text: Self.text(input)
    case .record:
      JournalProbe.readsBack(payload: input) ? nil : "a record that reads back otherwise"
    case .journal: JournalProbe.replay(file: input) ? nil : "records out of their order"
    }
  }

  /// What was read can be written in every format that can hold it, and read again as the same.
  private static func document(_ input: [UInt8]) -> String? {
    guard let (value, _) = try? Document.read(input) else { return nil }
    for format in [Format.binary, .xml, .json] {
      guard let bytes = try? Document.write(value, as: format) else {
        if format == .binary { return "a value that no binary list holds" }
        continue
      }
      guard let again = try? Document.read(bytes).value else { return "unreadable \(format)" }
      // Text knows one precision of reals.
      let expected = format == .binary ? value : value.inDoublePrecision
      if again != expected { return "another value from \(format)" }
    }
    // A text takes a little less depth and size than a list does.
    guard input.count < 1 << 16, value.depth < 400 else { return nil }
    // A string's text holds no NUL; a list may.
    if case .string(let string) = value, string.utf8.contains(0) { return nil }
    for style in ValueText.Style.allCases
    where !ValueText.denotes(ValueText.canonical(value, style: style), value) {
      return "a \(style) text that does not denote its value"
    }
    return nil
  }

  private static func text(_ input: [UInt8]) -> String? {
    guard let first = input.first else { return nil }
    let kind = Kind.allCases[Int(first & 15) % Kind.allCases.count]
    let size = Int(first >> 4) + 1
    let text = Array(input.dropFirst())
    let whole = Recogniser.value(of: text, kind: kind)
    var recogniser = Recogniser(kind: kind)
    for start in stride(from: 0, to: text.count, by: size) {
      let end = min(text.count, start + size)
      recogniser.feed(text[start..<end])
      let prefix = Array(text[..<end])
      let judgement = recogniser.judgement(of: prefix)
      if whole != nil, case .impossible = judgement { return "a prefix of a value is impossible" }
      let value = recogniser.value(of: prefix)
      if (judgement == .complete) != (value != nil) { return "complete, and no value" }
      if value != Recogniser.value(of: prefix, kind: kind) { return "pieces differ from the whole" }
    }
    if let whole, whole.kind != kind { return "a value of another kind" }
    let inferred = Inference.value(of: text)
    return ValueText.denotes(text, inferred) ? nil : "inferred, but not denoted"
  }
}

extension Value {
  /// The value with every real of single precision as one of double.
  fileprivate var inDoublePrecision: Value {
    switch self {
    case .single(let number): .real(Double(number))
    case .array(let items): .array(items.map(\.inDoublePrecision))
    case .dictionary(let items): .dictionary(items.mapValues(\.inDoublePrecision))
    default: self
    }
  }

  /// Containers inside each other.
  fileprivate var depth: Int {
    switch self {
    case .array(let items): 1 + (items.map(\.depth).max() ?? 0)
    case .dictionary(let items): 1 + (items.values.map(\.depth).max() ?? 0)
    default: 0
    }
  }
}
