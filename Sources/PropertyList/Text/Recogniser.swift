/// What a text is for a value of one kind.
public enum Judgement: Equatable, Sendable {
  /// The text of a value.
  case complete
  /// No value's text, but more text can make it one.
  case incomplete
  /// Whatever follows, it never becomes a value's text; with the reason.
  case impossible(String)
}

/// Judges a text that comes in pieces: is it, or can it become, the text of a value of the kind?
///
/// Writing n bytes in any number of pieces costs O(n). A copy is a state to come back to. The
/// rules: blanks and newlines may stand around scalars, one newline
/// at the end of a string is not part of it, arrays and dictionaries are JSON, XML, binary or
/// old-style lists.
public struct Recogniser: Sendable {
  private enum Machine: Sendable {
    case string(UTF8Validator)
    case integer(Padded<IntegerScanner>)
    case real(Padded<RealScanner>)
    case boolean(Padded<BooleanScanner>)
    case date(Padded<DateParser>)
    case uid(Padded<UIDScanner>)
    case data
    case container(ContainerRecogniser)
    case failed(String)
  }

  /// The kind that is asked for.
  public let kind: Kind
  private let template: Value?
  private let shown: Value?
  private var machine: Machine

  /// - Parameters:
  ///   - template: the value whose text was shown as JSON with dates and data as strings; such
  ///     strings become dates and data again where the template has them.
  ///   - shown: the value whose text was shown. Text leaves out fractions of seconds in collections and the
  ///     precision of reals: where the same text comes back, the value is what it was.
  public init(kind: Kind, template: Value? = nil, shown: Value? = nil) {
    self.kind = kind
    self.template = template
    self.shown = shown.flatMap { $0.isAbridged ? $0 : nil }
    switch kind {
    case .string: machine = .string(UTF8Validator())
    case .integer: machine = .integer(Padded(IntegerScanner()))
    case .real: machine = .real(Padded(RealScanner()))
    case .boolean: machine = .boolean(Padded(BooleanScanner()))
    case .date: machine = .date(Padded(DateParser()))
    case .uid: machine = .uid(Padded(UIDScanner()))
    case .data: machine = .data
    case .array, .dictionary: machine = .container(ContainerRecogniser(kind: kind))
    }
  }

  /// Takes the next bytes. Cost: O(bytes).
  public mutating func feed(_ bytes: ArraySlice<UInt8>) {
    bytes.withUnsafeBufferPointer { feed($0) }
  }

  /// Each case lets go of the machine before it feeds its copy, so that nothing is copied.
  private mutating func feed(_ bytes: UnsafeBufferPointer<UInt8>) {
    switch machine {
    case .string(var utf8):
      let fits = utf8.feed(bytes) && !bytes.contains(0)
      machine = fits ? .string(utf8) : .failed("a string is UTF-8 text without NUL")
    case .integer(var scalar):
      machine =
        scalar.feed(bytes)
        ? .integer(scalar) : failed("-9223372036854775808 to 18446744073709551615")
    case .real(var scalar):
      machine = .data
      machine = scalar.feed(bytes) ? .real(scalar) : failed("as 1.5 or 2e-3")
    case .boolean(var scalar):
      machine = scalar.feed(bytes) ? .boolean(scalar) : failed("true, false, yes, no, 1 or 0")
    case .date(var scalar):
      machine = .data
      machine = scalar.feed(bytes) ? .date(scalar) : failed("as 2026-11-21T07:20:00Z")
    case .uid(var scalar): machine = scalar.feed(bytes) ? .uid(scalar) : failed("0 or more")
    case .data, .failed: break
    case .container(var container):
      machine = .data
      container.feed(bytes)
      machine = .container(container)
    }
  }

  private func failed(_ form: String) -> Machine {
    .failed("the text is no \(kind.rawValue) (\(form))")
  }

  /// What the text is; `text` must be all that was fed.
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

  /// The value, when the text is one's; `text` must be all that was fed. Cost: O(text) for
  /// strings, data and binary lists, else O(1).
  public func value(of text: [UInt8]) -> Value? {
    let value = plainValue(of: text)
    guard let shown else { return value }
    return value?.unabridged(shown)
  }

  private func plainValue(of text: [UInt8]) -> Value? {
    switch machine {
    case .string(let utf8):
      guard utf8.isComplete else { return nil }
      let line = text.last == UInt8(ascii: "\n") ? text.dropLast() : text[...]
      return .string(String(decoding: line, as: UTF8.self))
    case .integer(let scalar): return scalar.value
    case .real(let scalar): return scalar.value
    case .boolean(let scalar): return scalar.value
    case .date(let scalar): return scalar.value
    case .uid(let scalar): return scalar.value
    case .data: return .data(text)
    case .container(let container):
      guard case .success(let value?) = container.outcome(text) else { return nil }
      return template.map { value.restoring($0) } ?? value
    case .failed: return nil
    }
  }

  /// The kind, where the text is complete and its bytes are the value, as of a string (apart from one newline
  /// at the end) and of data. Cost: O(1).
  public var plainKind: Kind? {
    switch machine {
    case .string(let utf8) where utf8.isComplete: .string
    case .data where kind == .data: .data
    default: nil
    }
  }

  /// The value of a whole text; nil where it is no text of the kind.
  public static func value(
    of text: [UInt8], kind: Kind, template: Value? = nil, shown: Value? = nil
  ) -> Value? {
    var recogniser = Recogniser(kind: kind, template: template, shown: shown)
    recogniser.feed(text[...])
    return recogniser.value(of: text)
  }
}

extension Value {
  /// Whether its text leaves something out. Cost: O(values).
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

  /// This value, with what its text leaves out of the shown one.
  fileprivate func unabridged(_ shown: Value) -> Value {
    switch (self, shown) {
    case (.date(let time), .date(let exact)) where exact.inWholeSeconds == time: shown
    case (.real(let number), .single(let single)) where number == Double(single): shown
    case (.array(let items), .array(let old)):
      .array(items.enumerated().map { $0 < old.count ? $1.unabridged(old[$0]) : $1 })
    case (.dictionary(let items), .dictionary(let old)):
      .dictionary(
        ValueDictionary(
          items.map { key, item in (key, old[key].map { item.unabridged($0) } ?? item) }))
    default: self
    }
  }

  /// This value, with strings that stand where the template has a date or data turned back.
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
