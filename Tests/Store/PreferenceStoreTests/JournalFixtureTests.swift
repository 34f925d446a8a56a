import Foundation
import PreferenceModel
import PropertyList
import Support
import SystemCalls
import Testing

@testable import PreferenceStore

/// Journals that each version of the program wrote. They must be readable for ever: if a test fails
/// here, users would lose settings. Never replace a fixture.
@Suite("Journal: kept fixtures") struct JournalFixtureTests {
  private func open(
    _ fixture: String, in sandbox: Sandbox, _ body: (TestStore, String) throws -> Void
  ) throws {
    let source = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .appendingPathComponent("Fixtures/\(fixture)")
    let directory = sandbox.state + "/s"
    try Files.makeDirectories(directory, mode: 0o700)
    try FileManager.default.copyItem(atPath: source.path, toPath: directory + "/journal.4")
    sandbox.makeList(sandbox.config + "/checked.plist", "dict(K='list')")
    sandbox.makeList(sandbox.config + "/grown.plist", "dict(K='x' * 5000)")
    try body(try TestStore(sandbox), directory)
  }

  private static let user = Location(.user, "d")

  @Test("every kind of record, edit and value is read", arguments: ["journal-v1", "journal-v2"])
  func whole(_ fixture: String) throws {
    try withSandbox { sandbox in
      try open(fixture, in: sandbox) { (test: TestStore, _: String) throws -> Void in
        let values: ValueDictionary = [
          "string": "text", "integer": -5, "large": .integer(WideInteger(UInt64.max)), "real": 1.5,
          "yes": true, "date": .date(AbsoluteTime(seconds: 0.25)), "data": .data([0, 255]),
          "array": ["a", 1], "dictionary": ["k": ["n": false]], "ключ": "значение",
        ]
        for (key, value) in values { #expect(try test.get(key, Self.user) == value, "\(key)") }
        #expect(try test.store.lists.find("integer", at: Self.user)?.text == Array(" -5\n".utf8))
        #expect(
          try test.store.lists.find("integer", at: Self.user)?.modified.nanoseconds
            == 1_700_000_000_000_000_000)
        #expect(try test.get("removed", Self.user) == nil)
        #expect(try test.get("K", Location(.host, "moved")) == 1)
        #expect(try test.get("K", Location(.user, "checked")) == "list")
        #expect(
          try test.get("K", Location(.user, "grown"))
            == .string(String(repeating: "x", count: 5000) + "and more"))
        #expect(try test.store.lists.exists(Location(.user, "empty")))
        #expect(try !test.store.lists.exists(Location(.user, "gone")))
        #expect(test.lines.all.isEmpty, "\(test.lines.all)")
      }
    }
  }

  @Test("a journal of version 2 has modes and times")
  func descriptions() throws {
    try withSandbox { sandbox in
      try open("journal-v2", in: sandbox) { (test: TestStore, _: String) throws -> Void in
        let kept = try #require(try test.store.lists.find("string", at: Self.user)?.metadata)
        let time = Timestamp(nanoseconds: 1_600_000_000_000_000_001)
        #expect(kept.text == nil && kept.modified == time && kept.mode == 0o640)
        #expect(try test.store.lists.find("real", at: Self.user)?.metadata.mode == 0o755)
      }
    }
  }

  @Test("the whole records of a torn journal are read")
  func torn() throws {
    try withSandbox { sandbox in
      try open("journal-v1-torn", in: sandbox) {
        (test: TestStore, directory: String) throws -> Void in
        #expect(try test.get("string", Self.user) == "text")
        #expect(test.lines.all.contains { $0.contains("torn or damaged") })
        #expect(!FileManager.default.fileExists(atPath: directory + "/damaged.4"))
      }
    }
  }

  @Test("a journal that is damaged in the middle is put aside, the rest of it is read")
  func damaged() throws {
    try withSandbox { sandbox in
      try open("journal-v1-damaged", in: sandbox) {
        (test: TestStore, directory: String) throws -> Void in
        #expect(try test.get("string", Self.user) == "text")
        #expect(try test.get("K", Location(.host, "moved")) != nil)
        #expect(FileManager.default.fileExists(atPath: directory + "/damaged.4"))
      }
    }
  }

  @Test("a client's request in a journal of version 3 is known until it is answered")
  func requests() throws {
    try withSandbox { sandbox in
      try open("journal-v3", in: sandbox) { (test: TestStore, directory: String) throws -> Void in
        #expect(try test.get("K", Self.user) == 6)
        #expect(try test.get("L", Self.user) == 1)
        let last = Origin(client: 7, serial: 2)
        #expect(test.store.outcome(of: last)?.items.count == 1)
        #expect(test.store.outcome(of: Origin(client: 7, serial: 3)) == nil)
        // The list has the change, but the client may still ask the next owner for the answer.
        try test.store.checkpoint(Self.user)
        #expect(FileManager.default.fileExists(atPath: directory + "/journal.4"))
        for serial in [1, 2] as [UInt64] {
          test.store.noteAnswered(Origin(client: 7, serial: serial))
        }
        try test.set("L", 2)
        try test.store.checkpoint(Self.user)
        #expect(!FileManager.default.fileExists(atPath: directory + "/journal.4"))
      }
    }
  }

  @Test("a journal of version 4 has splices within a value, and does not say who made a change")
  func splices() throws {
    try withSandbox { sandbox in
      try open("journal-v4", in: sandbox) { (test: TestStore, _: String) throws -> Void in
        #expect(try test.get("S", Self.user) == "abxyz")
        #expect(try test.get("K", Self.user) == 6)
        #expect(test.lines.all.isEmpty, "\(test.lines.all)")
      }
    }
  }

  @Test("a store with a journal of a later version does not open, and the file stays")
  func future() throws {
    try withSandbox { sandbox in
      do {
        try open("journal-v255-header", in: sandbox) { _, _ in Issue.record("the store opened") }
      } catch let error as EngineError {
        #expect(error.reason == .system(.notSupported))
      }
      #expect(FileManager.default.fileExists(atPath: sandbox.state + "/s/journal.4"))
    }
  }
}
