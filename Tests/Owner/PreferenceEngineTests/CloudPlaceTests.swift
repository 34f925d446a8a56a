import PreferenceCloud
import PreferenceEngine
import PreferenceModel
import PreferenceSearch
import PreferenceStore
import PropertyList
import StoreAccess
import Support
import SystemCalls
import Testing

private let author = Author(number: 1)

@Suite("Place cloud") struct CloudPlaceTests {
  private func set(_ key: Key, _ value: Value, in place: Place) -> Intent {
    .at(place, .set(key, "d", value, .unknown))
  }

  @Test("the cloud wins over the user's other places; a suite's and the global domain's are found")
  func search() throws {
    try withEngine { (_, engine: SearchEngine) throws -> Void in
      for place in Place.own {
        _ = try engine.apply([set("K", .string(place.rawValue), in: place)], by: author)
      }
      let found = try engine.resolve("K", in: "d")
      #expect(found?.value == "cloud" && found?.isReadOnly == false)
      #expect(found?.location.source(seenFrom: "d") == "cloud")
      let inherited = [
        Intent.at(.cloud, .set("S", "suite", 1, .unknown)),
        .at(.cloud, .set("G", .global, 2, .unknown)), .set("G", .global, 3, .unknown),
      ]
      for intent in inherited { _ = try engine.apply([intent], by: author) }
      engine.changeSuites(of: "d") { $0.append("suite") }
      #expect(try engine.resolve("S", in: "d")?.value == 1)
      #expect(try engine.resolve("G", in: "d")?.value == 3)
      #expect(try engine.resolve("G", in: "d")?.location == Location(.cloud, .global))
      #expect(try engine.domains().contains("suite"))
    }
  }

  @Test("a key of the cloud is written and removed there; others never go there")
  func writes() throws {
    try withPlaces { (_, places: LocalPlaces) throws -> Void in
      places.setCloudKeys(KeyPatterns(.dictionary(["d": ["Font*", "*Color"]])))
      let engine = SearchEngine(places: places)
      _ = try engine.apply([set("Made", 1, in: .cloud), set("FontOld", 1, in: .user)], by: author)
      let targets: [(Key, Place)] = [
        ("Made", .cloud), ("FontSize", .cloud), ("TextColor", .cloud), ("FontOld", .cloud),
        ("Other", .user), ("Color!", .user),
      ]
      for (key, place) in targets {
        for intent in [Intent.set(key, "d", 2, .unknown), .setOwn(key, "d", 3, .unknown)] {
          let items = try engine.apply([intent], by: author).items
          #expect(items.map(\.location) == [Location(place, "d")], "\(key)")
        }
      }
      #expect(try engine.apply([.remove("FontSize", "d")], by: author).items.count == 1)
      #expect(try places.find("FontSize", at: Location(.cloud, "d")) == nil)
      _ = try engine.apply([.removeOwn("FontOld", "d")], by: author)
      #expect(try engine.resolve("FontOld", in: "d") == nil)
    }
  }

  /// What an authoritative schema, or another one, says of keys; and where they then go.
  static let schemas: [(isAuthoritative: Bool, local: [Key: Value], places: [Place])] = [
    (true, [:], [.cloud, .user, .user]), (false, [:], [.user, .user, .user]),
    (true, ["d": ["Them*"]], [.user, .user, .user]),
    (true, ["other": ["Theme"]], [.cloud, .user, .user]),
  ]

