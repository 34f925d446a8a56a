import PreferenceModel
import PropertyList
import SystemCalls
import Testing

@testable import PreferenceTree

@Suite("The table of nodes") struct NodeTableTests {
  @Test("a node is found by its number and its name, and its memory is given back")
  func bound() throws {
    let bench = try EffectsTests.Bench()
    let ids = try (0..<3000).map { number in
      try bench.set(Key("K\(number)"), .integer(1))
      return try bench.key("K\(number)")
    }
    for id in ids {
      #expect(try Array(bench.tree.read(id, at: 0, count: 9)) == Array("1\n".utf8))
      try bench.tree.write(id, WriteRequest(Array("2\n".utf8), at: 0), now: bench.now)
    }
    #expect(bench.tree.texts.edited.count == 3000)
    bench.now.instant = bench.now.instant.advanced(milliseconds: 60_000)
    bench.tree.tick(now: bench.now)
    #expect(bench.tree.texts.edited.isEmpty)
    let table = bench.tree.table
    #expect(ids.allSatisfy { table[$0]?.keyState == nil })
    #expect(table.paths(in: "d").allSatisfy { table[$0]?.keyFile?.path == $0 })
    #expect(table.domains(with: "K7") == ["d"] && table.domains(with: "None") == [])
    for id in ids {
      #expect(try Array(bench.tree.read(id, at: 0, count: 9)) == Array("2\n".utf8))
      bench.tree.forget(id, 1)
    }
    #expect(table.count == 2 && table.paths().isEmpty)
  }

  @Test("names have numbers below 2^32 while they last, and no two names have the same")
  func numbers() {
    let numbers = InodeNumbers(TreePosition())
    let paths = (0..<300_000).map { KeyPath(domain: "d", key: Key("K\($0)")) }
    let all = paths.map { numbers[$0] }
    #expect(Set(all).count == paths.count)
    #expect(all[..<250_000].filter { $0 >= 1 << 32 }.count < 100)
    #expect(all[290_000...].allSatisfy { $0 >= 1 << 32 })
    #expect(numbers[paths[7]] == InodeNumbers(TreePosition())[paths[7]])
  }

  @Test("names that are gone keep no number for ever, and a file keeps its own")
  func numbersOfRemoved() throws {
    let bench = try EffectsTests.Bench()
    let table = bench.tree.table
    let path = KeyPath(domain: "d", key: "K")
    table.renewInode(of: path)
    _ = try bench.key("K")
    let number = table.inodes[path]
    // A file that is renamed keeps the number of its first name, which no other file gets.
    let (first, second) = (KeyPath(domain: "d", key: "First"), KeyPath(domain: "d", key: "Second"))
    try bench.set("First", .integer(1))
    let node = try #require(table[try bench.key("First")])
    table.rename(try #require(node.keyFile), to: second)
    // So does an open file whose key is removed.
    try bench.set("Open", .integer(1))
    let open = try #require(table[try bench.key("Open")])
    try bench.set("Open", nil)
    for name in 0..<600_000 { table.renewInode(of: KeyPath(domain: "d", key: Key("T\(name)"))) }
    #expect(table.inodes.own.count <= 1 << 18)
    #expect(table.inodes[path] == number && table[path]?.inode == number)
    #expect(table.inodes[second] == node.inode && table.inodes[first] != node.inode)
    #expect(table[open.id] != nil && table.inodes[KeyPath(domain: "d", key: "Open")] != open.inode)
  }

  @Test("a removed scratch file takes room while it is open, also where it grows, and none after")
  func roomOfRemoved() throws {
    let bench = try EffectsTests.Bench()
    let large = [UInt8](repeating: 0x61, count: 40 << 20)
    func make(_ name: String) throws -> NodeID {
      var flags = CreationFlags()
      (flags.exclusively, flags.readsToo) = (true, true)
      return try bench.tree.create(bench.domain, Array(name.utf8), flags, now: bench.now)
        .entry.node
    }
    let first = try make("4913.tmp")
    try bench.tree.write(first, WriteRequest(large, at: 0), now: bench.now)
    try bench.tree.unlink(bench.domain, Array("4913.tmp".utf8), now: bench.now)
    let second = try make("4914.tmp")
    for id in [first, second] {
      #expect(throws: TreeError.self) {
        try bench.tree.write(id, WriteRequest(large, at: large.count), now: bench.now)
      }
    }
    bench.tree.forget(first, 1)
    try bench.tree.write(second, WriteRequest(large, at: 0), now: bench.now)
    #expect(bench.tree.table.scratchBytes >= large.count)
  }

