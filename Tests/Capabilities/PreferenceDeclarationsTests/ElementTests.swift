import PreferenceModel
import PreferenceSearch
import PropertyList
import Testing

@testable import PreferenceDeclarations

/// A store in memory, and what tests do with it.
struct DeclaredStore {
  let places = MemoryPlaces()
  let author = Author(number: 1)

  func set(
    _ key: Key, _ value: Value?, in place: Place = .user, of domain: DomainName = "d"
  ) throws {
    let edit: Edit = value.map { .set(key, $0, .unknown) } ?? .remove(key)
    _ = try places.apply([.edit(Location(place, domain), edit)], by: Author(number: 2))
  }

  func find(
    _ key: Key, in place: Place = .user, of domain: DomainName = "d"
  ) throws -> Value? {
    try places.find(key, at: Location(place, domain))?.value
  }

  /// Declares a document of one domain `d`.
  @discardableResult
  func declare(
    _ name: String, _ settings: ValueDictionary, over: Set<String> = [], in place: Place? = nil
  ) throws -> DeclarationPlan {
    let declaration = try Declaration(["d": .dictionary(settings)])
    return try Declarations(places, in: place)
      .carryOut([.declare(name, declaration, over: over)], by: author).plan
  }

  @discardableResult
  func undeclare(_ name: String, in place: Place? = nil) throws -> DeclarationPlan {
    try Declarations(places, in: place).carryOut([.undeclare(name)], by: author).plan
  }

  func drift() throws -> [String] { try Declarations(places).drift().map(\.line) }
}

@Suite("Elements of arrays as sets") struct ElementTests {
  private static func elements(add: [Value] = [], remove: [Value] = []) -> Value {
    var words: ValueDictionary = [:]
    if !add.isEmpty { words["$add"] = .array(add) }
    if !remove.isEmpty { words["$remove"] = .array(remove) }
    return .dictionary(words)
  }

  @Test("elements are appended in their order, and each declaration takes back its own")
  func composed() throws {
    for order in [["a", "b"], ["b", "a"]] {
      let store = DeclaredStore()
      try store.set("K", ["x", "y"])
      let documents = [
        "a": Self.elements(add: ["z", "c", "x"]),
        "b": Self.elements(add: ["c", "w"], remove: ["y"]),
      ]
      try store.declare("a", ["K": documents["a"] ?? 0])
      #expect(try store.find("K") == ["x", "y", "z", "c"])
      try store.declare("b", ["K": documents["b"] ?? 0])
      #expect(try store.find("K") == ["x", "z", "c", "w"])
      try store.set("K", ["mine", "x", "z", "c", "w"])
      #expect(try store.drift().isEmpty)
      try store.undeclare(order[0])
      try store.undeclare(order[1])
      #expect(try store.find("K") == ["mine", "x", "y"])
      #expect(try store.places.keys(at: Location(.user, .declared)).isEmpty)
    }
  }

  @Test("an array that was not there goes with its last element, unless somebody has added one")
  func made() throws {
    let store = DeclaredStore()
    try store.declare("a", ["K": Self.elements(add: [1])])
    try store.declare("b", ["K": Self.elements(add: [2], remove: [3])])
    #expect(try store.find("K") == [1, 2])
    try store.undeclare("a")
    #expect(try store.find("K") == [2])
    try store.undeclare("b")
    #expect(try store.find("K") == nil && !store.places.exists(Location(.user, "d")))
    try store.declare("a", ["K": Self.elements(add: [1])])
    try store.set("K", [1, 9])
    try store.undeclare("a")
    #expect(try store.find("K") == [9])
    // Nothing is made for an element that is not there anyway.
    try store.set("K", nil)
    let plan = try store.declare("b", ["K": Self.elements(remove: [3])])
    #expect(try plan.steps.isEmpty && store.find("K") == nil)
  }

  @Test("elements join a copy of what programs read, which goes with them")
  func inherited() throws {
    let store = DeclaredStore()
    try store.set("K", [1, 2], in: .anyUser)
    try store.declare("a", ["K": Self.elements(add: [3], remove: [1])])
    #expect(try store.find("K") == [2, 3] && store.drift().isEmpty)
    try store.declare("a", ["K": Self.elements(add: [2])])
    #expect(try store.find("K") == [2, 1])
    try store.undeclare("a")
    #expect(try store.find("K") == nil && !store.places.exists(Location(.user, "d")))
    try store.declare("b", ["K": Self.elements(remove: [7])])
    try store.set("K", [7], in: .anyUser)
    #expect(try store.drift() == ["d K[]: declared (none) (b), is 7"])
    try store.declare("b", ["K": Self.elements(remove: [7])])
    #expect(try store.find("K") == [] && store.drift().isEmpty)
    try store.undeclare("b")
    #expect(try store.find("K") == nil)
  }

