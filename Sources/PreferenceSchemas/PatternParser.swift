/// The parts of a regular expression.
indirect enum PatternNode: Sendable {
  case scalar(ScalarClass)
  case begin, end
  case boundary(isOne: Bool)
  case sequence([PatternNode])
  case alternatives([PatternNode])
  /// `most` nil: without end.
  case repeated(PatternNode, least: Int, most: Int?)
}

/// Reads the text of a regular expression.
struct PatternParser {
  private var rest: Substring.UnicodeScalarView
  private var ignoresCase = false
  private var depth = 0
  private static let deepest = 100
  private static let mostRepetitions = 1000

  init(_ text: String) { rest = Substring(text).unicodeScalars }

  mutating func parse() throws(Pattern.Failure) -> PatternNode {
    if rest.starts(with: "(?i)".unicodeScalars) {
      rest.removeFirst(4)
      ignoresCase = true
    }
    let node = try alternatives()
    guard rest.isEmpty else { throw .malformed }
    return node
  }

  private mutating func alternatives() throws(Pattern.Failure) -> PatternNode {
    var nodes = [try sequence()]
    while rest.first == "|" {
      rest.removeFirst()
      nodes.append(try sequence())
    }
    return nodes.count == 1 ? nodes[0] : .alternatives(nodes)
  }

  private mutating func sequence() throws(Pattern.Failure) -> PatternNode {
    var nodes: [PatternNode] = []
    while let next = rest.first, next != "|", next != ")" {
      nodes.append(try repeated(try atom()))
    }
    return .sequence(nodes)
  }

  private mutating func repeated(_ node: PatternNode) throws(Pattern.Failure) -> PatternNode {
    let bounds: (least: Int, most: Int?)
    switch rest.first {
    case "*": bounds = (0, nil)
    case "+": bounds = (1, nil)
    case "?": bounds = (0, 1)
    case "{":
      guard let count = try braces() else { return node }
      bounds = count
    default: return node
    }
    if rest.first != nil { rest.removeFirst() }
    // A lazy repetition matches the same texts; a possessive one does not.
    if rest.first == "?" { rest.removeFirst() }
    if rest.first == "+" { throw .unsupported }
    if let next = rest.first, "*?".unicodeScalars.contains(next) { throw .malformed }
    return .repeated(node, least: bounds.least, most: bounds.most)
  }

  /// The numbers of `{n}`, `{n,}` or `{n,m}`; stops before the brace. nil: the brace is a literal.
  private mutating func braces() throws(Pattern.Failure) -> (least: Int, most: Int?)? {
    guard let end = rest.firstIndex(of: "}") else { return nil }
    let words = String(rest[rest.index(after: rest.startIndex)..<end]).split(
      separator: ",", omittingEmptySubsequences: false)
    guard words.count <= 2, let least = words.first.flatMap({ Int($0) }) else { return nil }
    let isOpen = words.count == 2 && words[1].isEmpty
    guard let most = words.count == 1 ? least : isOpen ? least : Int(words[1]) else { return nil }
    guard least >= 0, most >= least else { throw .malformed }
    guard most <= Self.mostRepetitions else { throw .unsupported }
    rest = rest[end...]
    return (least, isOpen ? nil : most)
  }

  private mutating func atom() throws(Pattern.Failure) -> PatternNode {
    guard let scalar = rest.popFirst() else { throw .malformed }
    switch scalar {
    case "(": return try group()
    case "[": return .scalar(try bracket())
    case ".": return .scalar(.anyButNewline)
    case "^": return .begin
    case "$": return .end
    case "*", "+", "?": throw .malformed
    case "\\": return try escaped()
    default: return .scalar(ScalarClass(scalar, ignoresCase: ignoresCase))
    }
  }

  private mutating func group() throws(Pattern.Failure) -> PatternNode {
    depth += 1
    guard depth <= Self.deepest else { throw .unsupported }
    if rest.first == "?" {
      rest.removeFirst()
      try groupKind()
    }
    let node = try alternatives()
    guard rest.popFirst() == ")" else { throw .malformed }
    depth -= 1
    return node
  }

