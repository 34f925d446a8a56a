import PreferenceModel
import PropertyList
import Synchronization
import SystemCalls
import Testing

@testable import DefaultsCommand

@Suite("What places have of many domains") struct DomainContentsTests {
  @Test(
    "the requests do not grow with the domains that are new, and are few for those that are there",
    arguments: [(there: 0, requests: 3), (1, 4), (64, 4), (65, 5), (6400, 103)])
  func requests(there: Int, requests: Int) throws {
    let store = CountingPlaces((0..<there).map { DomainName("d\($0)") })
    let domains = (0..<there + 20_000).map { DomainName("d\($0)") }
    let contents = try DomainContents(of: domains, in: Place.own, store)
    #expect(store.requests.withLock { $0 } == requests)
    for domain in domains.prefix(there) { #expect(contents.find("K", in: domain) == 1) }
    #expect(contents.find("K", in: domains[there]) == nil)
    #expect(contents.find("L", in: "d0") == nil)
  }

  @Test("a place that cannot be listed leaves its domains to be read")
  func unlisted() throws {
    let store = CountingPlaces(["d0"], canList: false)
    let contents = try DomainContents(of: ["d0"], in: [.user], store)
    #expect(contents.find("K", in: "d0") == 1)
  }
}

/// Places with a key in each domain, in the user's list, that count what they are asked.
private final class CountingPlaces: PersistentPlaces {
  let requests = Mutex(0)
  private let domains: Set<DomainName>
  private let canList: Bool

  init(_ domains: [DomainName], canList: Bool = true) {
    (self.domains, self.canList) = (Set(domains), canList)
  }

  func domains(in place: Place) throws(EngineError) -> Set<DomainName> {
    requests.withLock { $0 += 1 }
    guard canList else { throw EngineError(.system(.permissionDenied), "not listed") }
    return place == .user ? domains : []
  }

  func snapshots(of locations: [Location]) throws(EngineError) -> [LocationSnapshot] {
    requests.withLock { $0 += 1 }
    return locations.map { location in
      var snapshot = LocationSnapshot()
      if location.place == .user, domains.contains(location.domain) {
        snapshot.apply(.set("K", 1, .canonical), time: Timestamp(nanoseconds: 1))
      }
      return snapshot
    }
  }

  func find(_ key: Key, at location: Location) throws(EngineError) -> StoredValue? {
    requests.withLock { $0 += 1 }
    return nil
  }

  func keys(at location: Location) throws(EngineError) -> [Key] { [] }
  func modified(_ location: Location) throws(EngineError) -> Timestamp? { nil }
  func isLoaded(_ location: Location) -> Bool { false }
  func apply(_ intents: [Intent], by author: Author) throws(EngineError) -> Changeset {
    Changeset()
  }
  func observe(except author: Author?, _ observer: @escaping @Sendable (Notice) -> Void) {}
  var isReadOnly: Bool { true }
  var isFresh: Bool { true }
}
