import PreferenceModel
import PreferenceSearch
import PropertyList
import SystemCalls
import Testing

@testable import PreferenceTree

/// What the kernel must be told: too little, and readers see old values; too much, and a warm read
/// costs a request.
@Suite("Effects") struct EffectsTests {
  /// A tree over places in memory, and another author who changes them.
  final class Bench {
    let places = MemoryPlaces()
    let engine: SearchEngine
    let tree: Tree
    var now = Moment(instant: Instant(nanoseconds: 0), time: Timestamp(nanoseconds: 1))
    private(set) var domain = NodeID.root

    init() throws {
      engine = SearchEngine(places: places)
      tree = Tree(engine: engine, author: Author(number: 1), now: now) { _ in }
      try set("K", .integer(4))
      domain = try found(.root, "d").node
      _ = tree.removeEffects()
    }

    /// Somebody else sets a key.
    func set(_ key: Key, _ value: Value?, in domain: DomainName = "d") throws {
      let intent: Intent =
        value.map { .set(key, domain, $0, .unknown) } ?? .remove(key, domain)
      let changeset = try engine.apply([intent], by: Author(number: 2))
      guard tree.table[domain] != nil else { return }
      tree.changed(Notice(changeset: changeset, author: Author(number: 2)), now: now)
    }

    func found(_ parent: NodeID, _ name: String) throws -> Entry {
      guard case .found(let entry) = try tree.lookup(parent, Array(name.utf8), now: now) else {
        throw TreeError.missing
      }
      return entry
    }

    func key(_ name: String) throws -> NodeID { try found(domain, name).node }

    /// What the body makes the tree tell the kernel, without what is for other mounts.
    func effects(_ body: (Tree, NodeID) throws -> Void) throws -> Set<Effect> {
      _ = tree.removeEffects()
      try body(tree, domain)
      return Set(
        tree.removeEffects().filter { if case .awaitSettlement = $0 { false } else { true } })
    }
  }

  @Test("after a large change, a small request takes no more memory than before")
  func memoryOfEffects() throws {
    let bench = try Bench()
    let key = try bench.key("K")
    let request = {
      try bench.tree.write(key, WriteRequest(Array("5\n".utf8), at: 0), now: bench.now)
      try bench.set("K", .integer(6))
      return bench.tree.removeEffects().capacity
    }
    let before = try request()
    for index in 0..<2000 { try bench.set(Key("K\(index)"), .integer(1)) }
    #expect(bench.tree.removeEffects().count >= 2000)
    _ = try request()
    #expect(try request() <= max(before, 16))
  }

  @Test("where all domains may have changed, the kernel is told once of each, and of all heirs")
  func everythingInvalidated() throws {
    let bench = try Bench()
    let names = (0..<100).map { DomainName("d\($0)") }
    for name in names { try bench.set("K", .integer(1), in: name) }
    let ids = try names.map { try bench.found(.root, $0.string).node }
    // The first half of them has suites that are known.
    for id in ids.prefix(50) { _ = try bench.tree.lookup(id, Array("K".utf8), now: bench.now) }
    for sources in [names + [.global], names.suffix(50), [.global]] {
      var changeset = Changeset(time: Timestamp(nanoseconds: 2))
      for place in [Place.user, .anyUser, .managed] {
        changeset.invalidated.formUnion(sources.map { Location(place, $0) })
      }
      _ = bench.tree.removeEffects()
      bench.tree.changed(
        Notice(changeset: changeset, author: Author(number: 2)), now: bench.now)
      let effects = bench.tree.removeEffects()
      for (name, id) in zip(names, ids) {
        let isConcerned = sources.contains(name) || sources.contains(.global)
        let count = effects.count { $0 == .invalidateAttributes(id) }
        #expect(isConcerned ? count == 1 : count <= 1, "\(name): \(count)")
      }
    }
  }

