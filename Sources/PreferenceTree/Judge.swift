import PropertyList

/// Judges a text while it is being written: by the type of the key, or, for a new key, by finding
/// the type that the text has.
struct Judge {
  private enum Rule {
    /// The text must be that of a value of the key's type.
    case kind(Recogniser)
    /// The key is new, and its type follows from its text. `preferred` recognises the type that a
    /// key of this name had a moment ago: the new key gets it if the text is a value of that type.
    case inferred(Inference, preferred: Recogniser?)
  }

  private var rule: Rule

  /// Creates a judge for a key that has a value, or a wanted type.
  /// - Parameters:
  ///   - template: the value that the file shows as JSON with dates and data as strings, if it
  ///     does.
  ///   - shown: the value whose text the file showed; nil for strings and data. See `Recogniser`.
  init(kind: Kind, template: Value? = nil, shown: Value? = nil) {
    rule = .kind(Recogniser(kind: kind, template: template, shown: shown))
  }

  /// Creates a judge for a new key.
  /// - Parameter preferred: the type that a key of this name had a moment ago, if there was one.
  init(preferred: Kind?) {
    rule = .inferred(Inference(), preferred: preferred.map { Recogniser(kind: $0) })
  }

  /// Judges the next bytes. Cost: O(bytes).
  mutating func feed(_ bytes: ArraySlice<UInt8>) {
    // Each case replaces `rule` before it feeds its copy. The copy is then the only reference to
    // its storage, which is changed in place.
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

  /// Returns the judgement of the text. A text whose type is inferred is always complete.
  /// - Parameter text: all bytes that were fed.
  func judgement(of text: [UInt8]) -> Judgement {
    switch rule {
    case .kind(let recogniser): recogniser.judgement(of: text)
    case .inferred: .complete
    }
  }

  /// Classifies the text without reading it as a whole: see `Inference.plain`, which has the same
  /// cost.
  func plain(_ text: [UInt8]) -> Inference.Plain {
    switch rule {
    case .kind(let recogniser): return recogniser.plainKind.map { .value($0) } ?? .other
    case .inferred(let inference, let preferred):
      guard let preferred else { return inference.plain(text) }
      if let kind = preferred.plainKind { return .value(kind) }
      // Until the text is a whole collection again, it is what it would be without the former type.
      let isCollection = [.array, .dictionary].contains(preferred.kind)
      return isCollection && preferred.value(of: text) != nil ? .other : inference.plain(text)
    }
  }

  /// Whether the text is known to be incomplete without a look at it: see `Recogniser`. False where
  /// the type is inferred.
  var isUnfinished: Bool {
    if case .kind(let recogniser) = rule { recogniser.isUnfinished } else { false }
  }

  /// Returns the value of the text; nil if the text is not complete.
  /// - Parameter text: all bytes that were fed.
  func value(of text: [UInt8]) -> Value? {
    switch rule {
    case .kind(let recogniser): recogniser.value(of: text)
    case .inferred(let inference, let preferred):
      preferred?.value(of: text) ?? inference.value(of: text)
    }
  }

  /// The value of an empty text; nil if the type has none, so that a truncation alone does not
  /// change the key. Ask it of a judge that was fed nothing.
  var emptyValue: Value? { value(of: []) }

  /// Whether the type follows from the text. A truncation then takes effect at once.
  var isInferred: Bool {
    if case .inferred = rule { return true }
    return false
  }
}
