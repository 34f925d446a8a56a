import EffectiveDocuments
import PreferenceModel
import PropertyList

/// Why a rule does not count, or could not be carried out: a sentence for people.
public struct EffectProblem: Error, Equatable, Sendable {
  /// What was refused, why, and what to do.
  public let sentence: String

  package init(_ sentence: String) { self.sentence = sentence }

  /// Runs the body, and turns an error that it throws into a problem that begins with the text.
  static func wrapping<Result: ~Copyable, Failure>(
    _ text: String, _ body: () throws(Failure) -> Result
  ) throws(EffectProblem) -> Result {
    do {
      return try body()
    } catch {
      throw EffectProblem("\(text): \(error)")
    }
  }
}

/// What happens when values change: one key of the domain `prefsfs.effects`, whose value is a
/// dictionary. Pure; it reads nothing.
public struct EffectRule: Equatable, Sendable {
  /// The domain of the rules.
  public static let domain = DomainName.effects

  /// The name: the key.
  public let name: String
  /// The keys that the rule is about.
  public let patterns: [EffectPattern]
  /// The program that is run, and its arguments; nil means nothing is. A line is one for `/bin/sh`.
  public private(set) var command: [String]?
  /// The path that is written, absolute or beginning with `~/`; nil if nothing is.
  public private(set) var path: String?
  /// The form of what is written.
  public private(set) var form = DocumentForm.json
  /// Seconds without a further change before it runs.
  public private(set) var delay = 0.2
  /// Seconds after which the command is ended.
  public private(set) var timeout = 60.0
  /// The keys of the dictionary that no rule has.
  public let unknown: [String]

  /// The names in a rule's dictionary.
  private enum Name: String, CaseIterable { case Keys, Run, Write, As, Delay, Timeout }

  /// Reads a rule. Throws where it does not count.
  public init(_ name: String, _ value: Value) throws(EffectProblem) {
    guard case .dictionary(let entries) = value else {
      throw EffectProblem("expected a dictionary, found \(value.kind.noun)")
    }
    self.name = name
    unknown = entries.keys.map(\.string).filter { Name(rawValue: $0) == nil }.sorted()
    func entry(_ name: Name) -> Value? { entries[Key(name.rawValue)] }
    patterns = try Self.patterns(entry(.Keys))
    command = try entry(.Run).map(Self.command)
    try readFile(entry(.Write), entry(.As))
    guard command != nil || path != nil else { throw EffectProblem("it has neither Run nor Write") }
    delay = try Self.seconds("Delay", entry(.Delay), 0...3600) ?? delay
    timeout = try Self.seconds("Timeout", entry(.Timeout), 0.1...86_400) ?? timeout
  }

  private static func patterns(_ value: Value?) throws(EffectProblem) -> [EffectPattern] {
    let items = if case .array(let items)? = value { items } else { value.map { [$0] } ?? [] }
    let texts = items.compactMap(\.string)
    guard !texts.isEmpty, texts.count == items.count else {
      throw EffectProblem("Keys must be an array of patterns, as in com.example.editor/*")
    }
    return try texts.map { text throws(EffectProblem) in
      guard let pattern = EffectPattern(text) else {
        throw EffectProblem("Keys: \(text) is not of the form DOMAIN/KEY")
      }
      return pattern
    }
  }

  private static func command(_ value: Value) throws(EffectProblem) -> [String] {
    let words: [String]
    switch value {
    case .string(let line): words = line.isEmpty ? [] : ["/bin/sh", "-c", line]
    case .array(let items) where items.allSatisfy { $0.kind == .string }:
      words = items.compactMap(\.string)
    default: throw EffectProblem("Run must be a string or an array of strings")
    }
    guard words.first?.isEmpty == false, !words.contains(where: { $0.utf8.contains(0) }) else {
      throw EffectProblem("Run must name a program, and have no NUL")
    }
    return words
  }

  private mutating func readFile(_ write: Value?, _ form: Value?) throws(EffectProblem) {
    guard let write else {
      if form != nil { throw EffectProblem("As has no effect without Write") }
      return
    }
    guard let path = write.string, path.hasPrefix("/") || path.hasPrefix("~/"),
      !path.utf8.contains(0), !path.hasSuffix("/")
    else { throw EffectProblem("Write must be the path of a file, absolute or beginning with ~/") }
    guard let form = form?.string.flatMap(DocumentForm.init(rawValue:)) else {
      let forms = DocumentForm.allCases.map(\.rawValue).joined(separator: ", ")
      throw EffectProblem("Write needs As, one of \(forms)")
    }
    guard let domain = patterns.first?.domain, patterns.allSatisfy({ $0.domain == domain }),
      !domain.contains("*")
    else { throw EffectProblem("with Write, all of Keys must name the same domain, without *") }
    (self.path, self.form) = (path, form)
  }

  private static func seconds(
    _ name: String, _ value: Value?, _ range: ClosedRange<Double>
  ) throws(EffectProblem) -> Double? {
    guard let value else { return nil }
    let number: Double? =
      switch value {
      case .integer(let number): number.double
      case .real(let number): number
      case .single(let number): Double(number)
      // As an old-style list has it.
      case .string(let text): Double(text)
      default: nil
      }
    if let number, range.contains(number) { return number }
    throw EffectProblem(
      "\(name) must be a number of seconds from \(range.lowerBound) to \(range.upperBound)")
  }
}

/// A pattern of keys, `DOMAIN/KEY`, in which `*` stands for any text. A domain has no slash; a key
/// may have some.
public struct EffectPattern: Equatable, Sendable {
  /// The part before the slash.
  public let domain: String
  /// The part behind it.
  public let key: String

  /// The domain, if it has no `*`. Each change that is heard is compared with it.
  public let literalDomain: DomainName?

  /// Reads a pattern; nil where a part is missing.
  public init?(_ text: String) {
    guard let slash = text.utf8.firstIndex(of: UInt8(ascii: "/")) else { return nil }
    domain = String(text[..<slash])
    key = String(text[text.utf8.index(after: slash)...])
    literalDomain = domain.contains("*") ? nil : DomainName(named: domain)
    if domain.isEmpty || key.isEmpty { return nil }
  }

  /// The key, if it has no `*`.
  public var literalKey: Key? { key.contains("*") ? nil : Key(key) }

  /// Whether the pattern names keys of the domain.
  public func matches(_ name: DomainName) -> Bool {
    if let literalDomain { return literalDomain == name }
    return KeyPatterns.matches(name.string, domain)
  }

  /// Whether the pattern names the key, in whatever domain.
  public func matches(_ name: Key) -> Bool {
    KeyPatterns.matches(name.string, key)
  }
}
