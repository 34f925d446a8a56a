import PreferenceModel
import PreferenceSearch
import PropertyList
import SystemCalls
import Testing

@testable import PreferenceTree

@Suite("Listings") struct ListingTests {
  @Test("a large listing is dropped when it was read to its end, and goes on the same for others")
  func dropped() throws {
    let engine = SearchEngine(places: MemoryPlaces())
    let count = Tree.mostKept + 10
    let intents = (0..<count).map {
      Intent.set(Key("K\($0)"), "d", .integer(WideInteger(UInt64($0))), .unknown)
    }
    _ = try engine.apply(intents, by: Author(number: 2))
    let now = Moment(instant: Instant(nanoseconds: 0), time: Timestamp(nanoseconds: 1))
    let tree = Tree(engine: engine, author: Author(number: 1), now: now) { _ in }
    guard case .found(let entry) = try tree.lookup(.root, Array("d".utf8), now: now) else {
      throw TreeError.missing
    }
    let all = try tree.list(entry.node, after: 0)
    #expect(all.count == count && tree.table[entry.node]?.directory?.listing != nil)
    // Another process is in the middle when the first one reaches the end.
    let middle = all[all.startIndex + 500].cookie
    let last = try #require(all.last?.cookie)
    #expect(try tree.list(entry.node, after: last).isEmpty)
    #expect(tree.table[entry.node]?.directory?.listing == nil)
    #expect(try tree.list(entry.node, after: middle) == all.dropFirst(501))
  }
}