  @Test("a key that an authoritative schema has in the cloud is set there", arguments: schemas)
  func schema(_ example: (isAuthoritative: Bool, local: [Key: Value], places: [Place])) throws {
    try withSandbox { sandbox in
      let flag = example.isAuthoritative ? "True" : "False"
      try Files.makeDirectories(sandbox.system + "/schemas", mode: 0o755)
      sandbox.makeList(
        sandbox.system + "/schemas/d.plist",
        "dict(prefs_authoritative=\(flag), pfm_subkeys=[dict(pfm_name='Theme', prefs_cloud=True), "
          + "dict(pfm_name='Size')])")
      let layout = StoreLayout(
        userDirectory: sandbox.config, systemDirectory: sandbox.system,
        stateDirectory: sandbox.state + "/s", hostIdentifier: "HOST", userName: "ada",
        schemaDirectories: [sandbox.system + "/schemas"])
      let places = try LocalPlaces(store: try Store(layout) { _ in }, writeback: 3600) { _ in }
      defer { places.close() }
      try places.load(Location(.schema, "d"))
      var number: Int64 = 0
      func target(_ key: Key) throws -> Place? {
        number += 1
        return try places.apply(
          [.set(key, "d", .integer(WideInteger(number)), .unknown)], by: author
        ).items
          .first?
          .location.place
      }
      #expect(try target("Theme") == .user, "there is no cloud")
      places.setCloudKeys(
        KeyPatterns(), local: KeyPatterns(.dictionary(ValueDictionary(example.local.map { $0 }))))
      #expect(
        try ["Theme", "Size", "Other"].map { try target($0) } == example.places)
    }
  }

  @Test("the settings of this program never go to the cloud")
  func settings() throws {
    try withPlaces { (_, places: LocalPlaces) throws -> Void in
      let patterns: ValueDictionary = [
        "prefsfs": ["*"], "prefsfs.cloud": ["*"], "prefsfs.effects": ["*"], "d": ["a"],
      ]
      let keys = CloudSettings.Name.keys.key
      let domain = CloudSettings.domain
      _ = try places.apply(
        [.at(.user, .set(keys, domain, .dictionary(patterns), .unknown))], by: author)
      #expect(try Array(CloudSettings(of: places).keys.patterns.keys) == ["d"])
      for domain: DomainName in ["prefsfs", "prefsfs.cloud", "prefsfs.effects", "prefsfs.new"] {
        let location = Location(.cloud, domain)
        let intents: [Intent] = [
          .at(.cloud, .set("K", domain, 1, .unknown)), .at(.cloud, .createDomain(domain)),
          .edit(location, .set("K", 1, .unknown)), .edit(location, .createDomain),
          .replace(location, ["K": 1]),
        ]
        for intent in intents {
          #expect {
            try places.apply([intent], by: author)
          } throws: { ($0 as? EngineError)?.reason == .forced }
        }
      }
      _ = try places.apply([.at(.cloud, .set("K", "prefsfsx", 1, .unknown))], by: author)
    }
  }

  @Test("a value over 1 MB is EFBIG, values over 16 MiB in all are EDQUOT; the server's are not")
  func limits() throws {
    try withPlaces { (_, places: LocalPlaces) throws -> Void in
      func value(_ count: Int) -> Value { .data([UInt8](repeating: 1, count: count)) }
      func reason(_ intent: Intent) -> EngineError.Reason? {
        do throws(EngineError) { _ = try places.apply([intent], by: author) } catch {
          return error.reason
        }
        return nil
      }
      #expect(reason(set("Large", value(1_000_001), in: .cloud)) == .system(.fileTooLarge))
      for index in 0..<16 {
        #expect(reason(set(Key("K\(index)"), value(990_000), in: .cloud)) == nil)
      }
      #expect(reason(set("One", value(990_000), in: .cloud)) == .system(.overQuota))
      #expect(reason(set("K1", value(10), in: .cloud)) == nil)
      #expect(reason(set("One", value(990_000), in: .cloud)) == nil)
      let server = Intent.edit(Location(.cloud, "d"), .set("S", value(1_100_000), .unknown))
      #expect(reason(server) == nil)
      #expect(reason(set("Large", value(1_000_001), in: .user)) == nil)
    }
  }

  @Test(
    "a pattern names the keys that it matches",
    arguments: [
      ("*", "", true), ("*", "abc", true), ("abc", "abc", true), ("abc", "abcd", false),
      ("a*c", "abcbc", true), ("a*c", "ab", false), ("*b*", "abc", true), ("*b*", "ac", false),
      ("", "", true), ("", "a", false), ("**", "x", true), ("a*", "A", false),
    ])
  func patterns(_ pattern: String, _ key: String, _ matches: Bool) {
    let patterns = KeyPatterns(.dictionary(["d": [.string(pattern)]]))
    #expect(patterns.contain(Key(key), of: "d") == matches)
    #expect(!patterns.contain(Key(key), of: "other"))
  }
}
