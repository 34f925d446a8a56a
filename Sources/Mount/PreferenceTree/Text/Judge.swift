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
    /// - `null`: what `null` of JSON stands for; nil if it is refused.
    case kind(Kind, template: Value? = nil, shown: Value? = nil, null: Value? = nil)
    /// The key is new, and its type follows from its text. `preferred` is the type that a key of
    /// this name had a moment ago: the new key gets it if the text is a value of that type.
    case inferred(preferred: Kind?)
  }

  /// What was found of the bytes that were fed.
  private struct State {
    /// Finds the type of the text; nil if the key has a type.
    var inference: Inference?
    /// Recognises the key's type, or the preferred one; nil if there is neither.
    var recogniser: Recogniser?

    func value(of text: [UInt8]) -> Value? {
      recogniser?.value(of: text) ?? inference?.value(of: text)
    }
  }

  /// The state of a judge that was fed nothing.
  private let fresh: State
  private var state: State

  /// Creates a judge that was fed nothing. Cost: O(values that the file shows).
  init(_ rule: Rule) {
    switch rule {
    case .kind(let kind, let template, let shown, let null):
      fresh = State(
        recogniser: Recogniser(kind: kind, template: template, shown: shown, null: null))
    case .inferred(let preferred):
      fresh = State(
        inference: Inference(), recogniser: preferred.map { Recogniser(kind: $0) })
    }
    state = fresh
  }

  private init(_ fresh: State, _ state: State) { (self.fresh, self.state) = (fresh, state) }

  /// Forgets what was fed.
  mutating func reset() { state = fresh }

  /// Returns a judge that was fed the same, and can be fed something else from here on.
  func copy() -> Judge { Judge(fresh, state) }

  /// Judges the next bytes. Cost: O(bytes).
  mutating func feed(_ bytes: ArraySlice<UInt8>) {
    state.inference?.feed(bytes)
    state.recogniser?.feed(bytes)
  }

  /// Returns the judgement of the text. A text whose type is inferred is always complete.
  /// - Parameter text: all bytes that were fed.
  func judgement(of text: [UInt8]) -> Judgement {
    isInferred ? .complete : state.recogniser?.judgement(of: text) ?? .complete
  }

  /// Classifies the text without reading it as a whole: see `Inference.plain`, which has the same
  /// cost.
  func plain(_ text: [UInt8]) -> Inference.Plain {
    let kind = state.recogniser?.plainKind
    guard let inference = state.inference else { return kind.map { .value($0) } ?? .other }
    guard let recogniser = state.recogniser else { return inference.plain(text) }
    if let kind { return .value(kind) }
    // Until the text is a whole collection again, it is what it would be without the former type.
    let isCollection = [.array, .dictionary].contains(recogniser.kind)
    return isCollection && recogniser.value(of: text) != nil ? .other : inference.plain(text)
  }

  /// Whether a longer text that begins like this one has the same kind, if it has bytes that the
  /// kind allows: the key has a type, or the text can be no document any more.
  var isKindCertain: Bool {
    guard let inference = state.inference else { return true }
    return state.recogniser == nil && inference.isPlain
  }

  /// Whether the text is known to be incomplete without a look at it: see `Recogniser`. False where
  /// the type is inferred.
  var isUnfinished: Bool { !isInferred && state.recogniser?.isUnfinished == true }

  /// Returns the value of the text; nil if the text is not complete.
  /// - Parameter text: all bytes that were fed.
  func value(of text: [UInt8]) -> Value? { state.value(of: text) }

  /// The value of an empty text; nil if the type has none, so that a truncation alone does not
  /// change the key.
  var emptyValue: Value? { fresh.value(of: []) }

  /// The kind that the text must be of; nil where it is inferred.
  var kind: Kind? { isInferred ? nil : fresh.recogniser?.kind }

  /// Whether the type follows from the text. A truncation then takes effect at once.
  var isInferred: Bool { fresh.inference != nil }
}
