import PreferenceModel
import PropertyList
import SystemCalls
import Testing

@testable import PreferenceClient

@Suite("A client's copy of the store")
struct ReplicaTests {
  @Test("a change of 10,000 domains that are loaded costs a look at each of its edits")
  func many() {
    let replica = Replica()
    let locations = (0..<10_000).map { Location(.user, DomainName("d\($0)")) }
    for location in locations {
      replica.beginLoading(location)
      replica.endLoading(location, (LocationSnapshot.Contents(), version: 1))
    }
    var change = Changeset(locations.map { Changeset.Item($0, .set("K", 1, .canonical)) })
    let start = Instant.now
    replica.apply(&change)
    #expect(Instant.now.nanoseconds(after: start) < 3_000_000_000)
    let values = locations.map { location in
      replica.read(location) { $0.entry("K")?.value } ?? nil
    }
    #expect(values.allSatisfy { $0 == 1 })
  }

  @Test("a location that a change invalidates is dropped, and its edit is not kept")
  func invalidated() {
    let replica = Replica()
    let (kept, dropped) = (Location(.user, "kept"), Location(.user, "dropped"))
    for location in [kept, dropped] {
      replica.beginLoading(location)
      replica.endLoading(location, (LocationSnapshot.Contents(), version: 1))
    }
    var change = Changeset([kept, dropped].map { Changeset.Item($0, .set("K", 1, .canonical)) })
    change.invalidated = [dropped]
    replica.apply(&change)
    #expect(replica.holds(kept) && !replica.holds(dropped))
  }
}
