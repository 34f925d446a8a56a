import Foundation
import PreferenceHistory
import PreferenceModel
import PropertyList
import StoreAccess
import Support
import Testing

@testable import PreferenceStore

/// What a machine takes over from others that have used the same home, and what it removes of them.
@Suite("Store: other machines of a home") struct FormerMachinesTests {
  /// The store of a machine with a state directory of that name.
  private func open(_ sandbox: Sandbox, _ name: String, host: String = "HOST") throws -> Store {
    let layout = StoreLayout(
      userDirectory: sandbox.config, systemDirectory: sandbox.system,
      stateDirectory: "\(sandbox.state)/\(name)", hostIdentifier: host, userName: "ada")
    return try Store(layout, keepsHistory: true) { _ in }
  }

  private func set(_ value: Value, _ store: Store, _ place: Place = .user) throws {
    let location = Location(place, "d")
    _ = try store.commit(
      [Changeset.Item(location, .set("K", value, .canonical))], by: Author(number: 1))
    try store.checkpoint(location)
  }

  private func lines(_ store: Store) throws -> [String] {
    store.history.record()
    return try store.layout.history.entries().flatMap { entry -> [String] in
      guard case .change(let record) = entry else { return ["gap"] }
      return record.items.map { "\(record.number) \($0.before.text) -> \($0.after.text)" }
    }
  }

  /// Ends a machine's use of the home, some days ago.
  private func end(_ store: Store, days: Int, _ sandbox: Sandbox) throws {
    store.history.record()
    store.unlock()
    let directory = store.layout.stateDirectory
    sandbox.shell("find \(directory) -exec touch -d '\(days) days ago' {} +")
  }

  private func directories(_ sandbox: Sandbox) -> [String] {
    sandbox.shell("ls \(sandbox.state)").output.split(separator: "\n").map(String.init)
  }

  @Test("a new machine goes on with the history of the one that changed something last")
  func adoption() throws {
    try withSandbox { sandbox in
      let first = try open(sandbox, "s")
      try set(1, first)
      try set(2, first)
      try set(7, first, .host)
      #expect(try lines(first) == ["1 (none) -> 1", "2 1 -> 2", "3 (none) -> 7"])
      first.unlock()
      let files = { (name: String) in
        sandbox.shell("find \(sandbox.state)/\(name) -type f | sort | xargs sha1sum").output
      }
      let before = files("s")
      // What is another machine's own is not compared with what this one has.
      let second = try open(sandbox, "s.2", host: "OTHER")
      #expect(try second.lists.find("K", at: Location(.host, "d")) == nil)
      try set(3, second)
      #expect(try lines(second).suffix(2) == ["3 (none) -> 7", "4 2 -> 3"])
      #expect(files("s") == before, "nothing is changed there")
      second.unlock()
      let third = try open(sandbox, "s.3", host: "THIRD")
      #expect(try lines(third) == lines(second))
      third.unlock()
      // One that has a history keeps it.
      let again = try open(sandbox, "s")
      #expect(try lines(again).prefix(3) == ["1 (none) -> 1", "2 1 -> 2", "3 (none) -> 7"])
    }
  }

  @Test("what another program changed in between is compared with what the other machine saw")
  func seen() throws {
    try withSandbox { sandbox in
      let first = try open(sandbox, "s")
      try set(1, first)
      _ = try lines(first)
      first.unlock()
      sandbox.makeList(sandbox.config + "/d.plist", "dict(K=5)")
      let second = try open(sandbox, "s.2")
      #expect(try second.lists.find("K", at: Location(.user, "d"))?.value == 5)
      #expect(try lines(second) == ["1 (none) -> 1", "2 1 -> 5"])
    }
  }

  @Test("a machine does not note histories of directories that are gone")
  func gone() throws {
    try withSandbox { sandbox in
      for name in ["s", "s.2", "s.3"] {
        let store = try open(sandbox, name)
        try set(.string(name), store)
        _ = try lines(store)
        store.unlock()
        if name == "s.2" { sandbox.shell("rm -r \(sandbox.state)/s") }
      }
      let noted = sandbox.shell("cut -d ' ' -f 1 \(sandbox.state)/s.2/adopted").output
      #expect(noted == "s\n")
      #expect(sandbox.shell("cut -d ' ' -f 1 \(sandbox.state)/s.3/adopted").output == "s.2\n")
    }
  }

  /// What is done in an old directory before another machine adopts its history, and afterwards, and
  /// whether it goes.
  struct Case: Sendable, CustomTestStringConvertible {
    let testDescription: String
    var days = 61
    var before = ""
    var after = ""
    let goes: Bool
  }

  static let cases = [
    Case(testDescription: "adopted", goes: true),
    Case(testDescription: "used 59 days ago", days: 59, goes: false),
    Case(testDescription: "without a history", before: "rm -r history", goes: true),
    Case(testDescription: "with a later change", after: "echo x >> history/1", goes: false),
    Case(testDescription: "with keys of the cloud", before: "mkdir Cloud", goes: false),
    Case(testDescription: "with a damaged journal", before: "echo x > damaged.1", goes: false),
    Case(testDescription: "with a program's file", before: "echo x > file", goes: false),
  ]

  @Test("an old directory goes if it has nothing of its own", arguments: cases)
  func old(_ one: Case) throws {
    try withSandbox { sandbox in
      let first = try open(sandbox, "s")
      try set(1, first)
      _ = try lines(first)
      sandbox.shell("cd \(sandbox.state)/s; \(one.before)")
      first.unlock()
      let second = try open(sandbox, "s.2")
      sandbox.shell("cd \(sandbox.state)/s; \(one.after)")
      try end(first, days: one.days, sandbox)
      second.removeFormerMachines()
      #expect(directories(sandbox) == (one.goes ? ["s.2"] : ["s", "s.2"]))
    }
  }

  @Test("an old directory stays while the lists lack something of its journal, or it is owned")
  func journal() throws {
    try withSandbox { sandbox in
      let first = try open(sandbox, "s")
      try set(1, first)
      let items = [Changeset.Item(Location(.user, "d"), .set("K", 2, .canonical))]
      _ = try first.commit(items, by: Author(number: 1))
      try end(first, days: 90, sandbox)
      let second = try open(sandbox, "s.2")
      second.removeFormerMachines()
      #expect(directories(sandbox) == ["s", "s.2"])
      // The first machine is there again, and saves.
      let again = try open(sandbox, "s")
      for (location, _) in again.unsaved() { try again.checkpoint(location) }
      again.history.record()
      sandbox.shell("find \(sandbox.state)/s -exec touch -d '90 days ago' {} +")
      let third = try open(sandbox, "s.3")
      third.removeFormerMachines()
      #expect(directories(sandbox) == ["s", "s.2", "s.3"], "it is owned")
      again.unlock()
      third.removeFormerMachines()
      #expect(directories(sandbox) == ["s.2", "s.3"])
    }
  }

  @Test("of machines that came one after the other, the last one has the histories of all")
  func chain() throws {
    try withSandbox { sandbox in
      for number in 1...5 {
        let store = try open(sandbox, number == 1 ? "s" : "s.\(number)")
        try set(.integer(WideInteger(Int64(number))), store)
        try end(store, days: 100 - number, sandbox)
      }
      sandbox.shell("mkdir \(sandbox.state)/s.9.gone")
      let last = try open(sandbox, "s.6")
      last.removeFormerMachines()
      #expect(directories(sandbox) == ["s.6"])
      #expect(
        try lines(last) == ["1 (none) -> 1", "2 1 -> 2", "3 2 -> 3", "4 3 -> 4", "5 4 -> 5"])
    }
  }
}
