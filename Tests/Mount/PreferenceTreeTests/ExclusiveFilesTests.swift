import PreferenceModel
import PreferenceSearch
import PropertyList
import Synchronization
import SystemCalls
import Testing

@testable import PreferenceTree

/// open(2) with O_EXCL of one name in the trees of two mounts.
@Suite("Files that are made exclusively") struct ExclusiveFilesTests {
  /// The names that mounts have claimed, in place of the owner of the store.
  private final class Names: NameClaims {
    let held = Mutex<[Key: Author]>([:])
    /// What happens before a name is given.
    let first = Mutex<(@Sendable () throws(EngineError) -> Void)?>(nil)

    var all: Set<Key> { Set(held.withLock { $0.keys }) }

    func claim(_ name: Key, by author: Author) throws(EngineError) -> Bool {
      try first.withLock { $0 }?()
      return held.withLock { held in
        defer { held[name] = held[name] ?? author }
        return held[name] ?? author == author
      }
    }

    func claimAgain(_ names: [Key], by author: Author) {
      held.withLock { held in for name in names { held[name] = author } }
    }

    func release(_ name: Key, by author: Author) {
      held.withLock { if $0[name] == author { $0[name] = nil } }
    }
  }

  private let names = Names()
  private let engine = SearchEngine(places: MemoryPlaces())
  private let one: Tree
  private let other: Tree
  private let now = Moment(instant: Instant(nanoseconds: 0), time: Timestamp(nanoseconds: 1))

  init() throws {
    let (engine, names, now) = (engine, names, now)
    (one, other) = (tree(1), tree(2))
    _ = try engine.apply([.set("K", "d", 4, .unknown)], by: Author(number: 3))

    func tree(_ number: UInt64) -> Tree {
      Tree(engine: engine, author: Author(number: number), claims: names, now: now) { _ in }
    }
  }

  private func directory(_ tree: Tree, _ name: String = "d") throws -> NodeID {
    guard case .found(let entry) = try tree.lookup(.root, Array(name.utf8), now: now) else {
      throw TreeError.missing
    }
    return entry.node
  }

  @discardableResult
  private func make(
    _ name: String, in tree: Tree, exclusively: Bool = true, readsToo: Bool = true
  ) throws -> NodeID {
    var flags = CreationFlags()
    (flags.exclusively, flags.readsToo) = (exclusively, readsToo)
    return try tree.create(directory(tree), Array(name.utf8), flags, now: now).entry.node
  }

  /// The errno of a refusal; nil if there was none.
  private func refusal(_ body: () throws -> Void) -> Errno? {
    do { try body() } catch { return (error as? TreeError)?.errno }
    return nil
  }

  @Test("a scratch file's name is claimed, temporary or in doubt", arguments: [true, false])
  func exclusive(readsToo: Bool) throws {
    for name in [".K.swp", "New.lock"] + (readsToo ? ["New"] : []) {
      try make(name, in: one, readsToo: readsToo)
      #expect(names.all.contains(Key("d/" + name)))
      #expect(refusal { try make(name, in: other, readsToo: readsToo) } == .fileExists, "\(name)")
    }
    #expect(other.scratchPaths == [])
  }

  @Test("no name is claimed for a key, for a file that is made without O_EXCL, or in a directory")
  func others() throws {
    try make("New", in: one, readsToo: false)
    try make(".K.new", in: one, exclusively: false)
    let parent = try one.makeDirectory(directory(one), Array(".~tmp~".utf8), now: now).node
    var flags = CreationFlags()
    (flags.exclusively, flags.readsToo) = (true, true)
    _ = try one.create(parent, Array("K".utf8), flags, now: now)
    #expect(names.all == [])
    try make(".K.new", in: other)
  }

  /// How a file loses the name that was claimed.
  enum End: CaseIterable { case unlink, rename, renameToKey, type, time, otherKey, domain }

  @Test("a claim ends when the file has the name no longer", arguments: End.allCases)
  func ends(_ end: End) throws {
    let (node, directory, name) = (try make("New", in: one), try directory(one), Array("New".utf8))
    try one.write(node, WriteRequest(Array("5\n".utf8), at: 0), now: now)
    #expect(names.all == ["d/New"])
    switch end {
    case .unlink: try one.unlink(directory, name, now: now)
    case .rename:
      try one.rename(directory, name, to: directory, Array(".K.x".utf8), .replace, now: now)
    case .renameToKey:
      try one.rename(directory, name, to: directory, Array("K".utf8), .replace, now: now)
    case .type:
      try one.setExtendedAttribute(node, "user.prefs.type", Array("integer".utf8), now: now)
    case .time:
      let later = now.instant.advanced(milliseconds: 5001)
      one.tick(now: Moment(instant: later, time: Timestamp(nanoseconds: 2)))
    case .otherKey:
      let made = try engine.apply([.set("New", "d", 7, .unknown)], by: Author(number: 3))
      one.changed(Notice(changeset: made, author: Author(number: 3)), now: now)
      _ = try one.lookup(directory, name, now: now)
    case .domain:
      try one.rename(.root, Array("d".utf8), to: .root, Array("e".utf8), .replace, now: now)
    }
    #expect(names.all == [])
  }

  @Test("where no owner answers, or another mount has made a key meanwhile, nothing is made")
  func refused() throws {
    let engine = engine
    names.first.withLock {
      $0 = { () throws(EngineError) in throw EngineError(.system(.timedOut), "no owner") }
    }
    #expect(refusal { try make("New", in: one) } == .timedOut)
    names.first.withLock {
      $0 = { () throws(EngineError) in
        _ = try engine.apply([.set("New", "d", 7, .unknown)], by: Author(number: 3))
      }
    }
    #expect(refusal { try make("New", in: one) } == .fileExists)
    #expect(names.all == [] && one.scratchPaths == [])
  }

  @Test("a successor knows which names are claimed")
  func successor() throws {
    one.saver.beginSaving()
    try make(".K.swp", in: one)
    try make(".K.new", in: one, exclusively: false)
    var writer = ByteWriter()
    one.saver.saveAll(&writer)
    let author = Author(number: 3)
    let successor = Tree(engine: engine, author: author, claims: names, now: now) { _ in }
    let saved = try #require(try SavedTrees([writer.bytes]).trees[0])
    try successor.restore(saved, now: now.instant)
    #expect(successor.scratch.claimed == ["d/.K.swp"])
    try successor.unlink(directory(successor), Array(".K.swp".utf8), now: now)
    #expect(successor.scratch.claimed == [])
  }
}
