import PreferenceStore
import PropertyList

/// A reader that is fuzzed. It takes any bytes, must not trap, and must keep its promises about
/// what it read.
public enum FuzzTarget: String, CaseIterable, Sendable {
  /// Whole documents, in any format.
  case document
  /// The text of a value, in pieces. The first byte says of which kind and how long the pieces are.
  case text
  /// The payload of a record of the journal.
  case record
  /// A file of the journal.
  case journal

  /// Reads the input. Returns the promise that does not hold, or nil.
  public func fault(_ input: [UInt8]) -> String? {
    switch self {
    case .document: Self.document(input)
    case .text: Self.text(input)
    case .record:
      JournalProbe.readsBack(payload: input) ? nil : "a record reads back as a different one"
    case .journal: JournalProbe.replay(file: input) ? nil : "records are not in their order"
    }
  }

  /// Checks that a packed dictionary has what reading the whole list gives.
  private static func packed(_ input: [UInt8]) -> String? {
    let value = try? Document.read(input).value
    do {
      guard let packed = try PackedDictionary(input, least: 1) else { return nil }
      guard case .dictionary(let whole)? = value else { return "a damaged list was packed" }
      guard packed.keys == whole.keys, packed.count == whole.count else {
        return "a packed list has different keys"
      }
      return whole.allSatisfy { packed[$0.key] == $0.value }
        ? nil : "a packed list has different values"
    } catch {
      return value == nil ? nil : "a list cannot be packed: \(error)"
    }
  }

  /// Checks that a list with hidden values that is written anew has the same values, and hides as
  /// many, each time.
  private static func hidden(_ input: [UInt8]) -> String? {
    guard let list = ReadableList(input) else { return nil }
    if (try? Document.read(input)) != nil { return "a list that can be read hides values" }
    guard !list.hidden.isEmpty else { return nil }
    // XML has no fractions of seconds, and one size of reals; and this is not about them.
    let values = list.format == .binary ? list.values : ["a key of the fuzzer": 1]
    guard let written = list.writing(values), let again = ReadableList(written.bytes) else {
      return "hidden values are lost"
    }
    return again.values == values && again.hidden.count == list.hidden.count
      ? nil : "hidden values are written differently"
  }

  /// Checks that a value that was read can be written in every format that holds it, and reads back
  /// as the same value, and that its text denotes it.
  private static func document(_ input: [UInt8]) -> String? {
    if let fault = packed(input) { return fault }
    if let list = ReadableList(input),
      let same = XMLPatch.apply(to: input, from: list.values, to: list.values), same != input
    {
      return "a list with hidden values that did not change is written differently"
    }
    if let fault = hidden(input) { return fault }
    guard let (value, _) = try? Document.read(input) else { return nil }
    for format in [Format.binary, .xml, .json] {
      guard let bytes = try? Document.write(value, as: format) else {
        if format == .binary { return "no binary list holds the value" }
        continue
      }
      guard let again = try? Document.read(bytes).value else { return "\(format) cannot be read" }
      // XML and JSON have reals of double precision only.
      let expected = format == .binary ? value : value.inDoublePrecision
      if again != expected { return "\(format) reads back as a different value" }
    }
    // The text of a value may be a little less deep and large than a list.
    guard input.count < 1 << 16, value.depth < 400 else { return nil }
    // The text of a string holds no NUL; a list may hold one.
    if case .string(let string) = value, string.utf8.contains(0) { return nil }
    for style in ValueText.Style.allCases
    where !ValueText.denotes(ValueText.canonical(value, style: style), value) {
      return "the \(style) text does not denote its value"
    }
    return nil
  }

  /// Checks that pieces of a text are judged as the whole text is, and that a value inferred from a
  /// text is denoted by it.
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
      if (judgement == .complete) != (value != nil) { return "complete without a value" }
      if value != Recogniser.value(of: prefix, kind: kind) { return "pieces differ from the whole" }
    }
    if let whole, whole.kind != kind { return "the value is of a different kind" }
    let inferred = Inference.value(of: text)
    return ValueText.denotes(text, inferred) ? nil : "the text is not of the inferred value"
  }
}

extension Value {
  /// The value with every real of single precision turned into one of double precision.
  fileprivate var inDoublePrecision: Value {
    switch self {
    case .single(let number): .real(Double(number))
    case .array(let items): .array(items.map(\.inDoublePrecision))
    case .dictionary(let items): .dictionary(items.mapValues(\.inDoublePrecision))
    default: self
    }
  }

  /// How many containers are inside each other.
  fileprivate var depth: Int {
    switch self {
    case .array(let items): 1 + (items.map(\.depth).max() ?? 0)
    case .dictionary(let items): 1 + (items.values.map(\.depth).max() ?? 0)
    default: 0
    }
  }
}
