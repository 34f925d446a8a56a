import PreferenceModel
import PreferenceProtocol
import PropertyList
import StoreAccess
import SystemCalls
import Testing

@testable import PreferenceServer

@Suite("Requests that wait for lists")
struct HeldRequestsTests {
  private static func request(_ intents: [Intent]) -> Request {
    .apply(serial: 1, Author(number: 5), deadline: .now, .atOnce, intents)
  }

  private static func milliseconds(since start: Instant) -> Int64 {
    Instant.now.nanoseconds(after: start) / 1_000_000
  }

  @Test("the list of a domain is prepared once, however many of its keys are changed")
  func keys() throws {
    try withServedStore { served in
      let lists = ListReader(served.places)
      var held = HeldRequests()
      let intents = (0..<50_000).map { Intent.set(Key("K\($0)"), "d", 1, .unknown) }
      let start = Instant.now
      let isKept = held.keep(Self.request(intents), 1, bytes: 1, lists)
      #expect(isKept)
      while held.removeOpen(lists).isEmpty, Self.milliseconds(since: start) < 8000 {
        Instant.sleep(microseconds: 1000)
      }
      #expect(Self.milliseconds(since: start) < 3000)
    }
  }

  @Test("what a change of many domains needs is found out in one look at each")
  func domains() throws {
    try withServedStore { served in
      let lists = ListReader(served.places)
      var held = HeldRequests()
      let intents = (0..<5000).map { Intent.set("K", DomainName("d\($0)"), 1, .unknown) }
      let start = Instant.now
      let isKept = held.keep(Self.request(intents), 1, bytes: 1, lists)
      #expect(isKept)
      for _ in 0..<1000 { _ = held.removeOpen(lists) }
      #expect(Self.milliseconds(since: start) < 3000)
      // The store is not removed while its lists are being read.
      while !held.isEmpty, Self.milliseconds(since: start) < 30_000 {
        _ = held.removeOpen(lists)
        Instant.sleep(microseconds: 1000)
      }
      #expect(held.isEmpty)
    }
  }
}
