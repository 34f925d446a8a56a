import PreferenceModel
import PreferenceSearch
import PropertyList
import SystemCalls
import Testing

@testable import PreferenceTree

@Suite("The saved state of trees") struct SavedTreesTests {
  /// A control directory with an entry of each kind.
  private final class Control: ControlService {
    let preferences: any Engine
    init(_ search: SearchEngine) { preferences = search }

    func root(adding own: [Key: ControlEntry]) -> ControlDirectory {
      let reports = ControlDirectory(
        names: ["", "a/b"], entry: { key in ControlEntry { .text(key.string) } })
      let domains = ControlDirectory(
        names: ["d"], entry: { _ in ControlEntry(.directory(reports)) })
      let engine = preferences
      return ControlDirectory(
        own.merging([
          "reports": ControlEntry(.directory(domains)),
          "place": ControlEntry(.tree(ControlRoot { engine })),
          "documents": ControlEntry(.tree(ControlRoot(of: .dictionary) { engine })),
        ]) { $1 })
    }

    func machineRoot() -> ControlDirectory { root(adding: [:]) }
    let absent: Value = "absent"
    func status() -> ValueDictionary { [:] }
    func release() {}
  }

  /// What requests do between two savings.
  enum Step: String, CaseIterable { case lookup, forget, scratch, write, remove, rename }

  private let engine: SearchEngine
  private let forest: Forest
  private let domain: NodeID
  private let now = Moment.now
  private var scratch: [NodeID] = []

  init() throws {
    engine = SearchEngine(places: MemoryPlaces())
    let intents = (0..<1000).map { Intent.set(Self.key($0), "d", .integer(1), .unknown) }
    _ = try engine.apply(intents, by: Author(number: 2))
    forest = Self.forest(engine)
    forest.beginSaving { _ in }
    guard case .found(let entry) = try forest.lookup(.root, Array("d".utf8), now: now) else {
      throw TreeError.missing
    }
    domain = entry.node
    for number in 0..<800 { _ = try lookup(number) }
    _ = forest.saveChanges()
  }

  private static func forest(_ engine: SearchEngine) -> Forest {
    Forest(
      .preferences, engine: engine, service: Control(engine), options: TreeOptions(),
      author: Author(number: 1)
    ) { _ in }
  }

  private static func key(_ number: Int) -> Key { Key("K\(number)") }

  private func lookup(_ number: Int) throws -> NodeID {
    let name = Array(Self.key(number).string.utf8)
    guard case .found(let entry) = try forest.lookup(domain, name, now: now) else {
      throw TreeError.missing
    }
    return entry.node
  }

  private mutating func take(_ step: Step, _ round: Int) throws {
    let name = Array(Self.key(round).string.utf8)
    let tree = try forest.changing(domain, name)
    switch step {
    case .lookup: _ = try lookup(800 + round)
    case .forget:
      let node = try lookup(100 + round)
      forest[node].forget(node, 2)
    case .scratch:
      let made = try tree.create(domain, Array(".K\(round).swp".utf8), CreationFlags(), now: now)
      scratch.append(made.entry.node)
    case .write:
      guard let node = scratch.first else { return }
      try tree.write(node, WriteRequest([UInt8(65 + round)], at: 3 * round), now: now)
    case .remove: try tree.unlink(domain, name, now: now)
    case .rename:
      let old = Array(Self.key(200 + round).string.utf8)
      try tree.rename(domain, old, to: domain, Array("R\(round)".utf8), .replace, now: now)
    }
  }

  @Test("a write to a removed file saves what was written, not the whole text")
  func removed() throws {
    let name = Array("New".utf8)
    let tree = try forest.changing(domain, name)
    let node = try tree.create(domain, name, CreationFlags(), now: now).entry.node
    try tree.unlink(domain, name, now: now)
    let text = [UInt8](repeating: 65, count: 1 << 20)
    try forest[node].write(node, WriteRequest(text, at: 0), now: now)
    let whole = forest.saveChanges().count
    try forest[node].write(node, WriteRequest([66], at: 1 << 19), now: now)
    let part = forest.saveChanges().count
    #expect(whole > 1 << 20)
    #expect(part < 1000)
    #expect(try forest[node].read(node, at: 1 << 19, count: 2) == [66, 65])
  }

