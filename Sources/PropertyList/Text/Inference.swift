/// Finds the value of a new key from its text, as the text comes in pieces.
///
/// An integer, a finite real, or a boolean whose canonical text is the text, apart from one
/// newline (so `007`, `1.10`, `NO`, `inf` are strings); a JSON object or array; a document that
/// begins with `<?xml`, `<plist` or `bplist00`; else a string where it is UTF-8 without NUL; else
/// data. Cost: O(n) for n bytes in any number of pieces.
public struct Inference: Sendable {
  private var utf8 = UTF8Validator()
  private var isText = true
  private var document = Candidate.undecided
  /// The first bytes, until they tell whether there may be a document.
  private var head: [UInt8] = []
  /// Whether the text may be a binary list; nil before its eighth byte.
  private var isBinaryList: Bool?
  private var mark: [UInt8] = []
  private static let binaryMark = Array("bplist00".utf8)

  private enum Candidate: Sendable {
    case undecided
    case json(JSONParser)
    case xml(XMLParser)
    case none
  }

  /// Nothing taken yet.
  public init() {}

  /// Takes the next bytes.
  public mutating func feed(_ bytes: ArraySlice<UInt8>) {
    isText = isText && bytes.withUnsafeBufferPointer { utf8.feed($0) && !$0.contains(0) }
    if isBinaryList == nil {
      mark += bytes.prefix(Self.binaryMark.count - mark.count)
      if mark.count == Self.binaryMark.count { isBinaryList = mark == Self.binaryMark }
    }
    switch document {
    case .undecided:
      head += bytes
      decide()
    case .json, .xml: feedDocument(bytes)
    case .none: break
    }
  }

  /// Starts a parser once the first bytes tell that there may be a document.
  private mutating func decide() {
    let marks = ["<?xml", "<plist"].map { Array($0.utf8) }
    if marks.contains(where: { head.starts(with: $0) }) {
      document = .xml(XMLParser(limits: .text))
    } else if marks.contains(where: { $0.starts(with: head) }) {
      return
    } else if let first = head.first(where: { !$0.isBlank }) {
      let isJSON = first == UInt8(ascii: "{") || first == UInt8(ascii: "[")
      document = isJSON ? .json(JSONParser(limits: .text)) : .none
    }
    feedDocument(head[...])
    if case .undecided = document { return }
    head = []
  }

  private mutating func feedDocument(_ bytes: ArraySlice<UInt8>) {
    switch document {
    case .json(var parser):
      document = .none
      if (try? parser.feed(bytes)) != nil { document = .json(parser) }
    case .xml(var parser):
      document = .none
      if (try? parser.feed(bytes)) != nil { document = .xml(parser) }
    case .undecided, .none: break
    }
  }

  private var documentValue: Value? {
    switch document {
    case .json(let parser): try? parser.result()
    case .xml(let parser): try? parser.result()
    case .undecided, .none: nil
    }
  }

  /// What a long text means so far.
  public enum Plain: Equatable, Sendable {
    /// A string or data, whose bytes are those of the text.
    case value(Kind)
    /// It ends inside of a character: a string if that goes on, else data.
    case unfinished
    /// It must be read as a whole: `value(of:)`.
    case other
  }

  /// The same without reading the text as a whole. Cost: O(1).
  public func plain(_ text: [UInt8]) -> Plain {
    guard text.count >= Self.longestScalar, documentValue == nil else { return .other }
    if isBinaryList == true { return BinaryReader.hasTrailer(text) ? .other : .value(.data) }
    guard isText else { return .value(.data) }
    return utf8.isComplete ? .value(.string) : .unfinished
  }

  private static let longestScalar = 40

  /// The value of what was taken; `text` must be all of it.
  public func value(of text: [UInt8]) -> Value {
    if let scalar = Self.scalar(text) { return scalar }
    if let value = documentValue { return value }
    if text.starts(with: "bplist00".utf8), BinaryReader.hasTrailer(text),
      let value = try? BinaryReader.read(text, limits: .text)
    {
      return value
    }
    return (isText ? Recogniser.value(of: text, kind: .string) : nil) ?? .data(text)
  }

  /// The value of a whole text.
  public static func value(of text: [UInt8]) -> Value {
    var inference = Inference()
    inference.feed(text[...])
    return inference.value(of: text)
  }

  /// A number or boolean whose canonical text this is.
  private static func scalar(_ text: [UInt8]) -> Value? {
    guard text.count < longestScalar else { return nil }
    let line = text.last == UInt8(ascii: "\n") ? Array(text.dropLast()) : text
    for kind in [Kind.integer, .real, .boolean] {
      guard let value = Recogniser.value(of: line, kind: kind),
        ValueText.canonical(value).dropLast().elementsEqual(line)
      else { continue }
      if case .real(let number) = value, !number.isFinite { continue }
      return value
    }
    return nil
  }
}
