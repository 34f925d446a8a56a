import PreferenceModel
import PropertyList
import SystemCalls
import Testing

@testable import PreferenceStore

@Suite("Lists in memory") struct DomainTableTests {
  private func list(_ values: ValueDictionary = [:]) -> LocationState {
    var list = LocationState()
    for (key, value) in values {
      list.snapshot.apply(.set(key, value, .canonical), time: Timestamp(nanoseconds: 1))
    }
    return list
  }

  @Test("a key is found in a list that has it, and a list that is not there is unread")
  func find() throws {
    var table = DomainTable()
    table[Location(.user, "d")] = list(["K": .integer(1)])
    table[Location(.host, "d")] = list()
    let number = table.number(of: "d")
    guard case .value(let stored) = try table.find("K", at: .user, ofDomain: number) else {
      Issue.record("K was not found")
      return
    }
    #expect(stored.value == .integer(1))
    for (place, expected) in [(Place.user, "nothing"), (.host, "nothing"), (.anyUser, "unread")] {
      #expect("\(try table.find("L", at: place, ofDomain: number))" == expected)
    }
    #expect("\(try table.find("K", at: .user, ofDomain: table.number(of: "e")))" == "unread")
  }

  @Test("an empty list that gets a key, loses it, or cannot be read, is looked at again")
  func contents() throws {
    var table = DomainTable()
    let location = Location(.user, "d")
    table[location] = list()
    let number = table.number(of: "d")
    #expect("\(try table.find("K", at: .user, ofDomain: number))" == "nothing")
    table[location]?.snapshot.apply(
      .set("K", .integer(2), .canonical), time: Timestamp(nanoseconds: 2))
    #expect("\(try table.find("K", at: .user, ofDomain: number))" != "nothing")
    table[location]?.failure = EngineError(.unreadable, domain: "d", "damaged")
    #expect(throws: EngineError.self) {
      try table.find("K", at: .user, ofDomain: number)
    }
    #expect(!table.isReadable(.user, ofDomain: number))
    #expect(table.contains(.user, ofDomain: number))
    #expect(table.remove(location)?.failure != nil)
    #expect(!table.contains(.user, ofDomain: number))
    #expect(table.remove(location) == nil && table[location] == nil && table.all.isEmpty)
  }

  @Test("all lists are there, each once")
  func all() {
    var table = DomainTable()
    let locations = [("a", Place.user), ("a", .managedFor("ada")), ("b", .user)].map {
      Location($1, DomainName($0))
    }
    for location in locations {
      table[location] = list()
      table[location]?.recent.note("K", before: nil)
    }
    #expect(Set(table.all.map(\.location)) == Set(locations))
    #expect(table.all.count { $0.list.recent.deadline != nil } == 3)
    #expect(Set(table.locations) == Set(locations))
    #expect(table.forgetRecent(.now) != nil, "they are kept for ten seconds")
    #expect(table.forgetRecent(Instant.now.advanced(milliseconds: 3_600_000)) == nil)
    #expect(table.all.count { $0.list.recent.deadline != nil } == 0)
  }

  @Test("the lists that lack a change are known without a look at the others")
  func unsaved() {
    var table = DomainTable()
    let (one, other) = (Location(.user, "a"), Location(.host, "b"))
    for location in [one, other] { table[location] = list() }
    #expect(table.unsaved.isEmpty)
    let now = Instant.now
    table[one]?.unsavedSince = now
    table[one]?.firstUnsaved = 7
    #expect(table.unsaved == [one: .init(since: now, first: 7)])
    let moved = table.remove(one)
    #expect(table.unsaved.isEmpty)
    table[other] = moved
    #expect(table.unsaved == [other: .init(since: now, first: 7)])
    table[other]?.unsavedSince = nil
    #expect(table.unsaved.isEmpty && table.locations == [other])
  }
}