  /// Passes over `:` or `<name>`.
  private mutating func groupKind() throws(Pattern.Failure) {
    if rest.first == ":" {
      rest.removeFirst()
      return
    }
    guard rest.first == "<", let end = rest.firstIndex(of: ">") else { throw .unsupported }
    let name = rest[rest.index(after: rest.startIndex)..<end]
    guard let first = name.first, first.properties.isAlphabetic else { throw .unsupported }
    rest = rest[rest.index(after: end)...]
  }

  private mutating func escaped() throws(Pattern.Failure) -> PatternNode {
    switch rest.first {
    case "b", "B":
      return .boundary(isOne: rest.removeFirst() == "b")
    case "A":
      rest.removeFirst()
      return .begin
    case "z", "Z":
      rest.removeFirst()
      return .end
    default: return .scalar(try escapedClass())
    }
  }

  /// What an escape means that stands for characters, in a class or outside.
  private mutating func escapedClass() throws(Pattern.Failure) -> ScalarClass {
    guard let scalar = rest.popFirst() else { throw .malformed }
    switch scalar {
    case "d": return .digit
    case "D": return ScalarClass.digit.negated
    case "w": return .word
    case "W": return ScalarClass.word.negated
    case "s": return .blank
    case "S": return ScalarClass.blank.negated
    case "p", "P": return try property(isNegated: scalar == "P")
    case "n": return ScalarClass("\n")
    case "r": return ScalarClass("\r")
    case "t": return ScalarClass("\t")
    case "f": return ScalarClass("\u{C}")
    case "v": return ScalarClass("\u{B}")
    case "x": return ScalarClass(try number(digits: 2), ignoresCase: ignoresCase)
    case "u": return ScalarClass(try number(digits: 4), ignoresCase: ignoresCase)
    case _ where scalar.properties.isAlphabetic || scalar.properties.numericType != nil:
      throw .unsupported
    default: return ScalarClass(scalar)
    }
  }

  private mutating func number(digits: Int) throws(Pattern.Failure) -> Unicode.Scalar {
    let text = String(rest.prefix(digits))
    guard text.unicodeScalars.count == digits, let number = UInt32(text, radix: 16),
      let scalar = Unicode.Scalar(number)
    else { throw .malformed }
    rest.removeFirst(digits)
    return scalar
  }

  private mutating func property(isNegated: Bool) throws(Pattern.Failure) -> ScalarClass {
    guard rest.popFirst() == "{", let end = rest.firstIndex(of: "}") else { throw .malformed }
    guard var known = ScalarClass(property: String(rest[..<end])) else { throw .unsupported }
    rest = rest[rest.index(after: end)...]
    if isNegated { known = known.negated }
    return known
  }

  private mutating func bracket() throws(Pattern.Failure) -> ScalarClass {
    var all = ScalarClass()
    let isNegated = rest.first == "^"
    if isNegated { rest.removeFirst() }
    var isFirst = true
    while let scalar = rest.popFirst() {
      if scalar == "]", !isFirst { return isNegated ? all.negated : all }
      isFirst = false
      // `[:alpha:]`, and sets in sets.
      if scalar == "[", rest.first == ":" { throw .unsupported }
      if scalar == "&", rest.first == "&" { throw .unsupported }
      let first =
        scalar == "\\" ? try escapedClass() : ScalarClass(scalar, ignoresCase: ignoresCase)
      guard rest.first == "-", let after = rest.dropFirst().first, after != "]",
        let low = first.single
      else {
        all.formUnion(first)
        continue
      }
      rest.removeFirst()
      guard let high = try bracketEnd(), high >= low else { throw .malformed }
      all.formUnion(ScalarClass(low...high, ignoresCase: ignoresCase))
    }
    throw .malformed
  }

  private mutating func bracketEnd() throws(Pattern.Failure) -> Unicode.Scalar? {
    guard let scalar = rest.popFirst() else { return nil }
    return scalar == "\\" ? try escapedClass().single : scalar
  }
}
