import PropertyList

/// What judges a text while it is being written.
struct Judge {
  private enum Rule {
    /// A value of the key's type.
    case kind(Recogniser)
    /// A new key: its type follows from its text; of a name removed a moment ago, the type it
    /// had, if the text allows it.
    case inferred(Inference, preferred: Recogniser?)
  }

  private var rule: Rule

  /// For a key that has a value; `template` where its text is lossy JSON, `shown` the value whose text the
  /// file showed.
  init(kind: Kind, template: Value? = nil, shown: Value? = nil) {
    rule = .kind(Recogniser(kind: kind, template: template, shown: shown))
  }

  /// For a new key.
  init(preferred: Kind?) {
    rule = .inferred(Inference(), preferred: preferred.map { Recogniser(kind: $0) })
  }

  /// Takes the next bytes.
  mutating func feed(_ bytes: ArraySlice<UInt8>) {
    // Each case lets go of the rule before it feeds its copy, so that nothing is copied.
    switch rule {
    case .kind(var recogniser):
      rule = .kind(Recogniser(kind: .data))
      recogniser.feed(bytes)
      rule = .kind(recogniser)
    case .inferred(var inference, var preferred):
      rule = .inferred(Inference(), preferred: nil)
      inference.feed(bytes)
      preferred?.feed(bytes)
      rule = .inferred(inference, preferred: preferred)
    }
  }

  /// What the text is; it must be all that was fed.
  func judgement(of text: [UInt8]) -> Judgement {
    switch rule {
    case .kind(let recogniser): recogniser.judgement(of: text)
    case .inferred: .complete
    }
  }

  /// What a long text is without reading it as a whole: see `Inference.plain`. Cost: O(1).
  func plain(_ text: [UInt8]) -> Inference.Plain {
    switch rule {
    case .kind(let recogniser): return recogniser.plainKind.map { .value($0) } ?? .other
    case .inferred(let inference, let preferred):
      guard let preferred else { return inference.plain(text) }
      if let kind = preferred.plainKind { return .value(kind) }
      // Text of another type that is long enough to be spliced is that of a collection.
      return [.array, .dictionary].contains(preferred.kind) ? .other : inference.plain(text)
    }
  }

  /// The text's value, when it is complete.
  func value(of text: [UInt8]) -> Value? {
    switch rule {
    case .kind(let recogniser): recogniser.value(of: text)
    case .inferred(let inference, let preferred):
      preferred?.value(of: text) ?? inference.value(of: text)
    }
  }

  /// The value of an empty text; nil where the type has none, so that a truncation alone cannot
  /// change the key.
  var emptyValue: Value? { value(of: []) }

  /// Whether the type follows from the text, so that a truncation takes effect at once.
  var isInferred: Bool {
    if case .inferred = rule { return true }
    return false
  }
}
