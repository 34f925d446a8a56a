import PreferenceModel
import PreferenceSearch
import PropertyList
import Synchronization
import SystemCalls
import Testing

@testable import FUSEDriver
@testable import PreferenceTree

@Suite("Listings that other threads make") struct ListingMakerTests {
  private final class Counter: Sendable { let count = Atomic<Int>(0) }

  private static let now = Moment.now
  private let engine = SearchEngine(places: MemoryPlaces())

  private func plan(_ version: UInt64) -> ListingPlan {
    ListingPlan(
      version: version, names: .keys(of: "d"), engine: engine, listsInherited: false,
      inodes: InodeNumbers(TreePosition()), departed: [], scratch: [])
  }

  @Test("one that is new enough is made once, for all who wait for it")
  func once() throws {
    let maker = ListingMaker()
    let counter = Counter()
    let node = NodeID(rawValue: 7)
    let make = { (plan: ListingPlan, version: UInt64) in
      maker.make(plan, of: node, since: version) {
        counter.count.add(1, ordering: .sequentiallyConsistent)
      }
    }
    #expect(make(plan(2), 2) && make(plan(3), 1) && make(plan(3), 2))
    #expect(make(plan(3), 3))
    while counter.count.load(ordering: .sequentiallyConsistent) < 2 {
      Instant.sleep(milliseconds: 1)
    }
    Instant.sleep(milliseconds: 20)
    #expect(counter.count.load(ordering: .sequentiallyConsistent) == 2 && maker.isBusy)
  }
}
