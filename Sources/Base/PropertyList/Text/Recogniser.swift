/// Whether a text is, or can become, the text of a value of one kind.
public enum Judgement: Equatable, Sendable {
  /// The text is the text of a value.
  case complete
  /// The text is not the text of a value, but can become one if more text follows.
  case incomplete
  /// The text never becomes the text of a value, whatever follows. The string is the reason.
  case impossible(String)
}

/// Judges a text that arrives in pieces: whether it is, or can become, the text of a value of the
/// kind.
///
/// Blanks and newlines may be around a scalar. One newline at the end of a string is not part of
/// it. Arrays and dictionaries are JSON, XML, binary or old-style lists.
///
/// A copy keeps the state at that point of the text, so that a caller can return to it. Cost:
/// feeding n bytes in any number of pieces is O(n).
public struct Recogniser: Sendable {
  private enum Machine: Sendable {
    case string(UTF8Validator)
    case scalar(Padded)
    case data
    /// Not indirect: the box would keep a second reference to what is fed, which is then copied.
    case container(ContainerRecogniser)
    case failed(String)
  }

  /// The kind of value that the text is judged as.
  public let kind: Kind
  private let template: Value?
  private let shown: Value?
  private var machine: Machine

  /// Creates a recogniser that has received no text.
  /// - Parameters:
  ///   - template: the value that the file shows, if it is shown as JSON with dates and data as
  ///     strings. Where the template has a date or data, a string of the text becomes one again.
  ///   - shown: the value that the file shows. XML text does not have the fractions of seconds of
  ///     dates, and no text has the precision of reals. Where the text still has the date or real
  ///     that was shown, the value gets its fraction or precision back.
  public init(kind: Kind, template: Value? = nil, shown: Value? = nil, null: Value? = nil) {
    self.kind = kind
    self.template = template
    self.shown = shown.flatMap { $0.isAbridged ? $0 : nil }
    switch kind {
    case .string: machine = .string(UTF8Validator())
    case .integer: machine = .scalar(Padded(IntegerScanner()))
    case .real: machine = .scalar(Padded(RealScanner()))
    case .boolean: machine = .scalar(Padded(BooleanScanner()))
    case .date: machine = .scalar(Padded(DateParser()))
    case .uid: machine = .scalar(Padded(UIDScanner()))
    case .data: machine = .data
    case .array, .dictionary: machine = .container(ContainerRecogniser(kind: kind, null: null))
    }
  }

  /// Judges the next bytes. Cost: O(bytes).
  public mutating func feed(_ bytes: ArraySlice<UInt8>) {
    bytes.withUnsafeBufferPointer { feed($0) }
  }

  /// Scalars and containers set `machine` to another value before they feed their copy of the
  /// scanner. The copy is then the only reference to its storage, which is changed in place.
  private mutating func feed(_ bytes: UnsafeBufferPointer<UInt8>) {
    switch machine {
    case .string(var utf8):
      let fits = utf8.feed(bytes) && !bytes.contains(0)
      machine = fits ? .string(utf8) : .failed("the text is not a string (UTF-8 without NUL)")
    case .scalar(var scalar):
      machine = .data
      machine =
        scalar.feed(bytes)
        ? .scalar(scalar) : .failed("the text is not \(kind.article) (\(scalar.form))")
    case .data, .failed: break
    case .container(var container):
      machine = .data
      container.feed(bytes)
      machine = .container(container)
    }
  }

  /// Returns the judgement of the text. Cost: at most that of `value(of:)`.
  /// - Parameter text: all bytes that were fed.
  public func judgement(of text: [UInt8]) -> Judgement {
    if case .failed(let reason) = machine { return .impossible(reason) }
    if case .container(let container) = machine {
      switch container.outcome(text) {
      case .failure(let refusal): return .impossible(refusal.reason)
      case .success(let value): return value == nil ? .incomplete : .complete
      }
    }
    return value(of: text) == nil ? .incomplete : .complete
  }

  /// Whether the text is an array or dictionary whose end has not come, or ends inside a character
  /// of a string, as far as that is known without a look at the text. Cost: for arrays and
  /// dictionaries that of `value(of:)`, but never that of a binary list; else O(1).
  public var isUnfinished: Bool {
    switch machine {
    case .container(let container): container.isUnfinished
    case .string(let utf8): !utf8.isComplete
    case .scalar, .data, .failed: false
    }
  }

