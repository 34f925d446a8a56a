import PreferenceModel
import PreferenceSearch
import PropertyList
import SystemCalls
import Testing

@testable import PreferenceTree

@Suite("Listings") struct ListingTests {
  private let now = Moment(instant: Instant(nanoseconds: 0), time: Timestamp(nanoseconds: 1))
  private let engine = SearchEngine(places: MemoryPlaces())
  private let tree: Tree

  init() { tree = Tree(engine: engine, author: Author(number: 1), now: now) { _ in } }

  /// Makes a domain of so many keys, and returns the node of its directory.
  private func directory(_ count: Int) throws -> NodeID {
    _ = try engine.apply((0..<count).map { set(Key("K\($0)")) }, by: Author(number: 2))
    guard case .found(let entry) = try tree.lookup(.root, Array("d".utf8), now: now) else {
      throw TreeError.missing
    }
    return entry.node
  }

  private func set(_ key: Key) -> Intent { .set(key, "d", .boolean(true), .unknown) }

  /// Makes a key, as another process does.
  private func add(_ key: Key) throws {
    let changeset = try engine.apply([set(key)], by: Author(number: 2))
    tree.changed(changeset, now: now)
  }

  @Test("a large listing is dropped when it was read to its end, and goes on the same for others")
  func dropped() throws {
    let node = try directory(ListingState.mostKept + 10)
    let all = try tree.list(node, after: 0, since: nil)
    let state = { tree.table[node]?.directory?.listing.listing(since: 0) }
    #expect(all.count == ListingState.mostKept + 10 && state() != nil)
    // Another process is in the middle when the first one reaches the end.
    let middle = all[all.startIndex + 500].cookie
    let last = try #require(all.last?.cookie)
    #expect(try tree.list(node, after: last, since: nil).isEmpty)
    #expect(state() == nil)
    #expect(try tree.list(node, after: middle, since: nil).elementsEqual(all.dropFirst(501)))
  }

  @Test("who goes on reads what it began with; who begins reads the entries as they are")
  func changed() throws {
    let node = try directory(10)
    let all = try tree.list(node, after: 0, since: nil)
    let first = try #require(all.first?.cookie)
    try add("New")
    #expect(try tree.list(node, after: first, since: nil).elementsEqual(all.dropFirst()))
    #expect(try tree.list(node, after: 0, since: nil).contains { $0.name == "New" })
  }

  @Test(
    "a listing gives all attributes of a small directory, and of a large one where they are used")
  func attributes() throws {
    let small = try directory(ListingState.mostWithAttributes)
    let all = try tree.list(small, after: 0, since: nil)
    let middle = all[all.startIndex + 500].cookie
    let given = { tree.attributesGiven(small, after: $0 as UInt64) }
    #expect(given(0) == .all && given(middle) == .all)
    try add("One more")
    _ = try tree.list(small, after: 0, since: nil)
    #expect(given(0) == .allButFirst && given(middle) == .none)
    tree.noteLookup(in: small)
    #expect(given(middle) == .all)
    #expect(given(0) == .allButFirst && given(middle) == .none)
  }

  @Test("only a listing of many keys is to be made before", arguments: [(10, false), (3000, true)])
  func needed(_ count: Int, _ isNeeded: Bool) throws {
    let node = try directory(count)
    #expect((tree.listingNeeded(node, after: 0, since: nil) != nil) == isNeeded)
  }

  @Test("a listing that was made meanwhile serves who waited for it, and nobody who came later")
  func made() throws {
    let node = try directory(3000)
    let plan = try #require(tree.listingNeeded(node, after: 0, since: nil))
    try add("New")
    tree.put(try plan.make(), of: node, version: plan.version)
    #expect(tree.listingNeeded(node, after: 0, since: plan.version) == nil)
    let later = try #require(tree.listingNeeded(node, after: 0, since: nil))
    tree.put(try later.make(), of: node, version: later.version)
    #expect(try tree.list(node, after: 0, since: nil).count == 3001)
    // The older one comes last, from a slower thread.
    tree.put(Listing(), of: node, version: plan.version)
    #expect(try tree.list(node, after: 0, since: nil).count == 3001)
  }

  @Test("a domain with a new name has no listing of the old one")
  func renamed() throws {
    let node = try directory(3000)
    let plan = try #require(tree.listingNeeded(node, after: 0, since: nil))
    try tree.rename(.root, Array("d".utf8), to: .root, Array("e".utf8), .replace, now: now)
    tree.put(try plan.make(), of: node, version: plan.version)
    #expect(tree.listingNeeded(node, after: 0, since: nil) != nil)
    #expect(try tree.list(node, after: 0, since: nil).count == 3000)
  }
}
