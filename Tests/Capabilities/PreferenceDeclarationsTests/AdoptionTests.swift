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
    let adoption = Adoption([document], isMerged: isMerged, variables: Self.own, of: all, kept)
    let new = try Declaration(adoption.documents[0], isMerged: isMerged, variables: Self.own)
    let plan = try declarations.plan([.declare("a", new, over: [])])
    if adoption.refusals.isEmpty {
      #expect(plan.steps.filter(\.isChange).isEmpty, "\(plan.steps)")
      _ = try declarations.carryOut([.declare("a", new, over: [])], by: store.author)
      #expect(try store.drift().isEmpty)
    }
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
}
