import Foundation
import PreferenceEngine
import PreferenceModel
import PreferenceSearch
import PreferenceStore
import PropertyList
import StoreAccess
import Support
import Synchronization
import SystemCalls
import Testing

/// Runs the body with the places of a store in a sandbox, and closes them afterwards.
func withPlaces(
  writeback: Double = 3600, prepare: (Sandbox) -> Void = { _ in },
  _ body: (Sandbox, LocalPlaces) throws -> Void
) throws {
  try withSandbox { sandbox in
    prepare(sandbox)
    let layout = StoreLayout(
      userDirectory: sandbox.config, systemDirectory: sandbox.system,
      stateDirectory: sandbox.state + "/s", hostIdentifier: "HOST", userName: "ada",
      settingsDirectories: [sandbox.system + "/gsettings"])
    let places = try LocalPlaces(store: try Store(layout) { _ in }, writeback: writeback) { _ in }
    defer { places.close() }
    try body(sandbox, places)
  }
}

/// The same with an engine over the places.
func withEngine(
  arguments: ValueDictionary = [:], writeback: Double = 3600, prepare: (Sandbox) -> Void = { _ in },
  _ body: (Sandbox, SearchEngine) throws -> Void
) throws {
  try withPlaces(writeback: writeback, prepare: prepare) { sandbox, places in
    try body(sandbox, SearchEngine(places: places, arguments: arguments))
  }
}

private let author = Author(number: 1)

