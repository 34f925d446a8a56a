import PreferenceModel
import PropertyList
import SystemCalls
import Testing

@testable import PreferenceTree

/// A tree is replaced by a successor, which knows only what was saved of it.
@Suite("Successors of a tree") struct SuccessorTreesTests {
  /// What a program does to a file.
  enum Step {
    case truncate
    case write([UInt8], at: Int)
    case append([UInt8], at: Int)

    static func write(_ text: String, at offset: Int) -> Step {
      .write(Array(text.utf8), at: offset)
    }
    static func append(_ text: String, at offset: Int) -> Step {
      .append(Array(text.utf8), at: offset)
    }

    func carryOut(_ node: NodeID, in tree: Tree, _ now: Moment) throws(TreeError) {
      switch self {
      case .truncate:
        var change = AttributeChange()
        change.size = 0
        _ = try tree.setAttributes(node, change, now: now)
      case .write(let bytes, let offset):
        try tree.write(node, WriteRequest(bytes, at: offset), now: now)
      case .append(let bytes, let offset):
        var write = WriteRequest(bytes, at: offset)
        write.appending = true
        try tree.write(node, write, now: now)
      }
    }
  }

  /// What a tree ends after, and what its successor makes of the next step.
  struct Example: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let key: String
    let before: [Step]
    let next: Step
    /// The text afterwards; nil if the step is EIO, and the file shows the engine's value.
    let text: String?

