/// Judges the text of an array or a dictionary, in any format, or of a document that is a new key's
/// text, as it arrives in pieces. The first bytes tell which parsers are tried; a parser that fails
/// is dropped.
struct ContainerRecogniser: Sendable {
  /// The parsers that can still succeed.
  private enum Candidates {
    case undecided
    case text(JSONParser?, OpenStepParser?)
    case xml(XMLParser)
    case binary
    /// No parser can succeed, for this reason.
    case none(String)
  }

  private var candidates = Candidates.undecided
  /// The bytes so far, until they tell the format.
  private var head: [UInt8] = []
  /// The kind that the text must have: an array or a dictionary; nil if it is the text of a new
  /// key, and may have any.
  private let kind: Kind?
  private static let binaryMark = Array("bplist0".utf8)
  private static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

  /// The limits of JSON, with what `null` stands for.
  private let limits: Limits

  /// - Parameter null: what `null` of JSON stands for; nil if it is refused.
  init(kind: Kind? = nil, null: Value? = nil) {
    var limits = Limits.text
    limits.null = null
    (self.kind, self.limits) = (kind, limits)
  }

  /// Judges the next bytes. Cost: O(bytes): `candidates` is replaced before its parsers are fed, so
  /// that they have no second reference, for which their contents would be copied.
  mutating func feed(_ bytes: UnsafeBufferPointer<UInt8>) {
    switch candidates {
    case .undecided:
      head.append(contentsOf: bytes)
      decide()
    case .text(var json, var openStep):
      candidates = .undecided
      let reasons = [Self.feed(&json, bytes), Self.feed(&openStep, bytes)].compactMap { $0 }
      candidates =
        json == nil && openStep == nil ? .none(reasons.first ?? "") : .text(json, openStep)
    case .xml(var parser):
      candidates = .undecided
      do {
        try parser.feed(bytes)
        candidates = .xml(parser)
      } catch {
        candidates = .none(error.description)
      }
    case .binary, .none: break
    }
  }

  /// Feeds one parser. If it fails, sets it to nil and returns the reason.
  private static func feed<Parser: TextParser>(
    _ parser: inout Parser?, _ bytes: UnsafeBufferPointer<UInt8>
  ) -> String? {
    do {
      try parser?.feed(bytes)
      return nil
    } catch {
      parser = nil
      return error.description
    }
  }

  /// Chooses the parsers if the bytes so far tell the format, and feeds them these bytes.
  private mutating func decide() {
    guard let kind else {
      guard let next = candidatesOfNewKey else { return }
      candidates = next
      return feedHead(head[...])
    }
    if Self.binaryMark.starts(with: head) || Self.byteOrderMark.starts(with: head) { return }
    if head.starts(with: Self.binaryMark) {
      candidates = .binary
      return
    }
    let text = head.starts(with: Self.byteOrderMark) ? head.dropFirst(3) : head[...]
    guard let first = text.first(where: { !$0.isBlank }) else { return }
    switch first {
    case UInt8(ascii: "{") where kind == .dictionary:
      candidates = .text(JSONParser(limits: limits), OpenStepParser(limits: .text))
    case UInt8(ascii: "[") where kind == .array: candidates = .text(JSONParser(limits: limits), nil)
    case UInt8(ascii: "(") where kind == .array:
      candidates = .text(nil, OpenStepParser(limits: .text))
    case UInt8(ascii: "/"): candidates = .text(nil, OpenStepParser(limits: .text))
    case UInt8(ascii: "<"): candidates = .xml(XMLParser(limits: .text))
    default:
      candidates = .none(
        "the text of \(kind.article) begins neither as JSON nor as a property list")
    }
    feedHead(text)
  }

  /// The parsers for the text of a new key; nil if the bytes so far do not tell.
  private var candidatesOfNewKey: Candidates? {
    if head.starts(with: "bplist00".utf8) { return Candidates.binary }
    if head.starts(with: "<?xml".utf8) || head.starts(with: "<plist".utf8) {
      return Candidates.xml(XMLParser(limits: .text))
    }
    let marks = ["bplist00", "<?xml", "<plist"]
    if marks.contains(where: { $0.utf8.starts(with: head) }) { return nil }
    guard let first = head.first(where: { !$0.isBlank }) else { return nil }
    let isJSON = first == UInt8(ascii: "{") || first == UInt8(ascii: "[")
    return isJSON ? Candidates.text(JSONParser(limits: limits), nil) : Candidates.none("")
  }

  /// Feeds the parsers the first bytes, for which they were chosen.
  private mutating func feedHead(_ text: ArraySlice<UInt8>) {
    head = []
    text.withUnsafeBufferPointer { feed($0) }
  }

  /// Returns the value of the text, nil if the text is not complete, or the reason why it can never
  /// become complete.
  /// - Parameter text: all bytes that were fed; a binary list is read as a whole.
  func outcome(_ text: [UInt8]) -> Result<Value?, Refusal> {
    let value: Value?
    switch candidates {
    case .undecided: value = nil
    case .none(let reason): return .failure(Refusal(reason: reason))
    case .text(let json, let openStep): value = (try? json?.result()) ?? (try? openStep?.result())
    case .xml(let parser): value = try? parser.result()
    case .binary:
      value = BinaryReader.hasTrailer(text) ? try? BinaryReader.read(text, limits: .text) : nil
    }
    guard let value, let kind, value.kind != kind else { return .success(value) }
    // The string can be the first key of `key = value;` pairs without braces.
    if case .text = candidates, kind == .dictionary, value.kind == .string { return .success(nil) }
    return .failure(Refusal(reason: "the text is \(value.kind.article), not \(kind.article)"))
  }

  /// Whether no parser has come to the end of a document. False for a binary list, of which the
  /// whole text must be seen.
  var isUnfinished: Bool {
    switch candidates {
    case .undecided: true
    case .text(let json, let openStep):
      (try? json?.result()) == nil && (try? openStep?.result()) == nil
    case .xml(let parser): (try? parser.result()) == nil
    case .binary, .none: false
    }
  }

  /// Whether the text begins as a binary list.
  var isBinary: Bool { if case .binary = candidates { true } else { false } }

  /// Whether no parser can succeed, whatever follows.
  var isHopeless: Bool { if case .none = candidates { true } else { false } }

  struct Refusal: Error { let reason: String }
}

extension Kind {
  /// The name of the kind with its article, e.g. "an array".
  var article: String {
    switch self {
    case .integer, .array: "an \(rawValue)"
    case .uid: "a UID"
    case .data: "data"
    default: "a \(rawValue)"
    }
  }
}
