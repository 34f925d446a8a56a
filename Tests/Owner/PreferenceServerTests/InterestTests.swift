import PreferenceModel
import PropertyList
import StoreAccess
import Support
import Synchronization
import SystemCalls
import Testing

@testable import PreferenceClient

private let author = Author(number: 5)
private let user = Location(.user, "d")

/// A client, and how many notices it has got.
private final class Listener: Sendable {
  let client: StoreClient
  private let heard = Mutex(0)

  init(_ served: ServedStore, hearsAll: Bool = false) throws {
    client = try served.client(hearsAll: hearsAll)
    client.observe(except: nil) { [weak self] _ in self?.heard.withLock { $0 += 1 } }
  }

  deinit { client.close() }

  /// An answer comes after every notice that was sent before it.
  func count() throws -> Int {
    try client.makeDurable()
    return heard.withLock { $0 }
  }
}

@Suite("What clients are told of") struct InterestTests {
  private func set(_ key: Key, _ value: Int64, in domain: DomainName = "d") -> Intent {
    .set(key, domain, .integer(WideInteger(value)), .canonical)
  }

  /// A store in which the domains `d`, `e` and the settings have a key.
  private func withStore(_ body: (ServedStore) throws -> Void) throws {
    try withServedStore { served in
      _ = try served.places.apply(
        [
          set("K", 0), set("K", 0, in: "e"), set("K", 0, in: .settings), .createDomain("empty"),
          .edit(CloudFacts.notes, .set(CloudFacts.account, "a", .unknown)),
        ], by: author)
      try body(served)
    }
  }

  @Test("values that change in a domain reach those who have asked for it, and wake no others")
  func values() throws {
    try withStore { served in
      let (idle, reader, all) = (
        try Listener(served), try Listener(served), try Listener(served, hearsAll: true)
      )
      // It asks for a key that is missing, and has changed another domain.
      #expect(try reader.client.find("None", at: user) == nil)
      _ = try idle.client.apply([set("K", 1, in: "e")], by: author)
      let before = (try idle.count(), try reader.count(), try all.count())
      #expect(before == (1, 0, 1))
      for number in 1...10 as ClosedRange<Int64> {
        _ = try served.places.apply([set("K", number)], by: author)
      }
      _ = try served.places.apply([.describe("K", "d", Description(mode: 0o400))], by: author)
      // Nothing is missing here: a read need not wait for a notice.
      #expect(idle.client.isFresh)
      let counts = (try idle.count(), try reader.count(), try all.count())
      #expect(counts == (1, 11, 12))
      // From its first question on it hears of the domain, too.
      #expect(try idle.client.find("K", at: user)?.value == 10)
      _ = try served.places.apply([set("K", 11)], by: author)
      #expect(try idle.client.find("K", at: user)?.value == 11)
      _ = try served.places.apply([.remove("K", "d")], by: author)
      #expect(try idle.client.find("K", at: user) == nil)
      _ = try served.places.apply([set("K", 2, in: "e")], by: author)
      #expect(try idle.count() == 4)
    }
  }

  @Test("every client is told of what may change listings, and of settings of the store")
  func listings() throws {
    try withStore { served in
      let cases: [(String, [Intent])] = [
        ("a new domain", [set("K", 1, in: "new")]),
        ("an empty one", [.createDomain("other")]),
        ("a domain that goes", [.removeDomain("empty")]),
        ("a domain that is renamed", [.renameDomain("e", to: "f")]),
        ("a first key in another place", [.edit(Location(.host, "d"), .set("K", 1, .unknown))]),
        ("a setting of the store", [set("K", 2, in: .settings)]),
        (
          "another account of the cloud",
          [.edit(CloudFacts.notes, .set(CloudFacts.account, "b", .unknown))]
        ),
      ]
      for (name, intents) in cases {
        let idle = try Listener(served)
        _ = try served.places.apply(intents, by: author)
        #expect(try idle.count() == 1, "\(name)")
      }
      let idle = try Listener(served)
      served.places.store.lists.invalidate(user)
      _ = try served.places.apply([set("L", 1)], by: author)
      _ = try served.places.apply([set("L", 2)], by: author)
      // A list that may be readable again, and a key that might have made its domain.
      #expect(try idle.count() == 2)
    }
  }

  @Test("a client that has asked for very many domains is told of all")
  func many() throws {
    try withStore { served in
      let client = try Listener(served)
      for number in 0...1024 {
        _ = try client.client.modified(Location(.user, DomainName("d\(number)")))
      }
      _ = try served.places.apply([set("K", 1)], by: author)
      #expect(try client.count() == 1)
    }
  }

  @Test("a change waits for the mounts that are told of it, and for no others")
  func mounts() throws {
    try withStore { served in
      let listener = try Listener(served)
      let (client, mount) = (listener.client, Author(number: 77))
      client.addMount(mount)
      _ = try listener.count()
      let settlements = served.places.settlements
      let isSettled = { settlements.isSettled(.entries, through: $0, except: author) }
      let first = try served.places.apply([set("K", 1)], by: author)
      #expect(isSettled(first.version))
      _ = try client.find("K", at: user)
      let second = try served.places.apply([set("K", 2)], by: author)
      #expect(!isSettled(second.version))
      let third = try served.places.apply([set("K", 3, in: "e")], by: author)
      client.settle(.entries, through: second.version, by: mount)
      _ = try listener.count()
      #expect(isSettled(third.version))
      let last = try served.places.apply([set("K", 1, in: "new")], by: author)
      #expect(!isSettled(last.version))
    }
  }
}