  @Test("a removed scratch file is one still: it may be as large, and counts in a successor")
  func removedScratch() throws {
    let (bench, successor) = (try EffectsTests.Bench(), try EffectsTests.Bench())
    var flags = CreationFlags()
    (flags.exclusively, flags.readsToo) = (true, true)
    let file = try bench.tree.create(bench.domain, Array("t.tmp".utf8), flags, now: bench.now)
      .entry.node
    try bench.tree.unlink(bench.domain, Array("t.tmp".utf8), now: bench.now)
    let large = [UInt8](repeating: 0x61, count: 20 << 20)
    try bench.tree.write(file, WriteRequest(large, at: 0), now: bench.now)
    #expect(bench.tree.table.scratchBytes == large.count && bench.tree.table.detachedBytes == 0)

    var writer = ByteWriter()
    bench.tree.saver.saveAll(&writer)
    let saved = try #require(try SavedTrees([writer.bytes]).trees[0])
    try successor.tree.restore(saved, now: bench.now.instant)
    #expect(try successor.tree.attributes(file).size == large.count)
    let table = successor.tree.table
    #expect(table.scratchBytes == large.count && table.detachedBytes == 0)
  }

  /// What is saved of six nodes, one of each kind that has a name and one with held text.
  private func savedNodes() throws -> (nodes: [NodeID: ArraySlice<UInt8>], held: NodeID) {
    let bench = try EffectsTests.Bench()
    _ = try bench.key("K")
    try bench.set("L", .array([.integer(1)]))
    let held = try bench.key("L")
    var truncation = AttributeChange()
    truncation.size = 0
    _ = try bench.tree.setAttributes(held, truncation, now: bench.now)
    try bench.tree.write(held, WriteRequest(Array("[1, ".utf8), at: 0), now: bench.now)
    _ = try bench.tree.create(bench.domain, Array("K~".utf8), CreationFlags(), now: bench.now)
    _ = try bench.tree.makeDirectory(bench.domain, Array("x.lock".utf8), now: bench.now)
    var writer = ByteWriter()
    bench.tree.saver.saveAll(&writer)
    return (try SavedTrees([writer.bytes]).trees[0]?.nodes ?? [:], held)
  }

  private func isRefused(_ id: NodeID, _ bytes: ArraySlice<UInt8>) -> Bool {
    let table = NodeTable(TreePosition(), now: .now)
    do { _ = try table.restore(id, bytes, text: [], now: .now) } catch { return true }
    return false
  }

  @Test("a saved node whose bytes are too few or too many is refused")
  func badBytes() throws {
    let (nodes, held) = try savedNodes()
    #expect(nodes.count == 6 && nodes[held] != nil)
    for (id, bytes) in nodes {
      #expect(!isRefused(id, bytes))
      var longer = bytes
      longer.append(0)
      #expect(isRefused(id, longer))
      let taken = (0..<bytes.count).filter { !isRefused(id, bytes.prefix($0)) }
      // Without its mark, a key with held text is one that nobody has written to.
      #expect(taken.count == (id == held ? 1 : 0))
      for index in bytes.indices {
        var changed = bytes
        changed[index] ^= 0xFF
        // It may be a different node, or none.
        _ = isRefused(id, changed)
      }
    }
  }

  @Test("a scratch directory that is removed stays a directory, and a link a link")
  func removedKinds() throws {
    let bench = try EffectsTests.Bench()
    let name = Array("x.lock".utf8)
    let directory = try bench.tree.makeDirectory(bench.domain, name, now: bench.now).node
    try bench.tree.removeDirectory(bench.domain, name, now: bench.now)
    #expect(try bench.tree.attributes(directory).type == .directory)
    let link = try bench.tree.makeLink(
      bench.domain, Array(".#K".utf8), to: Array("me@host.7".utf8), now: bench.now
    ).node
    try bench.tree.unlink(bench.domain, Array(".#K".utf8), now: bench.now)
    #expect(try bench.tree.attributes(link).type == .link)
  }

