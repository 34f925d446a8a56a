import PreferenceHistory
import PreferenceModel
import PreferenceSearch
import PropertyList
import Testing

@testable import PreferenceDeclarations

/// Random documents of all that a declaration can say, which are applied, drift, adopt what users
/// have changed, and are taken back in random orders.
@Suite("Random declarations") struct RandomDocumentTests {
  private struct Source {
    var numbers = SystemRandomNumberGenerator()

    mutating func below(_ limit: Int) -> Int { Int.random(in: 0..<limit, using: &numbers) }

    mutating func element() -> Value {
      below(5) == 0 ? ["id": .integer(WideInteger(Int64(below(3))))] : .string("e\(below(6))")
    }

    mutating func list() -> Value { .array((0..<below(5)).map { _ in element() }) }

    mutating func elements() -> Value {
      var (added, removed): ([Value], [Value]) = ([], [])
      for _ in 0..<below(4) { added.append(element()) }
      for _ in 0..<below(3) {
        let element = element()
        if !added.contains(element) { removed.append(element) }
      }
      return ["$add": .array(added), "$remove": .array(removed)]
    }

    /// What is in a list, by the key's first letter: S, an array that is declared by elements; M, a
    /// dictionary that is declared by members; W, anything, which is declared as a whole.
    mutating func settings() -> ValueDictionary {
      var values: ValueDictionary = [:]
      for number in 0..<2 {
        if below(2) == 0 { values[Key("S\(number)")] = list() }
        if below(2) == 0 { values[Key("M\(number)")] = ["a": element(), "l": list()] }
        if below(2) == 0 { values[Key("W\(number)")] = below(2) == 0 ? list() : element() }
      }
      return values
    }

    mutating func document() -> ValueDictionary {
      var values: ValueDictionary = [:]
      for number in 0..<2 {
        if below(2) == 0 { values[Key("S\(number)")] = elements() }
        if below(2) == 0 {
          let member: Value = below(2) == 0 ? element() : Declaration.absent
          values[Key("M\(number)")] = ["$merge": ["a": member, "b": 1, "l": elements()]]
        }
        if below(3) == 0 {
          values[Key("W\(number)")] = below(2) == 0 ? ["$value": element()] : Declaration.absent
        }
      }
      if below(5) == 0 { values["$exact"] = true }
      return ["d": .dictionary(values)]
    }
  }

  /// The list of the place, with arrays in one order.
  private func contents(_ places: MemoryPlaces, _ place: Place) throws -> ValueDictionary {
    let values = try places.snapshots(of: [Location(place, "d")]).first?.values ?? [:]
    return values.mapValues(Self.sorted)
  }

  private static func sorted(_ value: Value) -> Value {
    switch value {
    case .array(let elements):
      .array(
        elements.sorted {
          ValueDescription.line(of: $0, false) < ValueDescription.line(of: $1, false)
        })
    case .dictionary(let members): .dictionary(members.mapValues(sorted))
    default: value
    }
  }

  @Test("500 random documents leave nothing behind but what users have added")
  func random() throws {
    var source = Source()
    for round in 0..<125 {
      let store = DeclaredStore()
      let location = Location(.user, "d")
      _ = try store.places.apply([.replace(location, source.settings())], by: store.author)
      if source.below(2) == 0 {
        let shared = Location(.anyUser, "d")
        _ = try store.places.apply([.replace(shared, source.settings())], by: store.author)
      }
      var expected = try contents(store.places, .user)
      var names: [String] = []
      for step in 0..<4 {
        try perform(step, store, &source, &names)
        let user = Value.string("user \(step)")
        try add(user, Key("S\(source.below(2))"), store, &expected)
        try drift(user, store, &source, &expected)
        if let name = names.randomElement() { try adopt(name, store) }
      }
      for name in names.shuffled() { try store.undeclare(name) }
      let after = try contents(store.places, .user)
      for key in Set(after.keys + expected.keys) {
        let (now, goal) = (after[key], expected[key].map(Self.sorted))
        #expect(now == goal, "round \(round) \(key): \(now.line), not \(goal.line)")
      }
      #expect(try store.places.keys(at: Location(.user, .declared)).isEmpty, "round \(round)")
    }
  }

