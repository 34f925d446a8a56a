import PreferenceModel
import PropertyList
import SystemCalls
import Testing

@testable import PreferenceTree

/// Requests whose change a predecessor has made: the tree is as before it, the engine as after it.
@Suite("Changes that a predecessor has made") struct MadeChangesTests {
  private let bench: EffectsTests.Bench
  private var tree: Tree { bench.tree }
  private var domain: NodeID { bench.domain }

  init() throws { bench = try EffectsTests.Bench() }

  /// Makes the change as the predecessor of the tree has made it, and has the tree carry out the
  /// request. The owner may have forgotten what was set.
  private func follow<Result>(
    _ intents: [Intent], forgetting isForgotten: Bool = false, _ body: () throws -> Result
  ) throws -> Result {
    var made = try bench.engine.apply(intents, by: Author(number: 9))
    if isForgotten {
      made.items = made.items.map { item in
        guard case .set(let key, _, _) = item.edit else { return item }
        return Changeset.Item(item.location, .describe(key, Description()))
      }
    }
    tree.transactor.made = made
    defer { tree.transactor.made = nil }
    return try body()
  }

  private func bytes(_ name: String) -> [UInt8] { Array(name.utf8) }

  private func value(_ key: Key) throws -> Value? { try bench.engine.resolve(key, in: "d")?.value }

  private func isMissing(_ name: String) throws -> Bool {
    if case .missing = try tree.lookup(domain, bytes(name), now: bench.now) { return true }
    return false
  }

  @Test("a key that is there is no EEXIST; its creator decides its type", arguments: [false, true])
  func create(isForgotten: Bool) throws {
    var flags = CreationFlags()
    flags.exclusively = true
    let made = try follow(
      [.set("New", "d", .string(""), .exact([]))], forgetting: isForgotten
    ) { try tree.create(domain, bytes("New"), flags, now: bench.now) }
    #expect(made.handle != .none)
    var write = WriteRequest(bytes("5\n"), at: 0)
    write.handle = made.handle
    try tree.write(made.entry.node, write, now: bench.now)
    #expect(try value("New") == .integer(5))
    #expect(try bench.key("New") == made.entry.node)
  }

  @Test("a key that is gone is no ENOENT, and its name is hidden")
  func unlink() throws {
    let node = try bench.key("K")
    try follow([.remove("K", "d")]) { try tree.unlink(domain, bytes("K"), now: bench.now) }
    try bench.set("K", .integer(7), in: .global)
    #expect(try isMissing("K"))
    #expect(tree.hasLostName(node))
    #expect(try tree.attributes(node).links == 0)
  }

  @Test("a key that has its new name is no EEXIST", arguments: [false, true])
  func rename(isForgotten: Bool) throws {
    try bench.set("L", .integer(1))
    let (old, replaced) = (try bench.key("K"), try bench.key("L"))
    let intents: [Intent] = [.set("L", "d", .integer(4), .canonical), .remove("K", "d")]
    try follow(intents, forgetting: isForgotten) {
      try tree.rename(domain, bytes("K"), to: domain, bytes("L"), .keep, now: bench.now)
    }
    #expect(try isMissing("K"))
    #expect(try bench.key("L") == old)
    #expect(tree.hasLostName(replaced))
    #expect(try value("L") == .integer(4))
  }

  @Test("files of keys that have exchanged their values exchange their names")
  func exchange() throws {
    try bench.set("L", .integer(1))
    let (first, second) = (try bench.key("K"), try bench.key("L"))
    let intents: [Intent] = [
      .set("L", "d", .integer(4), .canonical), .set("K", "d", .integer(1), .canonical),
    ]
    try follow(intents) {
      try tree.rename(domain, bytes("K"), to: domain, bytes("L"), .exchange, now: bench.now)
    }
    #expect(try bench.key("L") == first)
    #expect(try bench.key("K") == second)
  }