  @Test("a whole state and the changes since say what a new one says", arguments: Step.allCases)
  func changes(_ step: Step) throws {
    var copy = self
    if step == .write { try copy.take(.scratch, 900) }
    var records = [forest.saveAll()]
    for round in 0..<20 {
      try copy.take(step, round)
      records.append(forest.saveChanges())
    }
    let saved = try #require(try SavedTrees(records).trees[0])
    let whole = try #require(try SavedTrees([forest.saveAll()]).trees[0])
    #expect(saved.nodes == whole.nodes && saved.texts == whole.texts)
    #expect(saved.names == whole.names && saved.numbers == whole.numbers)
  }

  /// Looks up a path from the mount point, and returns its last node.
  private func node(at path: String, in forest: Forest) throws -> NodeID {
    var node = NodeID.root
    for name in path.split(separator: "/") {
      guard case .found(let entry) = try forest.lookup(node, Array(name.utf8), now: now) else {
        throw TreeError.missing
      }
      node = entry.node
    }
    return node
  }

  @Test(
    "what was found in the control directory is the same for a successor",
    arguments: [
      "", "/reports", "/reports/d", "/reports/d/%", "/reports/d/a%2Fb", "/status.json", "/apply",
      "/place", "/place/d/K1", "/documents",
    ])
  func control(_ name: String) throws {
    let path = ".prefs" + name
    let node = try node(at: path, in: forest)
    // In a log that begins before the look-ups, and in a whole state.
    for records in [forest.saveChanges(), forest.saveAll()] {
      let successor = Self.forest(engine)
      try successor.restore([records])
      let old = try forest[node].attributes(node)
      let new = try successor[node].attributes(node)
      #expect(new.inode == old.inode && new.type == old.type && new.mode == old.mode)
      #expect(try self.node(at: path, in: successor) == node)
      // `status.json` counts the nodes, of which the log has those since it was begun.
      guard name.contains("/d/") else { continue }
      let texts = try [forest, successor].map { Array(try $0[node].read(node, at: 0, count: 4096)) }
      #expect(texts[0] == texts[1])
    }
  }

  @Test("a node of the control directory at a path where nothing can stand is refused")
  func badPath() {
    var writer = ByteWriter()
    writer.append(RecordKind.tree.rawValue)
    writer.append([])
    writer.begin(.control, NodeID(rawValue: 1 << 48 | 7))
    writer.append(["reports", "d", "a/b", "below a file"])
    writer.append(variable: 1)
    let records = [writer.bytes]
    #expect(throws: ByteReader.Unknown.self) { try Self.forest(engine).restore(records) }
  }

  @Test("a key that nobody has written to takes some twenty bytes and its names")
  func size() throws {
    let bytes = forest.saveAll()
    #expect(bytes.count < 800 * (5 + 22))
    let saved = try #require(try SavedTrees([bytes]).trees[0])
    for number in 0..<800 {
      let name = Array(Self.key(number).string.utf8)
      let node = try #require(saved.nodes[try lookup(number)])
      // The inode number of the name, one look-up, no times, a key; and the lengths of "d" and the
      // key before them.
      #expect(node.count == 5 + 2 + 1 + name.count)
      #expect(Array(node.prefix(4)) == [0, 1, 0, 0])
      #expect(Array(node.suffix(name.count)) == name)
    }
  }

  @Test("records of no kind, and records that are cut, are refused")
  func badRecords() {
    let whole = forest.saveAll()
    #expect(throws: ByteReader.Unknown.self) { try forest.restore([whole + [0xFF]]) }
    #expect(throws: ByteReader.Exhausted.self) { try forest.restore([Array(whole.dropLast())]) }
  }
}

extension Forest {
  /// The records that `saveChanges` appends.
  fileprivate func saveChanges() -> [UInt8] {
    var writer = ByteWriter()
    saveChanges(&writer)
    return writer.bytes
  }
}
