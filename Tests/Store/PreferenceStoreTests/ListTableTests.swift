import PreferenceModel
import PropertyList
import SystemCalls
import Testing

@testable import PreferenceStore

@Suite("Lists in memory") struct ListTableTests {
  private func list(_ values: ValueDictionary = [:]) -> LocationState {
    var list = LocationState()
    for (key, value) in values {
      list.snapshot.apply(.set(key, value, .canonical), time: Timestamp(nanoseconds: 1))
    }
    return list
  }

  @Test("a key is found in a list that has it, and not in one that cannot be read")
  func find() throws {
    var table = ListTable()
    let location = Location(.user, "d")
    table[location] = list()
    func find(_ key: Key) throws(EngineError) -> Value?? {
      try table.read(location) { list throws(EngineError) in try list.find(key)?.value }
    }
    #expect(try find("K") == .some(nil))
    table[location]?.snapshot.apply(
      .set("K", .integer(2), .canonical), time: Timestamp(nanoseconds: 2))
    #expect(try find("K") == .integer(2))
    #expect(try find("L") == .some(nil))
    table[location]?.failure = EngineError(.unreadable, domain: "d", "damaged")
    #expect(throws: EngineError.self) { try find("K") }
    #expect(table.has("d", in: [.user]) && !table.has("d", in: [.user, .host]))
    #expect(table.remove(location)?.failure != nil)
    #expect(try find("K") == nil)
    #expect(table.remove(location) == nil && table[location] == nil && table.locations.isEmpty)
  }

  @Test("all lists are there, each once")
  func all() {
    var table = ListTable()
    let locations = [("a", Place.user), ("a", .managedFor("ada")), ("b", .user)].map {
      Location($1, DomainName($0))
    }
    for location in locations {
      table[location] = list()
      table[location]?.recent.note("K", before: nil)
    }
    func recent(in place: Place? = nil) -> [Location] {
      var found: [Location] = []
      table.forEach(in: place) { if $1.recent.deadline != nil { found.append($0) } }
      return found
    }
    #expect(recent().count == 3 && Set(recent()) == Set(locations))
    #expect(Set(recent(in: .user)) == [locations[0], locations[2]])
    #expect(Set(table.locations) == Set(locations))
    #expect(table.forgetRecent(.now) != nil, "they are kept for ten seconds")
    #expect(table.forgetRecent(Instant.now.advanced(milliseconds: 3_600_000)) == nil)
    #expect(recent().isEmpty)
  }

  @Test("the lists that lack a change are known without a look at the others")
  func unsaved() {
    var table = ListTable()
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