  @Test("a domain inherits from one of several domains if it inherits from one of them")
  func inheritsFromAny() throws {
    let engine = SearchEngine(places: MemoryPlaces())
    let names: [DomainName] = ["d", "suite", "other", .global]
    func check() {
      for bits in 0..<16 {
        let others = Set(names.indices.filter { bits >> $0 & 1 == 1 }.map { names[$0] })
        for name in names {
          let expected = others.contains { engine.inherits(name, from: $0) }
          #expect(engine.inherits(name, fromAny: others) == expected, "\(name) \(others)")
        }
      }
    }
    check()
    engine.changeSuites(of: "d") { $0 = ["suite"] }
    _ = try engine.resolve("K", in: "d")
    check()
  }

  @Test(
    "a file whose key is gone, of which no notice was handled, is a private copy that is written")
  func goneUnnoticed() throws {
    let bench = try Bench()
    let key = try bench.key("K")
    _ = try bench.engine.apply([.remove("K", "d")], by: Author(number: 2))
    try bench.tree.write(key, WriteRequest(Array("5\n".utf8), at: 0), now: bench.now)
    var truncation = AttributeChange()
    truncation.size = 1
    _ = try bench.tree.setAttributes(key, truncation, now: bench.now)
    #expect(try bench.tree.read(key, at: 0, count: 9) == Array("5".utf8)[...])
    #expect(try bench.engine.resolve("K", in: "d") == nil)
  }

  @Test("a page has the size that the kernel was told before it, and an old one is dropped")
  func toldSizes() throws {
    let bench = try Bench()
    let key = try bench.key("K")
    let (short, long) = (Value.string("short"), Value.string(String(repeating: "x", count: 2000)))
    func read() throws -> Int { try bench.tree.read(key, at: 0, count: 4096).count }
    bench.tree.values.sizePatience = 60_000
    // Told, changed by somebody else, and read: the old text, until the kernel asks for attributes.
    for (old, new) in [(short, long), (long, short)] {
      try bench.set("K", old)
      let size = try bench.tree.attributes(key).size
      let effects = try bench.effects { _, _ in
        try bench.set("K", new)
        _ = bench.tree.removeEffects()
        #expect(try read() == size)
      }
      #expect(effects == [.invalidateContents(key)])
      #expect(try read() == size)
      #expect(try bench.tree.attributes(key).size == read())
      // Once the page was read, the next one, of a mapping, is what the key has.
      try bench.set("K", old)
      #expect(try read() == size)
    }
    // A size counts for some milliseconds.
    bench.tree.values.sizePatience = 0
    try bench.set("K", short)
    _ = try bench.tree.attributes(key)
    try bench.set("K", long)
    #expect(try read() == 2001)
    bench.tree.values.sizePatience = 60_000
    // A change through the file itself: the kernel knows the new size.
    try bench.set("K", short)
    _ = try bench.tree.attributes(key)
    let text = Array("longer than it was\n".utf8)
    try bench.tree.write(key, WriteRequest(text, at: 0), now: bench.now)
    #expect(try read() == text.count)
    // Told once more with a name: the kernel has that size.
    try bench.set("K", short)
    _ = try bench.tree.attributes(key)
    try bench.set("K", long)
    #expect(try bench.found(bench.domain, "K").attributes.size == read())
    // Too long for one page: what the key has now, also where the size before was told.
    try bench.set("K", short)
    _ = try bench.tree.attributes(key)
    try bench.set("K", .string(String(repeating: "x", count: 5000)))
    _ = try bench.tree.attributes(key)
    try bench.set("K", short)
    #expect(try read() == 6)
  }

  @Test("a write through the file tells the kernel nothing: it knows")
  func write() throws {
    let bench = try Bench()
    let key = try bench.key("K")
    let effects = try bench.effects { tree, _ in
      try tree.write(key, WriteRequest(Array("5\n".utf8), at: 0), now: bench.now)
    }
    #expect(effects.isEmpty)
  }

