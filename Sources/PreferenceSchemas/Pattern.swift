/// A regular expression whose search takes time linear in the text, whatever the expression is: all
/// possible matches are followed side by side (Thompson's construction), so nothing is tried again.
///
/// Syntax: literals, `.`, classes (`[a-z]`, `\d`, `\w`, `\s`, `\p{L}` and their negations), groups,
/// alternatives, `*`, `+`, `?`, `{n,m}`, `^`, `$`, `\b`, `(?i)` at the beginning. What needs
/// backtracking (look-around, back-references, possessive groups) is `.unsupported`. `\d`, `\w` and
/// `\s` are ASCII, as in JSON Schema.
///
/// The standard library's `Regex` backtracks: `(a+)+$` takes exponential time there, on the loop of
/// a mount. RE2 would be a C++ library in four programs for what a few hundred lines do.
public struct Pattern: Sendable {
  /// Why a text is no pattern.
  public enum Failure: Error, Equatable, Sendable {
    /// It is not a regular expression.
    case malformed
    /// It needs something that cannot be matched in linear time, or is too large.
    case unsupported
  }

  /// An instruction. A number is the index of the next one, or of a class.
  enum Instruction: Sendable {
    case scalar(Int)
    case split(Int, Int)
    case jump(Int)
    case begin, end
    case boundary(isOne: Bool)
    case match
  }

  /// The expression as it was written.
  public let text: String
  private let program: [Instruction]
  private let classes: [ScalarClass]
  /// How many instructions it has.
  var size: Int { program.count }
  /// How many comparisons it needs for a character: its instructions, and the ranges of its classes.
  private let comparisons: Int

  /// How many instructions an expression may have, and bytes its text.
  static let largest = 2000
  private static let longest = 4096
  /// Bytes of the longest text that is judged.
  public static let longestText = 1 << 16
  /// How many comparisons a search may take: a longer one is not made.
  private static let mostSteps = 20_000_000

  /// Whether a search in the text takes so little that it is made.
  public func judges(_ text: String) -> Bool {
    let count = text.utf8.count
    return count <= Self.longestText && count * comparisons <= Self.mostSteps
  }

  /// Compiles an expression.
  public init(_ text: String) throws(Failure) {
    guard text.utf8.count <= Self.longest else { throw .unsupported }
    var parser = PatternParser(text)
    let tree = try parser.parse()
    var compiler = PatternCompiler()
    try compiler.add(tree)
    try compiler.append(.match)
    (self.text, program, classes) = (text, compiler.program, compiler.classes)
    comparisons = classes.reduce(program.count) { $0 + $1.size }
  }

  /// Returns whether the expression matches somewhere in the text. Cost: O(its characters times the
  /// expression), without allocations for each character.
  public func matches(_ text: String) -> Bool {
    var search = PatternSearch(program, classes)
    var previous: Unicode.Scalar?
    for scalar in text.unicodeScalars {
      search.start(previous, scalar)
      if search.hasMatched { return true }
      search.step(over: scalar)
      previous = scalar
    }
    search.start(previous, nil)
    return search.hasMatched
  }
}

/// The instructions that a search has reached at one position of the text.
private struct PatternSearch {
  private let program: [Pattern.Instruction]
  private let classes: [ScalarClass]
  private(set) var hasMatched = false
  /// The instructions that wait for the next character, and those that were entered here.
  private var waiting: [Int] = []
  private var pending: [Int] = []
  private var entered: [Int]
  private var position = 1

  init(_ program: [Pattern.Instruction], _ classes: [ScalarClass]) {
    (self.program, self.classes) = (program, classes)
    entered = Array(repeating: 0, count: program.count)
  }

  /// Enters the instructions that were reached, and the first one, between two characters.
  mutating func start(_ before: Unicode.Scalar?, _ after: Unicode.Scalar?) {
    var stack = pending
    stack.append(0)
    (pending, waiting) = ([], [])
    while let index = stack.popLast() {
      guard entered[index] != position else { continue }
      entered[index] = position
      switch program[index] {
      case .scalar: waiting.append(index)
      case .split(let one, let other): stack += [one, other]
      case .jump(let next): stack.append(next)
      case .begin: if before == nil { stack.append(index + 1) }
      case .end: if after == nil { stack.append(index + 1) }
      case .boundary(let isOne):
        let isHere = ScalarClass.word.contains(before) != ScalarClass.word.contains(after)
        if isHere == isOne { stack.append(index + 1) }
      case .match: hasMatched = true
      }
    }
    position += 1
  }

  mutating func step(over scalar: Unicode.Scalar) {
    for index in waiting {
      if case .scalar(let known) = program[index], classes[known].contains(scalar) {
        pending.append(index + 1)
      }
    }
  }
}

/// Turns the tree of an expression into instructions.
private struct PatternCompiler {
  private(set) var program: [Pattern.Instruction] = []
  private(set) var classes: [ScalarClass] = []
  /// How many parts were added: a repetition of nothing appends no instruction.
  private var steps = 0

  mutating func append(_ instruction: Pattern.Instruction) throws(Pattern.Failure) {
    guard program.count < Pattern.largest else { throw .unsupported }
    program.append(instruction)
  }

  mutating func add(_ node: PatternNode) throws(Pattern.Failure) {
    steps += 1
    guard steps <= 4 * Pattern.largest else { throw .unsupported }
    switch node {
    case .scalar(let known):
      try append(.scalar(classes.count))
      classes.append(known)
    case .begin: try append(.begin)
    case .end: try append(.end)
    case .boundary(let isOne): try append(.boundary(isOne: isOne))
    case .sequence(let nodes): for node in nodes { try add(node) }
    case .alternatives(let nodes): try addAlternatives(nodes[...])
    case .repeated(let node, let least, let most):
      for _ in 0..<least { try add(node) }
      guard let most else { return try addLoop(node) }
      try addOptional(node, count: most - least)
    }
  }

  private mutating func addAlternatives(
    _ nodes: ArraySlice<PatternNode>
  ) throws(Pattern.Failure) {
    guard let first = nodes.first else { return }
    guard nodes.count > 1 else { return try add(first) }
    let split = program.count
    try append(.split(split + 1, 0))
    try add(first)
    let jump = program.count
    try append(.jump(0))
    program[split] = .split(split + 1, program.count)
    try addAlternatives(nodes.dropFirst())
    program[jump] = .jump(program.count)
  }

  private mutating func addLoop(_ node: PatternNode) throws(Pattern.Failure) {
    let split = program.count
    try append(.split(split + 1, 0))
    try add(node)
    try append(.jump(split))
    program[split] = .split(split + 1, program.count)
  }

  private mutating func addOptional(
    _ node: PatternNode, count: Int
  ) throws(Pattern.Failure) {
    var splits: [Int] = []
    for _ in 0..<count {
      splits.append(program.count)
      try append(.split(program.count + 1, 0))
      try add(node)
    }
    for split in splits { program[split] = .split(split + 1, program.count) }
  }
}
