import PreferenceModel
import PropertyList
import SystemCalls
import Testing

@testable import PreferenceClient

@Suite("The locations that a client has loaded") struct LoadedLocationsTests {
  private static let host = Location(.host, "d")
  private static let user = Location(.user, "d")
  private static let global = Location(.user, .global)

  private func snapshot(_ keys: Key...) -> DomainSnapshot {
    var snapshot = DomainSnapshot()
    for key in keys {
      snapshot.apply(.set(key, .string("\(key)"), .canonical), time: Timestamp(nanoseconds: 1))
    }
    return snapshot
  }

  @Test("a look-up finds the first location that has the key, or the first that is not loaded")
  func find() throws {
    var loaded = LoadedLocations()
    loaded[Self.user] = snapshot("K")
    let all = [Self.host, Self.user, Self.global]
    func found(_ key: Key, _ locations: [Location]) -> String {
      switch loaded.find(key, in: locations) {
      case .unloaded: "unloaded"
      case .nothing: "nothing"
      case .value(let found): "\(found.location)"
      }
    }
    #expect(found("K", all) == "unloaded")
    #expect(found("K", [Self.user, Self.global]) == "\(Self.user)")
    #expect(found("Missing", [Self.user, Self.global]) == "unloaded")
    loaded[Self.host] = snapshot("K", "H")
    loaded[Self.global] = snapshot("G")
    #expect(found("K", all) == "\(Self.host)")
    #expect(found("G", all) == "\(Self.global)")
    #expect(found("G", [Self.user, Self.host]) == "nothing")
    #expect(loaded.has("d", in: [.host, .user]) && !loaded.has("d", in: [.host, .managed]))
    #expect(Set(loaded.all.keys) == Set(all))
  }

  @Test("a location is changed in place, replaced and removed, and its neighbours stay")
  func change() throws {
    var loaded = LoadedLocations()
    for location in [Self.host, Self.user] { loaded[location] = snapshot("K") }
    loaded.change(Self.user) { $0 = snapshot("New") }
    loaded.change(Self.global) { $0 = snapshot("Never") }
    #expect(loaded[Self.user]?.entry("New") != nil && loaded[Self.user]?.entry("K") == nil)
    #expect(loaded[Self.global] == nil)
    loaded[Self.host] = snapshot("Other")
    #expect(loaded[Self.host]?.entry("Other") != nil && loaded[Self.user]?.entry("New") != nil)
    loaded[Self.host] = nil
    #expect(loaded[Self.host] == nil && loaded[Self.user] != nil)
    loaded[Self.user] = nil
    #expect(loaded.all.isEmpty && !loaded.has("d", in: [.user]))
  }

  @Test("a key that comes to a place without keys is found there, and not once the place is empty")
  func emptyPlaces() throws {
    for place in [Place.ownManaged, .user, .schema, .managedFor("ada"), .managedFor("bob")] {
      var loaded = LoadedLocations()
      let (location, others) = (Location(place, "d"), [Self.host, Location(.vendor, "d")])
      for empty in others + [location] { loaded[empty] = DomainSnapshot() }
      func isFound() -> Bool {
        if case .value(let found) = loaded.find("K", in: others + [location]) {
          return found.location == location
        }
        return false
      }
      #expect(!isFound())
      loaded.change(location) {
        $0.apply(.set("K", .boolean(true), .canonical), time: Timestamp(nanoseconds: 1))
      }
      #expect(isFound())
      loaded.change(location) { $0.apply(.remove("K"), time: Timestamp(nanoseconds: 2)) }
      #expect(!isFound())
      loaded[location] = snapshot("K")
      #expect(isFound())
      loaded[location] = DomainSnapshot()
      #expect(!isFound())
      loaded[location] = nil
      loaded[location] = snapshot("K")
      #expect(isFound() && loaded[others[0]] != nil && loaded[others[1]] != nil)
    }
  }
}
