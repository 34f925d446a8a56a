import PreferenceModel
import PropertyList
import SystemCalls
import Testing

@testable import PreferenceTree

@Suite("Values that a change has removed")
struct RemovedValuesTests {
  private static func snapshot(_ value: Value) -> LocationSnapshot {
    var contents = LocationSnapshot.Contents()
    contents.exists = true
    contents.list = .decoded(["K": value])
    return LocationSnapshot(contents)
  }

  private static func removal(_ place: Place, _ domain: DomainName, _ value: Value)
    -> Changeset.Item
  {
    Changeset.Item(Location(place, domain), .removeDomain, before: .domain(snapshot(value)))
  }

  @Test("of a domain that went from two places, the one that came first counts")
  func order() {
    let change = Changeset([Self.removal(.user, "d", 1), Self.removal(.host, "d", 2)])
    let removed = RemovedValues(of: change)
    #expect(removed[KeyPath(domain: "d", key: "K")]?.value == 2)
    #expect(removed[KeyPath(domain: "d", key: "L")] == nil)
    #expect(removed[KeyPath(domain: "e", key: "K")] == nil)
  }

  @Test("10,000 domains that went are looked up at once")
  func many() {
    let names = (0..<10_000).map { DomainName("d\($0)") }
    let removed = RemovedValues(of: Changeset(names.map { Self.removal(.user, $0, 1) }))
    let start = Instant.now
    let found = names.filter { removed[KeyPath(domain: $0, key: "K")]?.value == 1 }
    #expect(found == names)
    #expect(Instant.now.nanoseconds(after: start) < 2_000_000_000)
  }
}
