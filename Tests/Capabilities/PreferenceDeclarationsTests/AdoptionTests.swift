import PreferenceHistory
import PreferenceModel
import PropertyList
import Testing

@testable import PreferenceDeclarations

@Suite("Drift that goes into documents") struct AdoptionTests {
  private static let own = Variables(home: "/home/ada", user: "ada", host: "here", machine: "ID")

  /// Applies a document of the domain `d`, lets it drift, and returns what it says then.
  private func adopted(
    _ settings: ValueDictionary, isMerged: Bool = false, isAll: Bool = false,
    _ drift: (DeclaredStore) throws -> Void
  ) throws -> (settings: Value?, refused: Int) {
    let store = DeclaredStore()
    let document: ValueDictionary = ["d": .dictionary(settings)]
    let declaration = try Declaration(document, isMerged: isMerged, variables: Self.own)
    let declarations = Declarations(store.places)
    _ = try declarations.carryOut([.declare("a", declaration, over: [])], by: store.author)
    try drift(store)
    let (all, kept) = try declarations.adoptable(by: "a", isAll: isAll)
    let adoption = Adoption([document], isMerged: isMerged, variables: Self.own, of: all) {
      kept.keeps($0, of: $1, in: $2)
    }
    let new = try Declaration(adoption.documents[0], isMerged: isMerged, variables: Self.own)
    let done = try declarations.carryOut(
      [.declare("a", new, over: [], isAdopting: true)], by: store.author)
    #expect(done.plan.steps.filter(\.isChange).isEmpty, "\(done.plan.steps)")
    #expect(try store.drift().count == adoption.refusals.count)
    return (adoption.documents[0]["d"], adoption.refusals.count)
  }

  @Test("values, removals, parts, variables")
  func values() throws {
    let settings: ValueDictionary = [
      "A": 1, "B": 2, "D": ["x": "${home}/x", "y": 1], "V": ["$value": ["$add": 1]], "H": "${user}",
    ]
    let result = try adopted(settings) { store in
      try store.set("A", 5)
      try store.set("B", nil)
      try store.set("D", ["x": "/home/ada/x", "y": "${new}", "z": 3])
      try store.set("V", ["$add": 2])
    }
    #expect(
      result.settings == [
        "A": 5, "B": Declaration.absent, "D": ["x": "${home}/x", "y": "$${new}", "z": 3],
        "V": ["$value": ["$add": 2]], "H": "${user}",
      ])
  }

  @Test("members and elements")
  func parts() throws {
    let merged = try adopted(["D": ["a": 1, "b": ["c": 2]]], isMerged: true) { store in
      try store.set("D", ["a": 3, "own": 1, "b": [:]])
    }
    #expect(merged.settings == ["D": ["a": 3, "b": ["c": Declaration.absent]]])
    let elements = try adopted(["L": ["$add": ["x", "y"], "$remove": ["z"]]]) { store in
      try store.set("L", ["x", "z", "own"])
    }
    #expect(elements.settings == ["L": ["$add": ["x"], "$remove": []]])
  }

  @Test("new keys, with $exact and with --all; secrets are not written")
  func added() throws {
    let exact = try adopted(["$exact": true, "A": 1]) { try $0.set("N", 2) }
    #expect(exact.settings == ["$exact": true, "A": 1, "N": 2])
    let few = try adopted(["A": 1]) { try $0.set("N", 2) }
    #expect(few.settings == ["A": 1])
    let all = try adopted(["A": 1], isAll: true) { try $0.set("N", 2) }
    #expect(all.settings == ["A": 1, "N": 2])
    let secret = try adopted(["Token": "x"]) { try $0.set("Token", "mine") }
    #expect(secret.settings == ["Token": "x"] && secret.refused == 1)
  }

  /// Has documents say what somebody has made of the values.
  private func adopt(_ names: [String], _ store: DeclaredStore) throws {
    let declarations = Declarations(store.places)
    var requests: [Declarations.Request] = []
    for name in names {
      let declaration = try #require(try declarations.ledger().declarations[name])
      let drift = try declarations.adoptable(by: name, isAll: false).drift
      let adoption = Adoption(
        [declaration.document], isMerged: false, variables: Self.own, of: drift
      ) { _, _, _ in true }
      let new = try Declaration(adoption.documents[0])
      requests.append(.declare(name, new, over: [], isAdopting: true))
    }
    _ = try declarations.carryOut(requests, by: store.author)
  }

  @Test("what another declaration takes precedence in is left to it, and no value changes")
  func precedence() throws {
    let store = DeclaredStore()
    try store.declare("a", ["K": 1, "L": 1])
    try store.declare("b", ["K": 2, "M": 2], over: ["a"])
    for key: Key in ["K", "L", "M"] { try store.set(key, 5) }
    try adopt(["a"], store)
    #expect(
      try Declarations(store.places).ledger().declarations["a"]?.document["d"]
        == ["K": 1, "L": 5])
    #expect(try store.find("K") == 5 && store.find("M") == 5)
    try adopt(["b"], store)
    #expect(try store.drift().isEmpty && store.find("K") == 5)
    try store.undeclare("b")
    #expect(try store.find("K") == 1 && store.find("L") == 5)
  }

  @Test("two declarations that agree adopt together, and one alone is refused")
  func together() throws {
    let store = DeclaredStore()
    try store.declare("a", ["K": 1])
    try store.declare("b", ["K": 1])
    try store.set("K", 5)
    #expect(throws: EngineError.self) { try adopt(["a"], store) }
    try adopt(["a", "b"], store)
    #expect(try store.drift().isEmpty && store.find("K") == 5)
  }

  @Test("a lease that adopts is still one")
  func lease() throws {
    let store = DeclaredStore()
    let start = ClockReading(boot: "one", uptime: 0, time: 0)
    let declarations = Declarations(store.places)
    let requests: [Declarations.Request] = [
      .declare("a", try Declaration(["d": ["K": 1, "L": 1]]), over: []),
      .limit("a", nanoseconds: 10, isLease: true, from: start),
    ]
    _ = try declarations.carryOut(requests, by: store.author)
    try store.set("K", 5)
    try adopt(["a"], store)
    let end = ClockReading(boot: "one", uptime: 10, time: 10)
    _ = try declarations.carryOut([.expire("a", at: end)], by: store.author)
    #expect(try store.find("K") == 5 && store.find("L") == nil)
  }
}
