import PreferenceModel
import PropertyList
import Testing

@testable import PreferenceDeclarations

@Suite("Domains that are declared exactly") struct ExactTests {
  @Test("other keys go, and come back; later ones are drift, which the next apply takes away")
  func exact() throws {
    let store = DeclaredStore()
    try store.set("A", 1)
    try store.set("B", 2)
    try store.set("B", 3, in: .host)
    let document: ValueDictionary = ["$exact": true, "A": 5]
    let plan = try store.declare("a", document)
    #expect(try store.find("A") == 5 && store.find("B") == nil && store.find("B", in: .host) == nil)
    #expect(plan.steps.map(\.path.key) == ["A", "B", "B"])
    #expect(try store.drift().isEmpty && store.declare("a", document).intents.isEmpty)
    try store.set("C", 7)
    try store.set("B", 4)
    #expect(
      try store.drift() == ["d B: declared (none) (a), is 4", "d C: declared (none) (a), is 7"])
    // Another declaration leaves that drift alone.
    try store.declare("b", ["D": 1])
    #expect(try store.find("C") == 7)
    try store.declare("a", document)
    #expect(try store.find("C") == nil && store.find("B") == nil && store.find("D") == 1)
    try store.undeclare("a")
    #expect(try store.find("A") == 1 && store.find("B") == 4 && store.find("C") == 7)
    #expect(try store.find("B", in: .host) == 3)
    try store.undeclare("b")
    #expect(try store.places.keys(at: Location(.user, .declared)).isEmpty)
  }

  @Test("what a document names later is its own, and what it no longer declares exactly comes back")
  func changed() throws {
    let store = DeclaredStore()
    try store.set("A", 1)
    try store.declare("a", ["$exact": true])
    #expect(try store.find("A") == nil)
    try store.declare("b", ["A": 2])
    #expect(try store.find("A") == 2 && store.drift().isEmpty)
    try store.undeclare("b")
    #expect(try store.find("A") == nil && store.drift().isEmpty)
    try store.declare("a", ["$exact": false])
    #expect(try store.find("A") == 1)
  }

  @Test("state, secrets, keys of the cloud and forced ones are left alone")
  func leftAlone() throws {
    let store = DeclaredStore()
    for key: Key in ["NSWindow Frame Main", "Token", "Forced"] { try store.set(key, "text") }
    try store.set("Cloudy", 1, in: .cloud)
    try store.set("Forced", 1, in: .managed)
    #expect(try store.declare("a", ["$exact": true]).steps.isEmpty)
    #expect(try store.drift().isEmpty)
    // In a place of its own each key counts.
    try store.set("X", 1, in: .host)
    try store.declare("h", ["$exact": true], in: .host)
    #expect(try store.find("X", in: .host) == nil)
    try store.undeclare("h", in: .host)
    #expect(try store.find("X", in: .host) == 1)
  }

  @Test("a key of which the document says nothing more is named, and left alone")
  func named() throws {
    let store = DeclaredStore()
    try store.set("L", ["x"])
    try store.declare("a", ["$exact": true, "L": ["$add": []]])
    #expect(try store.find("L") == ["x"] && store.drift().isEmpty)
  }

  @Test("it is refused where programs need keys that no document names")
  func refused() throws {
    for domain: Key in ["NSGlobalDomain", "prefsfs", "prefsfs.suites"] {
      #expect(throws: EngineError.self) { try Declaration([domain: ["$exact": true]]) }
    }
    let key = try Declaration(["d": ["$exact": ["$value": true]]])
    #expect(key.exact.isEmpty && key.paths == [DeclaredPath("d", "$exact"): .value(true)])
  }
}
