import PreferenceModel
import Testing

@Suite("What is kept of locations") struct LocationTableTests {
  private static let host = Location(.host, "d")
  private static let user = Location(.user, "d")
  private static let global = Location(.user, .global)

  private func table(_ contents: [Location: [String]]) -> LocationTable<[String]> {
    var table = LocationTable<[String]>()
    for (location, words) in contents { table[location] = words }
    return table
  }

  @Test("a search ends at the first location that has it, or of which nothing is known")
  func search() {
    var words = table([Self.user: ["K"]])
    let all = [Self.host, Self.user, Self.global]
    func found(_ word: String, _ locations: [Location]) -> String {
      let finding = words.findFirst(in: locations) { $1.contains(word) ? word : nil }
      return switch finding {
      case .unknown(let location): "unknown \(location)"
      case .nothing: "nothing"
      case .found(_, let location): "\(location)"
      }
    }
    #expect(found("K", all) == "unknown \(Self.host)")
    #expect(found("K", [Self.user, Self.global]) == "\(Self.user)")
    #expect(found("Missing", [Self.user, Self.global]) == "unknown \(Self.global)")
    words[Self.host] = ["K", "H"]
    words[Self.global] = ["G"]
    #expect(found("K", all) == "\(Self.host)")
    #expect(found("G", all) == "\(Self.global)")
    #expect(found("G", [Self.global, Self.user]) == "\(Self.global)")
    #expect(found("G", [Self.user, Self.host]) == "nothing")
    #expect(words.has("d", in: [.host, .user]) && !words.has("d", in: [.host, .managed]))
    #expect(!words.has("other", in: [.user]) && words.has("other", in: []))
    #expect(Set(words.locations) == Set(all) && words.locations.count == 3)
  }

  @Test("the contents of all locations, and of those of one place")
  func each() {
    let words = table([Self.host: ["h"], Self.user: ["u"], Self.global: ["g"]])
    var found: [Location: [String]] = [:]
    words.forEach { found[$0] = copy $1 }
    #expect(found == [Self.host: ["h"], Self.user: ["u"], Self.global: ["g"]])
    found = [:]
    words.forEach(in: .user) { found[$0] = copy $1 }
    #expect(found == [Self.user: ["u"], Self.global: ["g"]])
  }

  @Test("a location is changed in place, replaced and removed, and its neighbours stay")
  func change() {
    for place in [Place.ownManaged, .schema, .managedFor("ada"), .managedFor("bob")] {
      let location = Location(place, "d")
      var words = table([Self.host: ["h"], location: ["a"], Self.user: ["u"]])
      words[location]?.append("b")
      words[Location(.managedFor("eve"), "d")]?.append("never")
      #expect(words[location] == ["a", "b"] && words.locations.count == 3)
      words[location] = ["c"]
      #expect(words.read(location) { $0.count } == 1)
      words[location] = nil
      #expect(words[location] == nil && words.read(location) { $0.count } == nil)
      #expect(words[Self.host] == ["h"] && words[Self.user] == ["u"])
      for neighbour in [Self.host, Self.user] { words[neighbour] = nil }
      #expect(words.locations.isEmpty && !words.has("d", in: [.user]))
    }
  }

  @Test("a change in place copies no contents of the domain")
  func copies() {
    var words = table([Self.host: ["h"], Self.user: ["u"]])
    let before = words.read(Self.user) { $0.withUnsafeBufferPointer { $0.baseAddress } }
    words[Self.host]?[0] = "x"
    words[Self.user]?[0] = "y"
    let after = words.read(Self.user) { $0.withUnsafeBufferPointer { $0.baseAddress } }
    #expect(before == after && words[Self.user] == ["y"])
  }
}
