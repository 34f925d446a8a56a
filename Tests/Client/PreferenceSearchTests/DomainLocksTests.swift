import PreferenceModel
import PropertyList
import Testing

@testable import PreferenceSearch

@Suite("Domains that the administrator has locked") struct DomainLocksTests {
  private let author = Author.unique()
  private let setting = Location(.managed, .settings)

  static let patterns: [(pattern: String, domain: DomainName, isLocked: Bool)] = [
    ("com.example.editor", "com.example.editor", true),
    ("com.example.editor", "com.example", false),
    ("com.example.*", "com.example.editor", true), ("com.example.*", "com.example", false),
    ("NSGlobalDomain", .global, true), ("*", .global, true), ("*", .settings, true),
    ("*", .declared, false), ("prefsfs.declared", .declared, false), ("", "d", false),
  ]

  @Test("a pattern names the domains that it matches", arguments: patterns)
  func pattern(_ example: (pattern: String, domain: DomainName, isLocked: Bool)) {
    let locks = DomainLocks(.array([7, .string(example.pattern)]))
    #expect(locks.contain(example.domain) == example.isLocked)
  }

  /// An engine over a domain `d` with values of the user and of the machine, and arguments.
  private func engine(registers: Bool = true) throws -> SearchEngine {
    let engine = SearchEngine(
      places: MemoryPlaces(), arguments: ["Arg": "7"], usesLanguages: false, usesSchemas: false)
    _ = try engine.apply(
      [
        .set("Mine", "d", 1, .unknown), .set("Both", "d", 1, .unknown),
        .set("G", .global, 1, .unknown),
        .edit(Location(.cloud, "d"), .set("Cloud", 1, .unknown)),
        .edit(Location(.anyUser, "d"), .set("Both", 2, .unknown)),
        .edit(Location(.anyUser, .global), .set("Machine", 3, .unknown)),
        .edit(Location(.managed, "d"), .set("Forced", 4, .unknown)),
        .set("S", "suite", 5, .unknown),
      ], by: author)
    if registers { engine.register(["R": 6], for: "d") }
    engine.changeSuites(of: "d") { $0 = ["suite"] }
    return engine
  }

  @Test("nothing of the user's counts in a locked domain, until it is locked no more")
  func reads() throws {
    let engine = try engine()
    let reader = engine.reader(of: "d")
    let keys: [Key] = ["Mine", "Both", "G", "Cloud", "Machine", "Forced", "S", "R", "Arg"]
    func values() throws -> [Value?] {
      let values = try keys.map { key in try reader.value(key) }
      #expect(try keys.map { try engine.resolve($0, in: "d")?.value } == values)
      return values
    }
    let free: [Value?] = [1, 1, 1, 1, 3, 4, 5, 6, "7"]
    #expect(try values() == free)
    #expect(try engine.resolve("R", in: "d")?.isReadOnly == false)
    _ = try engine.apply([.edit(setting, .set("Locked", ["d"], .unknown))], by: author)
    #expect(try values() == [nil, 2, nil, nil, 3, 4, nil, 6, nil])
    #expect(try engine.keys(of: "d") == ["Both", "Forced", "R"])
    #expect(try engine.inheritedKeys(of: "d") == ["Machine"])
    for key: Key in ["Both", "Machine", "Forced", "R"] {
      #expect(try engine.resolve(key, in: "d")?.isReadOnly == true, "\(key)")
    }
    #expect(try engine.resolve("G", in: "other")?.value == 1)
    _ = try engine.apply([.edit(setting, .remove("Locked"))], by: author)
    #expect(try values() == free)
  }

  @Test("of a locked global domain, no other domain inherits what is the user's")
  func global() throws {
    let engine = try engine()
    _ = try engine.apply(
      [.edit(setting, .set("Locked", ["NSGlobalDomain"], .unknown))], by: author)
    #expect(try engine.resolve("G", in: "d") == nil)
    #expect(try engine.resolve("Machine", in: "d")?.value == 3)
    #expect(try engine.resolve("Mine", in: "d")?.value == 1)
  }

  static let intents: [(intent: Intent, isRefused: Bool)] = [
    (.set("X", "d", 1, .unknown), true), (.setOwn("X", "d", 1, .unknown), true),
    (.remove("Mine", "d"), true), (.removeOwn("Mine", "d"), true),
    (.describe("Mine", "d", Description(mode: 0o400)), true), (.createDomain("d"), true),
    (.removeDomain("d"), true), (.renameDomain("d", to: "e"), true),
    (.renameDomain("suite", to: "d"), true), (.at(.host, .set("X", "d", 1, .unknown)), true),
    (.edit(Location(.user, "d"), .set("X", 1, .unknown)), true),
    (.at(.anyUser, .edit(Location(.cloud, "d"), .remove("Cloud"))), true),
    (.replace(Location(.cloud, "d"), [:]), true),
    (.at(.anyUser, .set("X", "d", 1, .unknown)), false),
    (.edit(Location(.managed, "d"), .set("X", 1, .unknown)), false),
    (.expect("Mine", Location(.user, "d"), 1), false), (.set("X", "other", 1, .unknown), false),
  ]

  @Test("a change of what is the user's is refused in a locked domain", arguments: intents)
  func changes(_ example: (intent: Intent, isRefused: Bool)) throws {
    let engine = try engine(registers: false)
    _ = try engine.apply([.edit(setting, .set("Locked", ["d"], .unknown))], by: author)
    let reason: EngineError.Reason?
    do throws(EngineError) {
      _ = try engine.apply([example.intent], by: author)
      reason = nil
    } catch {
      reason = error.reason
    }
    #expect(reason == (example.isRefused ? .forced : nil))
  }

  @Test("a user can lock nothing, and for one user an empty array unlocks")
  func whoLocks() throws {
    let engine = try engine()
    _ = try engine.apply([.set("Locked", .settings, ["*"], .unknown)], by: author)
    #expect(try !engine.isLocked("d"))
    _ = try engine.apply([.edit(setting, .set("Locked", ["*"], .unknown))], by: author)
    #expect(try engine.isLocked("d"))
    let own = Location(.ownManaged, .settings)
    _ = try engine.apply([.edit(own, .set("Locked", [], .unknown))], by: author)
    #expect(try !engine.isLocked("d"))
  }
}