  @Test("drift of an element is named, corrected, and comes back as the user has left it")
  func drift() throws {
    let store = DeclaredStore()
    try store.set("K", ["x", "y"])
    let document: ValueDictionary = ["K": Self.elements(add: ["z"], remove: ["y"])]
    try store.declare("a", document)
    try store.set("K", ["y", "x"])
    #expect(
      try store.drift() == [
        "d K[]: declared (none) (a), is y", "d K[]: declared z (a), is (none)",
      ])
    try store.declare("a", document)
    #expect(try store.find("K") == ["x", "z"])
    try store.undeclare("a")
    #expect(try store.find("K") == ["x", "y"])
    try store.set("K", "text")
    try store.declare("a", document)
    #expect(try store.find("K") == ["z"])
    try store.undeclare("a")
    #expect(try store.find("K") == "text")
    // An element that occurs twice is there twice again.
    try store.set("K", ["y", "x", "y"])
    try store.declare("a", document)
    #expect(try store.find("K") == ["x", "z"])
    try store.undeclare("a")
    #expect(try store.find("K") == ["x", "y", "y"])
  }

  @Test("an element against its removal, or against a whole value, is a difference")
  func conflicts() throws {
    let store = DeclaredStore()
    try store.declare("a", ["K": Self.elements(add: [1])])
    for other: Value in [Self.elements(remove: [1]), [1], ["$merge": ["x": 1]]] {
      let error = #expect(throws: EngineError.self) { try store.declare("b", ["K": other]) }
      #expect(error?.reason == .system(.notPermitted))
    }
    try store.declare("b", ["K": Self.elements(remove: [1])], over: ["a"])
    #expect(try store.find("K") == nil)
    try store.undeclare("b")
    #expect(try store.find("K") == [1])
    try store.undeclare("a")
    #expect(try store.find("K") == nil)
  }

  @Test("members of one dictionary are merged; elements can be in them; $value is what it holds")
  func merged() throws {
    let store = DeclaredStore()
    try store.set("D", ["a": 1, "l": ["x"]])
    let inner: Value = ["$merge": ["b": ["$value": ["$add": 1]], "l": Self.elements(add: ["y"])]]
    try store.declare("a", ["D": inner, "V": ["$value": ["$value": 5]]])
    #expect(try store.find("D") == ["a": 1, "b": ["$add": 1], "l": ["x", "y"]])
    #expect(try store.find("V") == ["$value": 5])
    try store.undeclare("a")
    #expect(try store.find("D") == ["a": 1, "l": ["x"]] && store.find("V") == nil)
    // A dictionary on the way that was not there goes, and an empty one stays.
    for before: Value? in [nil, [:]] {
      try store.set("D", before)
      try store.declare("a", ["D": ["$merge": ["l": Self.elements(add: [1])]]])
      #expect(try store.find("D") == ["l": [1]])
      try store.undeclare("a")
      #expect(try store.find("D") == before)
    }
  }

  @Test("elements follow the array that programs read, with those of other declarations")
  func moved() throws {
    let store = DeclaredStore()
    try store.declare("a", ["K": Self.elements(add: [1])])
    try store.declare("b", ["K": Self.elements(add: [2])])
    try store.set("K", [7], in: .host)
    try store.declare("a", ["K": Self.elements(add: [1])])
    #expect(try store.find("K", in: .host) == [7, 1, 2] && store.find("K") == nil)
    #expect(try store.drift().isEmpty)
    try store.undeclare("a")
    try store.undeclare("b")
    #expect(try store.find("K", in: .host) == [7] && store.find("K") == nil)
  }

  @Test("an instruction that is none, or where none can be, refuses the document")
  func refused() throws {
    let refused: [Value] = [
      ["$ad": [1]], ["$add": 1], ["$add": [1], "$merge": [:]], ["$merge": [1]],
      ["$add": [1], "$remove": [1]], ["$add": [["$absent": true]]], ["a": ["$add": [1]]],
      [["$value": 1]], ["$value": 1, "$add": [2]],
    ]
    for value in refused {
      #expect(throws: EngineError.self, "\(value)") { try Declaration(["d": ["K": value]]) }
    }
    // Earlier versions have taken such a dictionary for a value.
    let old = try Declaration(["d": ["K": ["$ad": [1]]]], isStored: true)
    #expect(old.paths == [DeclaredPath("d", "K"): .value(["$ad": [1]])])
  }
}
