import PropertyList

/// Judges a text while it is being written: by the type of the key, or, for a new key, by finding
/// the type that the text has.
///
/// It is copied only by `copy`: each write asks it several times, and a copy of its state costs
/// more than the judgement of a short text.
struct Judge: ~Copyable {
  /// What a text must be.
  enum Rule {
    /// The text must be that of a value of the key's type.
    /// - `template`: the value that the file shows as JSON with dates and data as strings, if it
    ///   does.
    /// - `shown`: the value whose text the file showed; nil for strings and data. See `Recogniser`.
    case kind(Kind, template: Value? = nil, shown: Value? = nil)
    /// The key is new, and its type follows from its text. `preferred` is the type that a key of
    /// this name had a moment ago: the new key gets it if the text is a value of that type.
    case inferred(preferred: Kind?)
  }

  let rule: Rule
  /// Finds the type of the text; nil if the key has a type.
  private var inference: Inference?
  /// Recognises the key's type, or the preferred one; nil if there is neither.
  private var recogniser: Recogniser?

  /// Creates a judge that was fed nothing.
  init(_ rule: Rule) {
    self.rule = rule
    switch rule {
    case .kind(let kind, let template, let shown):
      recogniser = Recogniser(kind: kind, template: template, shown: shown)
    case .inferred(let preferred):
      inference = Inference()
      recogniser = preferred.map { Recogniser(kind: $0) }
    }
  }

  /// Forgets what was fed.
  mutating func reset() { self = Judge(rule) }

  /// Returns a judge that was fed the same, and can be fed something else from here on.
  func copy() -> Judge {
    var copy = Judge(rule)
    (copy.inference, copy.recogniser) = (inference, recogniser)
    return copy
  }

  /// Judges the next bytes. Cost: O(bytes).
  mutating func feed(_ bytes: ArraySlice<UInt8>) {
    inference?.feed(bytes)
    recogniser?.feed(bytes)
  }

  /// Returns the judgement of the text. A text whose type is inferred is always complete.
  /// - Parameter text: all bytes that were fed.
  func judgement(of text: [UInt8]) -> Judgement {
    isInferred ? .complete : recogniser?.judgement(of: text) ?? .complete
  }

  /// Classifies the text without reading it as a whole: see `Inference.plain`, which has the same
  /// cost.
  func plain(_ text: [UInt8]) -> Inference.Plain {
    let kind = recogniser?.plainKind
    guard let inference else { return kind.map { .value($0) } ?? .other }
    guard let recogniser else { return inference.plain(text) }
    if let kind { return .value(kind) }
    // Until the text is a whole collection again, it is what it would be without the former type.
    let isCollection = [.array, .dictionary].contains(recogniser.kind)
    return isCollection && recogniser.value(of: text) != nil ? .other : inference.plain(text)
  }

  /// Whether the text is known to be incomplete without a look at it: see `Recogniser`. False where
  /// the type is inferred.
  var isUnfinished: Bool { !isInferred && recogniser?.isUnfinished == true }

  /// Returns the value of the text; nil if the text is not complete.
  /// - Parameter text: all bytes that were fed.
  func value(of text: [UInt8]) -> Value? {
    recogniser?.value(of: text) ?? inference?.value(of: text)
  }

  /// Whether the type follows from the text. A truncation then takes effect at once.
  var isInferred: Bool { inference != nil }
}

extension Judge.Rule {
  /// The value of an empty text; nil if the type has none, so that a truncation alone does not
  /// change the key.
  var emptyValue: Value? { Judge(self).value(of: []) }
}