    init(_ name: String, _ key: String, _ before: [Step], _ next: Step, _ text: String?) {
      (testDescription, self.key, self.before) = (name, key, before)
      (self.next, self.text) = (next, text)
    }
  }

  static let examples = [
    Example("a truncation: the first write begins", "S", [.truncate], .write("x\n", at: 0), "x\n"),
    Example("a truncation: a write behind it", "S", [.truncate], .write("x\n", at: 2), nil),
    Example("a truncation: an append", "S", [.truncate], .append("x\n", at: 0), nil),
    Example(
      "held text: the next part", "A", [.truncate, .write("[1, ", at: 0)], .write("2]", at: 4), nil),
    Example(
      "held text: a write at its beginning", "A", [.truncate, .write("[1, ", at: 0)],
      .write("[3]", at: 0), nil),
    Example(
      "held text: a truncation", "S", [.write([0xC3], at: 0), .write([0xC3], at: 6)], .truncate, ""),
    Example("an append that is held", "S", [.append([0xC3], at: 6)], .append([0xA9], at: 6), nil),
    Example(
      "an append that the engine has", "S", [.append("more\n", at: 6)], .append("end\n", at: 11),
      "hello\nmore\nend\n"),
    Example(
      "a part that was refused", "K", [.truncate, .write("12", at: 0), .write("x", at: 2)],
      .write("3\n", at: 2), nil),
    Example(
      "new text before an old tail that counts", "S", [.write("HE", at: 0)], .write("L", at: 2),
      "HELlo\n"),
  ]

  private let bench: EffectsTests.Bench
  private var tree: Tree { bench.tree }
  private var now: Moment { bench.now }

  init() throws {
    bench = try EffectsTests.Bench()
    try bench.set("S", .string("hello"))
    try bench.set("A", .array([.integer(7)]))
  }

  private func bytes(_ name: String) -> [UInt8] { Array(name.utf8) }

  private func successor() throws -> Tree {
    var writer = ByteWriter()
    tree.saver.saveAll(&writer)
    let next = Tree(engine: bench.engine, author: Author(number: 1), now: now) { _ in }
    let saved = try #require(try SavedTrees([writer.bytes]).trees[0])
    try next.restore(saved, now: now.instant)
    return next
  }

  private func text(_ node: NodeID, in tree: Tree) throws -> String {
    String(decoding: try tree.read(node, at: 0, count: 99), as: UTF8.self)
  }

  private func error(_ body: () throws(TreeError) -> Void) -> Errno? {
    do throws(TreeError) { try body() } catch { return error.errno }
    return nil
  }

  @Test("text under way is given up, and nothing is laid over the old text", arguments: examples)
  func underWay(_ example: Example) throws {
    let node = try bench.key(example.key)
    for step in example.before {
      _ = error { () throws(TreeError) in try step.carryOut(node, in: tree, now) }
    }
    let next = try successor()
    let shown = try text(node, in: next)
    let refusal = error { () throws(TreeError) in try example.next.carryOut(node, in: next, now) }
    #expect(refusal == (example.text == nil ? .inputOutput : nil))
    #expect(try text(node, in: next) == example.text ?? shown)
  }

  @Test("writes are refused until a truncation, and for 5 s, also by the successor's successor")
  func ends() throws {
    let node = try bench.key("A")
    try Step.truncate.carryOut(node, in: tree, now)
    try Step.write("[1, ", at: 0).carryOut(node, in: tree, now)
    let next = try successor()
    let part = Step.write("2]", at: 4)
    #expect(
      error { () throws(TreeError) in try part.carryOut(node, in: next, now) } == .inputOutput)
    #expect(
      error { () throws(TreeError) in try next.prepareSynchronize(node, now: now) } == .inputOutput)
    var writer = ByteWriter()
    next.saver.saveAll(&writer)
    let last = Tree(engine: bench.engine, author: Author(number: 1), now: now) { _ in }
    try last.restore(try #require(try SavedTrees([writer.bytes]).trees[0]), now: now.instant)
    #expect(
      error { () throws(TreeError) in try part.carryOut(node, in: last, now) } == .inputOutput)
    let later = Moment(instant: now.instant.advanced(milliseconds: 5001), time: now.time)
    #expect(
      error { () throws(TreeError) in try part.carryOut(node, in: last, later) } != .inputOutput)
    try Step.truncate.carryOut(node, in: next, now)
    try Step.write("[3]", at: 0).carryOut(node, in: next, now)
    #expect(try bench.engine.resolve("A", in: "d")?.value == .array([.integer(3)]))
  }

  @Test("scratch files and removed files that are open keep their text, and are written on")
  func files() throws {
    var exclusively = CreationFlags()
    (exclusively.exclusively, exclusively.readsToo) = (true, true)
    let nodes = try [("K.bak", exclusively), (".S.swp", CreationFlags())].map { name, flags in
      try tree.create(bench.domain, bytes(name), flags, now: now).entry.node
    }
    let removed = try bench.key("S")
    try tree.unlink(bench.domain, bytes("S"), now: now)
    for node in nodes { try Step.write("text", at: 0).carryOut(node, in: tree, now) }
    let next = try successor()
    for node in nodes + [removed] { try Step.write("TE", at: 0).carryOut(node, in: next, now) }
    #expect(try nodes.map { try text($0, in: next) } == ["TExt", "TExt"])
    #expect(try text(removed, in: next) == "TEllo\n" && next.hasLostName(removed))
    #expect(next.scratchPaths.sorted() == ["d/.S.swp", "d/K.bak"])
  }

  @Test("a key that was moved away is so for a successor, and is the same when it is made again")
  func moved() throws {
    try tree.rename(bench.domain, bytes("K"), to: bench.domain, bytes("K~"), .replace, now: now)
    let next = try successor()
    guard case .missing = try next.lookup(bench.domain, bytes("K"), now: now) else {
      Issue.record("the key is there")
      return
    }
    let made = try next.create(bench.domain, bytes("K"), CreationFlags(), now: now).entry.node
    try Step.write("5\n", at: 0).carryOut(made, in: next, now)
    #expect(try bench.engine.resolve("K", in: "d")?.value == .integer(5))
    try next.unlink(bench.domain, bytes("K~"), now: now)
    #expect(try bench.engine.resolve("K", in: "d") != nil)
  }

  @Test("the creator of a new key goes on, and its text has the type that it would have had")
  func creation() throws {
    let made = try tree.create(bench.domain, bytes("New"), CreationFlags(), now: now)
    let next = try successor()
    var write = WriteRequest(bytes("5\n"), at: 0)
    write.handle = made.handle
    try next.write(made.entry.node, write, now: now)
    #expect(try bench.engine.resolve("New", in: "d")?.value == .integer(5))
    // A handle that is given later is a different one.
    let other = try next.create(bench.domain, bytes("Other"), CreationFlags(), now: now)
    #expect(other.handle != made.handle)
  }

  @Test("a domain that is removed and made again has two directories, of which one is lost")
  func directories() throws {
    let old = try tree.makeDirectory(.root, bytes("e"), now: now).node
    try tree.removeDirectory(.root, bytes("e"), now: now)
    let new = try tree.makeDirectory(.root, bytes("e"), now: now).node
    let next = try successor()
    #expect(old != new && next.hasLostName(old) && !next.hasLostName(new))
    #expect(next.table[DomainName("e")]?.id == new)
    #expect(throws: TreeError.missing) { try next.lookup(old, bytes("K"), now: now) }
  }
}
