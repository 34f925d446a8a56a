import PropertyList
import SystemCalls

extension SchemaKey {
  /// Says what does not fit in a value; nil if it fits. Cost: O(the value), and what the budget has
  /// for patterns.
  /// - Parameters:
  ///   - quotes: whether the sentence has the value. That of a secret is never in it.
  ///   - budget: what the patterns of the change may take. A string that takes more does not fit.
  public func objection(to value: Value, quotes: Bool = true) -> String? {
    objection(to: value, quotes: quotes, within: PatternBudget())
  }

  package func objection(
    to value: Value, quotes: Bool, within budget: PatternBudget
  ) -> String? {
    let quotes = quotes && !isSensitive
    let subject = quotes ? Self.text(value) : "the value"
    if let kind, !kind.accepts(value.kind) { return "\(subject) is not \(kind.phrase)" }
    if let problem = rangeObjection(to: value) ?? choiceObjection(to: value) {
      return "\(subject) \(problem)"
    }
    switch value {
    case .string(let text): return patternObjection(to: text, budget).map { "\(subject) \($0)" }
    case .array(let elements): return objection(toElements: elements, quotes, budget)
    case .dictionary(let values): return objection(toMembers: values, quotes, budget)
    default: return nil
    }
  }

  private func rangeObjection(to value: Value) -> String? {
    if let minimum, value.isLess(than: minimum) { return "is less than \(Self.text(minimum))" }
    if let maximum, maximum.isLess(than: value) { return "is more than \(Self.text(maximum))" }
    return nil
  }

  private func choiceObjection(to value: Value) -> String? {
    guard hasBindingChoices, value.kind != .array, value.kind != .dictionary,
      !choices.contains(where: { $0 == value || $0.isSameNumber(as: value) })
    else { return nil }
    let known = choices.prefix(12).map(Self.text).joined(separator: ", ")
    let rest = choices.count > 12 ? ", ..." : ""
    return "is not one of \(known)\(rest)"
  }

  /// Whether a value is the default, or the same number: `1` may be the default of a real.
  public func isDefault(_ value: Value) -> Bool {
    fallback.map { $0 == value || $0.isSameNumber(as: value) } ?? false
  }

  /// Whether a value must be one of the choices.
  public var hasBindingChoices: Bool { !choices.isEmpty && !allowsOthers }

  private func patternObjection(to text: String, _ budget: PatternBudget) -> String? {
    guard let pattern, pattern.judges(text) else { return nil }
    switch pattern.search(text, within: budget) {
    case .found: return nil
    case .notFound: return "does not match \(pattern.text)"
    case .tooCostly: return "takes too long to be searched for \(pattern.text)"
    }
  }

  private func objection(
    toElements elements: [Value], _ quotes: Bool, _ budget: PatternBudget
  ) -> String? {
    guard !members.isEmpty else { return nil }
    for (number, element) in elements.enumerated() {
      let problems = members.map { $0.objection(to: element, quotes: quotes, within: budget) }
      // Of several kinds of elements, one must fit.
      if problems.contains(nil) { continue }
      return problems.first.flatMap { $0 }.map { "\(number): \($0)" }
    }
    return nil
  }

  private func objection(
    toMembers values: ValueDictionary, _ quotes: Bool, _ budget: PatternBudget
  ) -> String? {
    let any = member(Self.anyValue)
    for (key, value) in values {
      guard let member = member(key) ?? any else { continue }
      if let problem = member.objection(to: value, quotes: quotes, within: budget) {
        return "\(key): \(problem)"
      }
    }
    return nil
  }

  /// A value as objections quote it: short, and without the contents of collections.
  static func text(_ value: Value) -> String {
    switch value {
    case .array: return "an array"
    case .dictionary: return "a dictionary"
    case .data(let bytes): return "data of \(bytes.count) bytes"
    case .string(let text) where text.isEmpty: return "an empty string"
    case .string(let text):
      return "\"\(text.count > 40 ? text.prefix(40) + "..." : text)\"".printable()
    default:
      return String(decoding: ValueText.canonical(value).dropLast(), as: UTF8.self)
    }
  }
}

extension Kind {
  /// Whether a key of this type may have a value of the other: a whole number is a real, too.
  func accepts(_ other: Kind) -> Bool { self == other || self == .real && other == .integer }

  /// The type with its article.
  public var phrase: String {
    switch self {
    case .integer, .array: "an \(rawValue)"
    case .data, .uid: rawValue
    case .string, .real, .boolean, .date, .dictionary: "a \(rawValue)"
    }
  }
}

extension Value {
  /// The value as a number; nil for other kinds.
  private var number: Double? {
    switch self {
    case .integer(let number): number.double
    case .real(let number): number
    case .single(let number): Double(number)
    case .date(let time): time.seconds
    default: nil
    }
  }

  /// Whether both are numbers, or both dates, and this one is smaller. A NaN is neither smaller nor
  /// larger.
  package func isLess(than other: Value) -> Bool {
    if case .integer(let own) = self, case .integer(let others) = other { return own < others }
    guard (kind == .date) == (other.kind == .date), let number, let limit = other.number else {
      return false
    }
    return number < limit
  }

  /// Integers are compared as such: a double does not tell large ones apart. A real of single
  /// precision, as of `-float`, is the nearest one to the number that was written.
  fileprivate func isSameNumber(as other: Value) -> Bool {
    if case .integer(let own) = self, case .integer(let others) = other { return own == others }
    guard kind != .date, other.kind != .date, let number, let second = other.number else {
      return false
    }
    switch (self, other) {
    case (.single(let own), _): return own == Float(second)
    case (_, .single(let others)): return Float(number) == others
    default: return number == second
    }
  }
}