  /// Declares something, or takes something back. What conflicts changes nothing.
  private func perform(
    _ step: Int, _ store: DeclaredStore, _ source: inout Source, _ names: inout [String]
  ) throws {
    if let name = names.randomElement(), source.below(3) == 0 {
      try store.undeclare(name)
      names.removeAll { $0 == name }
      return
    }
    let name = ["a", "b", "c"][source.below(3)]
    let over = source.below(2) == 0 ? Set(names).subtracting([name]) : []
    let declaration = try Declaration(source.document())
    do throws(EngineError) {
      _ = try Declarations(store.places).carryOut(
        [.declare(name, declaration, over: over)], by: store.author)
      if !names.contains(name) { names.append(name) }
      let drift = try Declarations(store.places).drift().filter { $0.names.contains(name) }
      #expect(drift.isEmpty, "step \(step): \(drift.map(\.line))")
    } catch {
      #expect(error.reason == .system(.notPermitted), "\(error)")
    }
  }

  /// A user adds an element to an array that is there, before and now.
  private func add(
    _ element: Value, _ key: Key, _ store: DeclaredStore, _ expected: inout ValueDictionary
  ) throws {
    guard case .array(let known)? = expected[key], case .array(let now)? = try store.find(key)
    else { return }
    try store.set(key, .array(now + [element]))
    expected[key] = .array(known + [element])
  }

  /// A user sets or removes a value, sets a member of a dictionary, or removes an element.
  private func drift(
    _ value: Value, _ store: DeclaredStore, _ source: inout Source,
    _ expected: inout ValueDictionary
  ) throws {
    let number = source.below(2)
    switch source.below(3) {
    case 0:
      let key = Key("W\(number)")
      let declared = try Declarations(store.places).ledger().effective(DeclaredPath("d", key))
      // What is removed again where it is declared absent is as declared.
      let value = declared == .absent || source.below(2) == 0 ? value : nil
      try store.set(key, value)
      expected[key] = value
    case 1:
      guard case .dictionary(var now)? = try store.find(Key("M\(number)")) else { return }
      var known = expected[Key("M\(number)")]?.dictionary ?? [:]
      (now["a"], known["a"]) = (value, value)
      try store.set(Key("M\(number)"), .dictionary(now))
      expected[Key("M\(number)")] = .dictionary(known)
    default:
      let key = Key("S\(number)")
      guard case .array(let known)? = expected[key], case .array(let now)? = try store.find(key),
        let element = now.randomElement()
      else { return }
      try store.set(key, .array(now.filter { $0 != element }))
      expected[key] = .array(known.filter { $0 != element })
    }
  }

  /// Has the document of a declaration say what is. A document that differs from another one's then
  /// changes nothing.
  private func adopt(_ name: String, _ store: DeclaredStore) throws {
    let declarations = Declarations(store.places)
    guard let declaration = try declarations.ledger().declarations[name] else { return }
    let (drift, settings) = try declarations.adoptable(by: name, isAll: false)
    let variables = Variables(home: "", user: "", host: "", machine: "")
    let adoption = Adoption(
      [declaration.document], isMerged: false, variables: variables, of: drift
    ) { settings.keeps($0, of: $1, in: $2) }
    #expect(adoption.refusals.isEmpty, "\(adoption.refusals)")
    let adopted = try Declaration(adoption.documents[0])
    do throws(EngineError) {
      let done = try declarations.carryOut(
        [.declare(name, adopted, over: [], isAdopting: true)], by: store.author)
      #expect(done.plan.steps.filter(\.isChange).isEmpty, "\(name): \(done.plan.steps)")
      let left = try declarations.adoptable(by: name, isAll: false).drift
      #expect(left.isEmpty, "\(name): \(left.map(\.line))")
    } catch {
      #expect(error.reason == .system(.notPermitted), "\(error)")
    }
  }
}
