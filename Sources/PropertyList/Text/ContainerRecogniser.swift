/// Judges the text of an array or a dictionary, in any format, as it arrives in pieces. The first
/// byte that is not a blank tells which parsers are tried; a parser that fails is dropped.
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
  /// The kind that the text must have: an array or a dictionary.
  private let kind: Kind
  private static let binaryMark = Array("bplist0".utf8)
  private static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

  /// The limits of JSON, with what `null` stands for.
  private let limits: Limits

  /// - Parameter null: what `null` of JSON stands for; nil: it is refused.
  init(kind: Kind, null: Value? = nil) {
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
    head = Array(text)
    let begin = head
    head = []
    begin.withUnsafeBufferPointer { feed($0) }
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
    guard let value, value.kind != kind else { return .success(value) }
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