  @Test(
    "an overwrite looks its key up once, and once more where somebody has changed something")
  func lookups() throws {
    let bench = try Bench()
    let key = try bench.key("K")
    var truncation = AttributeChange()
    truncation.size = 0
    func searches(_ text: String) throws -> Int {
      let before = bench.places.searches
      _ = try bench.tree.setAttributes(key, truncation, now: bench.now)
      try bench.tree.write(key, WriteRequest(Array(text.utf8), at: 0), now: bench.now)
      return bench.places.searches - before
    }
    // The rules of a set ask for forced values, and for the places before the user's.
    let once = 2
    #expect(try searches("5\n") == once)
    #expect(try searches("6\n") == once)
    try bench.set("K", .integer(7))
    #expect(try searches("8\n") == once + 1)
    #expect(try searches("9\n") == once)
    try bench.set("Other", .integer(1))
    #expect(try searches("10\n") == once + 1)
    #expect(try bench.tree.read(key, at: 0, count: 9) == Array("10\n".utf8)[...])
  }

  @Test("a value that the tree remembers is what the places have: text, kind, time and mode")
  func remembered() throws {
    let bench = try Bench()
    let key = try bench.key("K")
    var mode = AttributeChange()
    mode.mode = 0o640
    _ = try bench.tree.setAttributes(key, mode, now: bench.now)
    for text in ["5\n", " 6", "0x7\n", "-8\n"] {
      _ = try? bench.tree.write(key, WriteRequest(Array(text.utf8), at: 0), now: bench.now)
      let remembered = try bench.tree.values.resolve(KeyPath(domain: "d", key: "K"))
      #expect(try remembered == bench.engine.resolve("K", in: "d"), "\(text)")
      #expect(remembered?.mode == 0o640)
    }
  }

  @Test("a reply to a change waits for the other mounts, with the change's version")
  func settlement() throws {
    let bench = try Bench()
    let key = try bench.key("K")
    _ = bench.tree.removeEffects()
    try bench.tree.write(key, WriteRequest(Array("5\n".utf8), at: 0), now: bench.now)
    let versions = bench.tree.removeEffects().compactMap { effect -> UInt64? in
      if case .awaitSettlement(let version) = effect { version } else { nil }
    }
    #expect(versions.count == 1)
  }