  @Test("two scratch names that are spelt with different bytes are two files")
  func spellings() throws {
    let bench = try EffectsTests.Bench()
    let names = ["\u{E9}~", "e\u{301}~"].map { Array($0.utf8) }
    let ids = try names.map { name in
      try bench.tree.create(bench.domain, name, CreationFlags(), now: bench.now).entry.node
    }
    #expect(ids[0] != ids[1])
    for (id, name) in zip(ids, names) {
      try bench.tree.write(id, WriteRequest(name, at: 0), now: bench.now)
    }
    try bench.tree.unlink(bench.domain, names[1], now: bench.now)
    #expect(bench.tree.table.scratchNodes(in: .domain("d")).map { $0.node.id } == [ids[0]])
    #expect(try Array(bench.tree.read(ids[0], at: 0, count: 9)) == names[0])
  }

  /// How somebody else takes the key `L` of the domain `d` away, in one change or more.
  private static let removals: [(name: String, owner: DomainName, intents: [[Intent]])] = [
    ("removed", "d", [[.remove("L", "d")]]),
    ("an inherited key, removed", "NSGlobalDomain", [[.remove("L", "NSGlobalDomain")]]),
    (
      "removed with the key that the domain would inherit", "d",
      [[.remove("L", "NSGlobalDomain"), .remove("L", "d")]]
    ),
    ("set and removed", "d", [[.set("L", "d", 7, .exact([0x37, 0x20]))], [.remove("L", "d")]]),
    ("the domain removed", "d", [[.edit(Location(.user, "d"), .removeDomain)]]),
    ("the domain renamed", "d", [[.renameDomain("d", to: "e")]]),
  ]

  @Test(
    "an open file whose key somebody else removes goes on showing the text that it showed",
    arguments: removals.indices, [false, true])
  func privateCopy(_ index: Int, reads: Bool) throws {
    let (name, owner, intents) = Self.removals[index]
    let bench = try EffectsTests.Bench()
    if intents[0].count > 1 { try bench.set("L", .integer(5), in: .global) }
    try bench.set("L", .integer(7), in: owner)
    let id = try bench.key("L")
    if reads { _ = try bench.tree.read(id, at: 0, count: 9) }
    if owner == .global { _ = try bench.tree.attributes(id) }
    _ = bench.tree.removeEffects()
    // All of them are made before the tree hears of the first.
    let changesets = try intents.map { try bench.engine.apply($0, by: Author(number: 2)) }
    for changeset in changesets {
      bench.tree.changed(Notice(changeset: changeset, author: Author(number: 2)), now: bench.now)
    }
    let text = String(decoding: try bench.tree.read(id, at: 0, count: 9), as: UTF8.self)
    #expect(["7\n", "7 "].contains(text), "\(name)")
    #expect(try bench.tree.attributes(id).links == 0, "\(name)")
  }

  @Test("what a change removed is known also where the change makes a list's copies invalid")
  func removedAndInvalid() throws {
    let bench = try EffectsTests.Bench()
    let id = try bench.key("K")
    var changeset = try bench.engine.apply([.remove("K", "d")], by: Author(number: 2))
    changeset.invalidated = [Location(.user, "d")]
    bench.tree.changed(Notice(changeset: changeset, author: Author(number: 2)), now: bench.now)
    #expect(try Array(bench.tree.read(id, at: 0, count: 9)) == Array("4\n".utf8))
  }

  @Test("a file that gets the name of one whose removal is not known yet is the only one of it")
  func twoOfOneName() throws {
    let bench = try EffectsTests.Bench()
    try bench.set("L", .integer(7))
    let (old, moved) = (try bench.key("L"), try bench.key("K"))
    // Nobody tells the tree.
    _ = try bench.engine.apply([.remove("L", "d")], by: Author(number: 2))
    try bench.tree.rename(
      bench.domain, Array("K".utf8), to: bench.domain, Array("L".utf8), .replace, now: bench.now)
    _ = try bench.tree.read(old, at: 0, count: 9)
    #expect(bench.tree.table[KeyPath(domain: "d", key: "L")]?.id == moved)
    #expect(try bench.tree.attributes(old).links == 0)
  }
}