@Suite("Engine") struct LocalEngineTests {
  @Test("a change that came too late is refused when observers have heard of the first one")
  func refusedAfterNotice() throws {
    try withPlaces { (_, places: LocalPlaces) throws -> Void in
      let (isBegun, hasHeard) = (Monitor(false), Monitor(false))
      places.observe(except: author) { _ in
        isBegun.change { $0 = true }
        Instant.sleep(milliseconds: 100)
        hasHeard.withLock { $0 = true }
      }
      let first = try WorkerThread(name: "first") {
        _ = try? places.apply([.set("K", "d", 1, .unknown)], by: Author(number: 2))
      }
      defer { first.join() }
      #expect(isBegun.wait(until: .now.advanced(milliseconds: 5000)) { $0 ? true : nil } == true)
      #expect(throws: EngineError.self) {
        try places.apply(
          [.expect("K", Location(.user, "d"), nil), .set("K", "d", 2, .unknown)], by: author)
      }
      #expect(hasHeard.withLock { $0 })
    }
  }

  @Test("nothing may be kept between a change and its notice")
  func generation() throws {
    try withEngine { (_, engine: SearchEngine) throws -> Void in
      let during = Mutex<[UInt64?]>([])
      engine.observe(except: nil) { [weak engine] _ in
        during.withLock { $0.append(engine?.generation) }
      }
      let before = try #require(engine.generation)
      _ = try engine.apply([.set("K", "d", 1, .unknown)], by: author)
      #expect(try #require(engine.generation) == before + 1)
      #expect(during.withLock { $0 } == [nil])
    }
  }

  /// The sources in search order, first hit first, and the list file of each.
  static let places: [(source: String, file: String)] = [
    ("managed", "system/managed/d"), ("managed", "system/managed/.GlobalPreferences"),
    ("host", "config/ByHost/d.HOST"),
    ("user", "config/d"), ("global-host", "config/ByHost/.GlobalPreferences.HOST"),
    ("global", "config/.GlobalPreferences"),
    ("any-user", "system/d"), ("any-user-global", "system/.GlobalPreferences"),
  ]

  @Test("a place of the search list wins over all behind it", arguments: places.indices)
  func searchList(_ first: Int) throws {
    try withEngine(prepare: { sandbox in
      for (index, place) in Self.places.enumerated().dropFirst(first) {
        sandbox.makeList("\(sandbox.root)/\(place.file).plist", "dict(K=\(index))")
      }
      if first > 0 {
        sandbox.makeList("\(sandbox.config)/d.plist", first <= 3 ? "dict(K=3)" : "dict(Else=1)")
      }
    }) { (_, engine: SearchEngine) throws -> Void in
      engine.register(["K": 99, "R": 1], for: "d")
      let found = try #require(try engine.resolve("K", in: "d"))
      #expect(found.value == .integer(WideInteger(Int64(first))))
      #expect(found.location.source(seenFrom: "d") == Self.places[first].source)
      #expect(found.isForced == (first < 2))
      #expect(try engine.resolve("R", in: "d")?.location.source(seenFrom: "d") == "registered")
      #expect(try engine.resolve("R", in: "other") == nil)
    }
  }

  @Test("arguments come after managed lists and before all other places")
  func arguments() throws {
    let parsed = ArgumentDomain.parse([
      "-Managed", "1", "-K", "(a, 'b')", "-Text", " 42 ", "-Drop", "-Last", "<broken", "x",
    ])
    #expect(parsed == ["Managed": "1", "K": ["a", "b"], "Text": "42", "Last": "<broken"])
    try withEngine(
      arguments: parsed,
      prepare: {
        $0.makeList($0.system + "/managed/d.plist", "dict(Managed='forced')")
        $0.makeList($0.config + "/d.plist", "dict(K=1, Managed=2)")
      }
    ) { (_, engine: SearchEngine) throws -> Void in
      #expect(try engine.resolve("Managed", in: "d")?.value == "forced")
      #expect(try engine.resolve("K", in: "d")?.value == ["a", "b"])
      #expect(try engine.resolve("K", in: "d")?.isReadOnly == true)
      for (key, reason) in [("Managed", EngineError.Reason.forced), ("K", .argument)] {
        for intent in [Intent.set(Key(key), "d", 1, .unknown), .remove(Key(key), "d")] {
          #expect { try engine.apply([intent], by: author) } throws: {
            ($0 as? EngineError)?.reason == reason
          }
        }
      }
    }
  }

  @Test("writes go to the user's list, or to the host's list if that has the key")
  func writePlace() throws {
    try withEngine(prepare: {
      $0.makeList($0.config + "/ByHost/d.HOST.plist", "dict(Host=1)")
      $0.makeList($0.system + "/d.plist", "dict(Machine=1)")
    }) { (_, engine: SearchEngine) throws -> Void in
      for (key, place) in [("Host", Place.host), ("Machine", .user), ("New", .user)] {
        let changes = try engine.apply([.set(Key(key), "d", 2, .unknown)], by: author)
        #expect(changes.items.map(\.location) == [Location(place, "d")])
      }
      _ = try engine.apply([.remove("Host", "d")], by: author)
      #expect(try engine.resolve("Host", in: "d") == nil)
      _ = try engine.apply([.remove("Machine", "d")], by: author)
      #expect(try engine.resolve("Machine", in: "d")?.value == 1)
      #expect { try engine.apply([.remove("Machine", "d")], by: author) } throws: {
        ($0 as? EngineError)?.reason == .heldElsewhere
      }
      #expect { try engine.apply([.remove("None", "d")], by: author) } throws: {
        ($0 as? EngineError)?.reason == .noSuchKey
      }
    }
  }

  @Test("a transaction takes effect as a whole, or not at all")
  func transaction() throws {
    try withEngine(prepare: { $0.makeList($0.system + "/managed/d.plist", "dict(F=1)") }) {
      (_, engine: SearchEngine) throws -> Void in
      #expect(throws: EngineError.self) {
        try engine.apply([.set("A", "d", 1, .unknown), .set("F", "d", 1, .unknown)], by: author)
      }
      #expect(try engine.resolve("A", in: "d") == nil)
    }
  }

  @Test("observers are told what changed and by which author, and nothing if nothing did")
  func observers() throws {
    try withEngine { (_, engine: SearchEngine) throws -> Void in
      let box = Box()
      engine.observe(except: nil) { box.add($0) }
      _ = try engine.apply([.set("A", "d", 1, .unknown)], by: author)
      _ = try engine.apply([.set("A", "d", 1, .unknown)], by: author)
      #expect(box.all.count == 1 && box.all[0].author == author)
      #expect(
        box.all[0].changeset.items == [
          Changeset.Item(Location(.user, "d"), .set("A", 1, .canonical)),
          // The first key makes its domain too.
          Changeset.Item(Location(.user, "d"), .createDomain),
        ])
    }
  }

  final class Box: Sendable {
    private let notices = Mutex<[Notice]>([])
    func add(_ notice: Notice) { notices.withLock { $0.append(notice) } }
    var all: [Notice] { notices.withLock { $0 } }
  }

  @Test("a damaged list is an error of its own domain alone")
  func damaged() throws {
    try withEngine(prepare: {
      $0.makeList($0.config + "/good.plist", "dict(K=1)")
      $0.shell(
        "echo broken '{' > \($0.config)/bad.plist; cp \($0.config)/bad.plist \($0.config)/.GlobalPreferences.plist"
      )
    }) { (_, engine: SearchEngine) throws -> Void in
      #expect(throws: EngineError.self) { try engine.resolve("K", in: "bad") }
      #expect(throws: EngineError.self) {
        try engine.apply([.set("K", "bad", 1, .unknown)], by: author)
      }
      #expect(throws: EngineError.self) { try engine.resolve("K", in: .global) }
      #expect(try engine.resolve("K", in: "good")?.value == 1)
      #expect(try engine.resolve("None", in: "good") == nil)
      _ = try engine.apply([.set("New", "good", 1, .unknown)], by: author)
      #expect(try engine.domains() == ["good", "bad", .global])
    }
  }

  @Test("a thousand sets make two rewrites of the list at most")
  func coalescing() throws {
    try withEngine(writeback: 0.3, prepare: { $0.makeList($0.config + "/d.plist", "dict(K=0)") }) {
      (sandbox: Sandbox, engine: SearchEngine) throws -> Void in
      let inode = { sandbox.shell("stat -c %i \(sandbox.config)/d.plist").output }
      var seen: Set<String> = [inode()]
      for round in 1...1000 {
        _ = try engine.apply(
          [.set("K", "d", .integer(WideInteger(Int64(round))), .unknown)], by: author)
        if round % 100 == 0 { usleep(10000) }
      }
      for _ in 0..<12 {
        usleep(50000)
        seen.insert(inode())
      }
      #expect(seen.count <= 3)
      #expect(sandbox.evaluate(sandbox.config + "/d.plist", "d['K']") == "1000")
    }
  }
}