  @Test("a refused text: pages and attributes of the file go, so that it shows its value again")
  func refusal() throws {
    let bench = try Bench()
    let key = try bench.key("K")
    let effects = try bench.effects { tree, _ in
      #expect(throws: TreeError.self) {
        try tree.write(key, WriteRequest(Array("x\n".utf8), at: 0), now: bench.now)
      }
    }
    #expect(effects == [.invalidateAttributes(key), .invalidateContents(key)])
  }

  @Test("somebody else's set: pages, attributes, and the times of the directory")
  func outsideSet() throws {
    let bench = try Bench()
    let key = try bench.key("K")
    let effects = try bench.effects { _, _ in try bench.set("K", .integer(6)) }
    #expect(effects.isSuperset(of: [.invalidateAttributes(key), .invalidateContents(key)]))
    #expect(!effects.contains { if case .invalidateEntry = $0 { true } else { false } })
  }

  @Test("a name that was answered as missing is looked up again when it comes")
  func outsideCreate() throws {
    let bench = try Bench()
    var parent = NodeID.root
    let effects = try bench.effects { tree, domain in
      parent = domain
      guard
        case .missing(isCacheable: true) = try tree.lookup(
          domain, Array("New".utf8), now: bench.now)
      else {
        Issue.record("the answer is not remembered")
        return
      }
      try bench.set("New", .string("x"))
    }
    #expect(effects.contains(.invalidateEntry(parent: parent, name: "New")))
    #expect(effects.contains(.invalidateAttributes(parent)))
  }

  @Test("of keys of a domain that nobody has looked up, only a first one may concern the kernel")
  func unknownDomain() throws {
    let bench = try Bench()
    for (isNew, expected) in [(true, 2), (false, 0)] {
      let changeset = try bench.engine.apply(
        [.set("L", "other", .boolean(isNew), .unknown)], by: Author(number: 2))
      var known = changeset
      known.items.removeAll { $0.edit == .createDomain }
      let notice = Notice(
        changeset: known, events: known.items.compactMap(\.event), author: Author(number: 2))
      let effects = try bench.effects { tree, _ in tree.changed(notice, now: bench.now) }
      // The attributes of the root, and the name of the domain.
      #expect(effects.count == expected, "\(isNew): \(effects)")
    }
  }

  @Test("a global key reaches every domain that was answered with it, and no other")
  func inherited() throws {
    let bench = try Bench()
    try bench.set("Global", .integer(1), in: .global)
    let key = try bench.key("Global")
    let own = try bench.key("K")
    let notice = try bench.engine.apply(
      [.set("Global", .global, .integer(2), .unknown)], by: Author(number: 2))
    let effects = try bench.effects { tree, _ in
      tree.changed(Notice(changeset: notice, author: Author(number: 2)), now: bench.now)
    }
    #expect(effects.isSuperset(of: [.invalidateAttributes(key), .invalidateContents(key)]))
    #expect(!effects.contains(.invalidateContents(own)))
  }

  @Test("a key that is forced for all domains reaches files whose domains have the key themselves")
  func forcedForAll() throws {
    let bench = try Bench()
    let key = try bench.key("K")
    let notice = try bench.engine.apply(
      [.edit(Location(.managed, .global), .set("K", .integer(9), .unknown))],
      by: Author(number: 2))
    let effects = try bench.effects { tree, _ in
      tree.changed(Notice(changeset: notice, author: Author(number: 2)), now: bench.now)
    }
    #expect(effects.isSuperset(of: [.invalidateAttributes(key), .invalidateContents(key)]))
    #expect(try bench.tree.read(key, at: 0, count: 10).elementsEqual("9\n".utf8))
  }

  @Test("a removal elsewhere detaches the file: its pages stay, its name goes")
  func outsideRemoval() throws {
    let bench = try Bench()
    let key = try bench.key("K")
    var parent = NodeID.root
    let effects = try bench.effects { tree, domain in
      parent = domain
      try bench.set("K", nil)
    }
    #expect(effects.contains(.invalidateEntry(parent: parent, name: "K")))
    #expect(!effects.contains(.invalidateContents(key)))
    #expect(try bench.tree.attributes(key).links == 0)
    #expect(try bench.tree.read(key, at: 0, count: 10).elementsEqual("4\n".utf8))
  }

  @Test(
    "a removed name shows the value of another place after a second, and the kernel hears of it")
  func removed() throws {
    let bench = try Bench()
    try bench.set("K", .string("global"), in: .global)
    _ = try bench.key("K")
    var parent = NodeID.root
    _ = try bench.effects { tree, domain in
      parent = domain
      try tree.unlink(domain, Array("K".utf8), now: bench.now)
    }
    bench.now.instant = bench.now.instant.advanced(milliseconds: 1000)
    #expect(bench.tree.nextDeadline == bench.now.instant)
    let effects = try bench.effects { tree, _ in tree.tick(now: bench.now) }
    #expect(effects.contains(.invalidateEntry(parent: parent, name: "K")))
    #expect(try bench.tree.read(bench.key("K"), at: 0, count: 10).elementsEqual("global\n".utf8))
  }

  @Test("the tree's own notices are ignored")
  func ownNotice() throws {
    let bench = try Bench()
    _ = try bench.key("K")
    let changeset = try bench.engine.apply(
      [.set("K", "d", .integer(7), .unknown)], by: Author(number: 1))
    let effects = try bench.effects { tree, _ in
      tree.changed(Notice(changeset: changeset, author: Author(number: 1)), now: bench.now)
    }
    #expect(effects.isEmpty)
  }
}
