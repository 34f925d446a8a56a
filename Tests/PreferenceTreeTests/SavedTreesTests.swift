import PreferenceModel
import PreferenceSearch
import PropertyList
import SystemCalls
import Testing

@testable import PreferenceTree

@Suite("The saved state of trees") struct SavedTreesTests {
  /// The trees of a mount that nobody looks into `.prefs` of.
  private final class NoControl: ControlService {
    private let search: SearchEngine
    init(_ search: SearchEngine) { self.search = search }

    func engine(of place: Place) -> any Engine { search }
    var documents: any Engine { search }
    var suites: any Engine { search }
    func declarations(in place: Place?) -> any Engine { search }
    let absent: Value = "absent"
    func managedUsers() -> [String] { [] }
    func managedPlace(of user: String) -> Place { .managedFor(user) }
    var preferences: any Engine { search }
    func searchList(of domain: DomainName) -> String { "" }
    func explanation(of key: Key, in domain: DomainName) -> String? { nil }
    func schemaDomains() -> Set<DomainName> { [] }
    func schemaKeys(of domain: DomainName) -> [Key] { [] }
    func description(of key: Key, in domain: DomainName) -> String? { nil }
    func schema(of domain: DomainName, isJSON: Bool) -> [UInt8]? { nil }
    func status() -> ValueDictionary { [:] }
    let history: any HistoryService = NoHistory()
  }

  private final class NoHistory: HistoryService {
    func prepare(_ need: HistoryNeed) {}
    func isPrepared(_ need: HistoryNeed) -> Bool { true }
    func release() {}
    var isOff: Bool { true }
    func changedDomains() -> Set<DomainName> { [] }
    func changedKeys(of domain: DomainName) -> Set<Key> { [] }
    func changes(of key: Key, in domain: DomainName) -> String? { nil }
    func days() -> [String: UInt64] { [:] }
    func number(ofMoment name: String) -> UInt64? { nil }
    func engine(ofMoment number: UInt64, _ domain: DomainName?) throws(EngineError) -> any Engine {
      throw EngineError(.noSuchDomain, domain: domain, "there is no history")
    }
  }

  /// What requests do between two savings.
  enum Step: String, CaseIterable { case lookup, forget, scratch, write, remove, rename }

  private let forest: Forest
  private let domain: NodeID
  private let now = Moment.now
  private var scratch: [NodeID] = []

  init() throws {
    let engine = SearchEngine(places: MemoryPlaces())
    let intents = (0..<1000).map { Intent.set(Self.key($0), "d", .integer(1), .unknown) }
    _ = try engine.apply(intents, by: Author(number: 2))
    forest = Forest(
      .preferences, engine: engine, service: NoControl(engine), options: TreeOptions(),
      author: Author(number: 1)
    ) { _ in }
    forest.beginSaving { _ in }
    guard case .found(let entry) = try forest.lookup(.root, Array("d".utf8), now: now) else {
      throw TreeError.missing
    }
    domain = entry.node
    for number in 0..<800 { _ = try lookup(number) }
    _ = forest.saveChanges()
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
    let (tree, name) = (forest[domain], Array(Self.key(round).string.utf8))
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
    let made = try forest[domain].create(domain, Array("New".utf8), CreationFlags(), now: now)
    let node = made.entry.node
    try forest[domain].unlink(domain, Array("New".utf8), now: now)
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
    let (saved, whole) = (try SavedTree(records), try SavedTree([forest.saveAll()]))
    #expect(saved.nodes == whole.nodes && saved.texts == whole.texts)
    #expect(saved.keyInodes == whole.keyInodes && saved.departures == whole.departures)
    #expect(saved.answered == whole.answered && saved.numbers == whole.numbers)
  }

  private static let items: [ControlItem] = [
    .root, .places, .declaredPlaces, .users, .searches, .explanations, .explained("d"),
    .descriptions, .described("d"), .schemas, .histories, .changed("d"), .moments, .moment(3),
    .pastDomain(3, "d"), .search("d"), .explanation("d", "k"), .description("d", "k"),
    .schema("d", isJSON: false), .schema("d", isJSON: true), .changes("d", "k"),
    .pastKey(3, "d", "k"), .status, .place(.host), .documents, .suites, .declarations(nil),
    .declarations(.managed),
  ]

  @Test("each item of the control directory is saved as itself")
  func controlItems() throws {
    var writer = ByteWriter()
    for item in Self.items { writer.append(item) }
    var reader = ByteReader(writer.bytes[...])
    for item in Self.items {
      let saved = try reader.controlItem()
      #expect(saved == item)
    }
    #expect(reader.isAtEnd)
  }

  @Test("a key that nobody has written to takes some twenty bytes and its names")
  func size() throws {
    let bytes = forest.saveAll()
    #expect(bytes.count < 800 * (5 + 22))
    let saved = try SavedTree([bytes])
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

extension SavedTree {
  /// Reads the records of one tree.
  init(_ records: [[UInt8]]) throws {
    self.init()
    for bytes in records {
      var reader = ByteReader(bytes[...])
      while !reader.isAtEnd {
        let kind = try reader.recordKind()
        // The number of the tree.
        _ = try reader.number(UInt16.self)
        try add(kind, &reader)
      }
    }
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