  /// Returns the value, if the text is the text of one; else nil.
  ///
  /// Cost: O(text) for strings, data, binary lists and `key = value;` pairs without braces, else
  /// O(1). With a `template`, or a `shown` value that has fractions of seconds or single precision,
  /// the cost of an array or dictionary is O(values).
  /// - Parameter text: all bytes that were fed.
  public func value(of text: [UInt8]) -> Value? {
    let value = plainValue(of: text)
    guard let shown else { return value }
    // Text other than XML says fractions of seconds.
    let isXML = text.first { $0 > UInt8(ascii: " ") } == UInt8(ascii: "<")
    return value?.unabridged(shown, fractions: isXML)
  }

  private func plainValue(of text: [UInt8]) -> Value? {
    switch machine {
    case .string(let utf8):
      guard utf8.isComplete else { return nil }
      let line = text.last == UInt8(ascii: "\n") ? text.dropLast() : text[...]
      return .string(String(decoding: line, as: UTF8.self))
    case .scalar(let scalar): return scalar.value
    case .data: return .data(text)
    case .container(let container):
      guard case .success(let value?) = container.outcome(text) else { return nil }
      return template.map { value.restoring($0) } ?? value
    case .failed: return nil
    }
  }

  /// The kind, if the text is complete and its bytes are the value: a string (apart from one
  /// newline at the end) or data. Nil otherwise. Cost: O(1).
  public var plainKind: Kind? {
    switch machine {
    case .string(let utf8) where utf8.isComplete: .string
    case .data where kind == .data: .data
    default: nil
    }
  }

  /// Returns the value of a whole text; nil if it is not the text of a value of the kind.
  public static func value(
    of text: [UInt8], kind: Kind, template: Value? = nil, shown: Value? = nil,
    null: Value? = nil
  ) -> Value? {
    var recogniser = Recogniser(kind: kind, template: template, shown: shown, null: null)
    recogniser.feed(text[...])
    return recogniser.value(of: text)
  }
}

extension Value {
  /// Whether the text of the value may leave something out: a fraction of a second in a container,
  /// or single precision. Cost: O(values).
  fileprivate var isAbridged: Bool {
    switch self {
    case .single: true
    case .array(let items): items.contains { $0.isAbridgedElement }
    case .dictionary(let items): items.contains { $0.value.isAbridgedElement }
    default: false
    }
  }

  private var isAbridgedElement: Bool {
    if case .date(let time) = self { return time.inWholeSeconds != time }
    return isAbridged
  }

  /// Returns this value with what the text left out of the shown value: where a date or a real is
  /// the one that was shown, its fraction or precision.
  /// - Parameter fractions: whether the text leaves out fractions of seconds.
  fileprivate func unabridged(_ shown: Value, fractions: Bool) -> Value {
    switch (self, shown) {
    case (.date(let time), .date(let exact)) where fractions && exact.inWholeSeconds == time: shown
    case (.real(let number), .single(let single))
    where number.bitPattern == Double(single).bitPattern: shown
    case (.array(let items), .array(let old)):
      .array(
        items.enumerated().map {
          $0 < old.count ? $1.unabridged(old[$0], fractions: fractions) : $1
        })
    case (.dictionary(let items), .dictionary(let old)):
      .dictionary(
        ValueDictionary(
          items.map { key, item in
            (key, old[key].map { item.unabridged($0, fractions: fractions) } ?? item)
          }))
    default: self
    }
  }

  /// Returns this value with strings turned into dates and data where the template has them.
  fileprivate func restoring(_ template: Value) -> Value {
    switch (self, template) {
    case (.string(let text), .date): Recogniser.value(of: Array(text.utf8), kind: .date) ?? self
    case (.string(let text), .data): text.withBytes { Base64.decode($0) }.map { .data($0) } ?? self
    case (.array(let items), .array(let old)):
      .array(items.enumerated().map { $0 < old.count ? $1.restoring(old[$0]) : $1 })
    case (.dictionary(let items), .dictionary(let old)):
      .dictionary(
        ValueDictionary(
          items.map { key, item in (key, old[key].map { item.restoring($0) } ?? item) }))
    default: self
    }
  }
}
