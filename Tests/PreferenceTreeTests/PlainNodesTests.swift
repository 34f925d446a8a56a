import PreferenceModel
import PropertyList
import SystemCalls
import Testing

@testable import PreferenceTree

@Suite("Plain nodes") struct PlainNodesTests {
  @Test("an index finds what a dictionary finds, over growth, removal and equal hashes")
  func index() {
    var random = SystemRandomNumberGenerator()
    var index = HashIndex()
    var hashes: [UInt64: UInt64] = [:]
    func found(_ number: UInt64, _ hash: UInt64) -> Bool {
      var candidate = index.candidate(hash)
      while let next = candidate, next.number != number {
        candidate = index.candidate(hash, after: next)
      }
      return candidate != nil
    }
    for step in 1...6000 {
      // Few different hashes in one table, so that they collide.
      let hash = UInt64.random(in: 0..<1 << 10, using: &random) << 54 | UInt64(step & 1)
      let number = step % 100 == 0 ? HashIndex.largest - UInt64(step) : UInt64(step)
      index.insert(number, hash)
      hashes[number] = hash
      // It grows, and then it shrinks.
      for _ in 0..<(step < 3000 ? 0 : 2) {
        guard let (old, hash) = hashes.randomElement(using: &random) else { break }
        index.remove(old, hash)
        hashes[old] = nil
        #expect(!found(old, hash))
      }
      guard step % 500 == 0 else { continue }
      #expect(hashes.allSatisfy { found($0.key, $0.value) })
    }
  }

  @Test("nodes are found by number and by name, with their look-ups, as in a dictionary")
  func nodes() throws {
    var random = SystemRandomNumberGenerator()
    let root = NodeID(rawValue: 3 << NodeID.treeShift | 1)
    var plain = PlainNodes(root: root)
    var known: [NodeID: (path: KeyPath, lookups: UInt64)] = [:]
    var number = root.rawValue
    for step in 0..<20_000 {
      number += UInt64.random(in: 1...3, using: &random)
      let (id, count) = (NodeID(rawValue: number), Int.random(in: 0...250, using: &random))
      let key = Key("\(step)" + String(repeating: "é", count: count / 2))
      let path = KeyPath(domain: DomainName("d\(step % 7)"), key: key)
      let isIn = plain.insert(id, PlainNodes.Node(path: path, lookups: 1))
      #expect(isIn)
      known[id] = (path, 1)
      guard let (old, node) = known.randomElement(using: &random) else { continue }
      switch step % 4 {
      case 0:
        let isCounted = plain.addLookup(old)
        #expect(isCounted)
        known[old]?.lookups += 1
      case 1:
        let isForgotten = plain.forget(old, 1)
        #expect(isForgotten)
        known[old] = node.lookups > 1 ? (node.path, node.lookups - 1) : nil
      case 2:
        let removed = plain.remove(old)
        #expect(removed?.path == node.path && removed?.lookups == node.lookups)
        known[old] = nil
      default: break
      }
    }
    #expect(plain.count == known.count)
    #expect(Set(plain.ids) == Set(known.keys))
    let paths = plain.paths()
    #expect(Set(paths) == Set(known.values.map(\.path)))
    for (id, node) in known {
      let (found, same) = (plain.find(node.path), plain[id])
      #expect(found == id && same?.path == node.path && same?.lookups == node.lookups)
      let other = plain.find(KeyPath(domain: "none", key: node.path.key))
      #expect(other == nil)
    }
    for id in known.keys { _ = plain.forget(id, .max) }
    #expect(plain.count == 0 && plain.ids.isEmpty)
  }

  @Test(
    "a node that does not fit is refused",
    arguments: [
      ("a long name", 2, String(repeating: "a", count: 256), 1),
      ("the number of another tree", 1 << NodeID.treeShift + 2, "K", 1),
      ("many look-ups", 2, "K", 1 << 32),
    ] as [(String, UInt64, String, UInt64)])
  func refused(_ name: String, number: UInt64, key: String, lookups: UInt64) {
    var plain = PlainNodes(root: .root)
    let path = KeyPath(domain: "d", key: Key(key))
    let node = PlainNodes.Node(path: path, lookups: lookups)
    let isIn = plain.insert(NodeID(rawValue: number), node)
    let found = plain.find(path)
    #expect(!isIn && plain.count == 0 && found == nil, "\(name)")
  }

  @Test("of many nodes that were read or written, only the last are more than plain")
  func bound() throws {
    let bench = try EffectsTests.Bench()
    let ids = try (0..<3000).map { number in
      try bench.set(Key("K\(number)"), .integer(1))
      return try bench.key("K\(number)")
    }
    for id in ids {
      #expect(try Array(bench.tree.read(id, at: 0, count: 9)) == Array("1\n".utf8))
      try bench.tree.write(id, WriteRequest(Array("2\n".utf8), at: 0), now: bench.now)
      _ = bench.tree.removeEffects()
    }
    // Editors are thrown away after some seconds, and then a few requests make the nodes plain.
    bench.now.instant = bench.now.instant.advanced(milliseconds: 60_000)
    bench.tree.tick(now: bench.now)
    for _ in 0..<3 { _ = bench.tree.removeEffects() }
    let most = NodeTable.mostExpanded
    #expect((most..<most + 10).contains(bench.tree.table.nodes.count))
    #expect(bench.tree.table.count == 3000 + 2)
    for id in ids {
      #expect(try Array(bench.tree.read(id, at: 0, count: 9)) == Array("2\n".utf8))
      _ = bench.tree.removeEffects()
    }
    for id in ids { bench.tree.forget(id, 1) }
    #expect(bench.tree.table.count == 2)
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