  @Test("a scratch file becomes the file of the key that was made of it", arguments: ["K", "New"])
  func renameScratch(_ name: String) throws {
    let made = try tree.create(domain, bytes(".S.swp"), CreationFlags(), now: bench.now)
    try tree.write(made.entry.node, WriteRequest(bytes("8\n"), at: 0), now: bench.now)
    try follow([.set(Key(name), "d", .integer(8), .exact(bytes("8\n")))]) {
      try tree.rename(domain, bytes(".S.swp"), to: domain, bytes(name), .keep, now: bench.now)
    }
    #expect(try isMissing(".S.swp"))
    #expect(try bench.key(name) == made.entry.node)
    #expect(try value(Key(name)) == .integer(8))
  }

  @Test("a key that was made of a link is no EEXIST")
  func link() throws {
    let made = try tree.create(domain, bytes(".S.swp"), CreationFlags(), now: bench.now)
    try tree.write(made.entry.node, WriteRequest(bytes("8\n"), at: 0), now: bench.now)
    let entry = try follow([.set("New", "d", .integer(8), .exact(bytes("8\n")))]) {
      try tree.link(made.entry.node, domain, bytes("New"), now: bench.now)
    }
    #expect(try bench.key("New") == entry.node)
  }

  @Test("domains: one that has its new name is no EEXIST, one that is gone no ENOENT or ENOTEMPTY")
  func domains() throws {
    try follow([.renameDomain("d", to: "e")]) {
      try tree.rename(.root, bytes("d"), to: .root, bytes("e"), .keep, now: bench.now)
    }
    #expect(try bench.found(.root, "e").node == domain)
    try bench.set("K", nil, in: "e")
    try follow([.removeDomain("e")]) {
      try tree.removeDirectory(.root, bytes("e"), now: bench.now)
    }
    #expect(try tree.lookup(.root, bytes("e"), now: bench.now) == .missing(isCacheable: true))
  }

  @Test("a scratch directory becomes the domain that was made of it", arguments: [false, true])
  func makeDomain(isForgotten: Bool) throws {
    let directory = bytes(".unison.n.0123.unison.tmp")
    let made = try tree.makeDirectory(.root, directory, now: bench.now).node
    let file = try tree.create(made, bytes("K"), CreationFlags(), now: bench.now).entry.node
    try tree.write(file, WriteRequest(bytes("8\n"), at: 0), now: bench.now)
    try follow(
      [.createDomain("n"), .set("K", "n", .integer(8), .exact(bytes("8\n")))],
      forgetting: isForgotten
    ) {
      try tree.rename(.root, directory, to: .root, bytes("n"), .keep, now: bench.now)
    }
    #expect(try bench.found(.root, "n").node == made && bench.found(made, "K").node == file)
    #expect(try tree.read(file, at: 0, count: 9) == bytes("8\n")[...])
    #expect(try tree.lookup(.root, directory, now: bench.now) == .missing(isCacheable: true))
  }

  @Test("only the change that a request asks for is marked, also where a text is decided before")
  func marks() throws {
    try bench.set("S", .string("a"))
    var marks: [Bool] = []
    tree.transactor.setDecisive = { marks.append($0) }
    defer { tree.transactor.setDecisive = nil }
    let key = try bench.key("K")
    try tree.write(key, WriteRequest(bytes("5\n"), at: 0), now: bench.now)
    #expect(marks == [true])
    marks = []
    var change = AttributeChange()
    change.mode = 0o400
    _ = try tree.setAttributes(key, change, now: bench.now)
    #expect(marks == [false])
    change = AttributeChange()
    change.size = 0
    _ = try tree.setAttributes(try bench.key("S"), change, now: bench.now)
    marks = []
    try tree.rename(domain, bytes("S"), to: domain, bytes("T"), .replace, now: bench.now)
    #expect(marks == [false, true])
    marks = []
    try tree.unlink(domain, bytes("T"), now: bench.now)
    #expect(marks == [true])
  }
}
