import CAllocations
import PreferenceModel
import PreferenceSearch
import PropertyList
import Testing

@testable import PreferenceDeclarations

@Suite("Declarations") struct DeclarationTests {
  private let places = MemoryPlaces()
  private let author = Author(number: 1)

  private func set(_ domain: DomainName, _ key: Key, _ value: Value?, in place: Place = .user)
    throws
  {
    let edit: Edit = value.map { .set(key, $0, .unknown) } ?? .remove(key)
    _ = try places.apply([.edit(Location(place, domain), edit)], by: Author(number: 2))
  }

  private func find(_ domain: DomainName, _ key: Key, in place: Place = .user) throws -> Value? {
    try places.find(key, at: Location(place, domain))?.value
  }

  /// Declares a document of one domain `d`.
  @discardableResult
  private func declare(
    _ name: String, _ settings: ValueDictionary, over: Set<String> = [], isMerged: Bool = false,
    in place: Place? = nil
  ) throws -> DeclarationPlan {
    let declaration = try Declaration(["d": .dictionary(settings)], isMerged: isMerged)
    return try Declarations(places, in: place)
      .carryOut([.declare(name, declaration, over: over)], by: author).plan
  }

  @discardableResult
  private func undeclare(_ name: String, in place: Place? = nil) throws -> DeclarationPlan {
    try Declarations(places, in: place).carryOut([.undeclare(name)], by: author).plan
  }

  @Test("a member of an inner dictionary is replaced without a copy of the others")
  func membersInPlace() {
    // Four times the members take four times the bytes; sixteen times, if each one copied the rest.
    let (short, long) = (Self.bytes(ofMembers: 500), Self.bytes(ofMembers: 2000))
    #expect(long < 7 * short, "\(short) and \(long) bytes")
  }

  /// How many bytes of memory are allocated while an inner dictionary gets that many members.
  private static func bytes(ofMembers count: Int) -> Int {
    var value: Value?
    let paths = (0..<count).map { [Key("inner"), Key("member \($0)")] }
    prefsfs_begin_counting_allocations()
    for path in paths { value.replace(path, with: .boolean(true)) }
    _ = prefsfs_end_counting_allocations()
    return prefsfs_allocated_bytes()
  }

  @Test("what is declared no more goes back; what somebody has changed since stays")
  func back() throws {
    try set("d", "A", 1)
    try declare("site", ["A": 2, "B": 3, "C": 4])
    #expect(try find("d", "A") == 2 && find("d", "B") == 3)
    try set("d", "C", 9)
    let plan = try declare("site", ["B": 3])
    #expect(try find("d", "A") == 1 && find("d", "B") == 3 && find("d", "C") == 9)
    #expect(plan.steps.map(\.outcome) == [.restored, .changedSince])
    try undeclare("site")
    #expect(try places.keys(at: Location(.user, "d")).sorted() == ["A", "C"])
    #expect(try places.keys(at: Location(.user, .declared)).isEmpty)
    #expect(try !places.exists(Location(.user, .declared)))
    #expect(throws: EngineError.self) { try undeclare("site") }
  }

  @Test("the second time there is nothing to do, and no transaction")
  func twice() throws {
    try declare("site", ["A": 2, "B": ["x": 1]])
    let plan = try declare("site", ["A": 2, "B": ["x": 1]])
    #expect(plan.steps.isEmpty && plan.intents.isEmpty)
  }

  @Test("drift is named; the next apply corrects it, and the newer value is what comes back")
  func drift() throws {
    try set("d", "A", 1)
    try declare("site", ["A": 2])
    try set("d", "A", 7)
    #expect(try Declarations(places).drift().map(\.line) == ["d A: declared 2 (site), is 7"])
    try declare("site", ["A": 2])
    #expect(try find("d", "A") == 2 && Declarations(places).drift().isEmpty)
    try undeclare("site")
    #expect(try find("d", "A") == 7)
  }

  @Test("what another list of the user's, or a profile, gives instead is drift")
  func shadowed() throws {
    try set("d", "A", 1)
    try declare("site", ["A": 2, "M": ["x": 1]], isMerged: true)
    try set("d", "A", 7, in: .host)
    try set("d", "M", ["y": 3], in: .host)
    #expect(
      try Declarations(places).drift().map(\.line) == [
        "d A: declared 2 (site), is 7", "d M.x: declared 1 (site), is (none)",
      ])
    // The next apply declares it where programs read it, and takes back what it gave elsewhere.
    try declare("site", ["A": 2, "M": ["x": 1]], isMerged: true)
    #expect(try find("d", "A", in: .host) == 2 && find("d", "A") == 1)
    #expect(try find("d", "M", in: .host) == ["x": 1, "y": 3] && find("d", "M") == nil)
    #expect(try Declarations(places).drift().isEmpty)
    let again = try declare("site", ["A": 2, "M": ["x": 1]], isMerged: true)
    #expect(again.steps.isEmpty && again.intents.isEmpty)
    try undeclare("site")
    #expect(try find("d", "A", in: .host) == 7 && find("d", "M", in: .host) == ["y": 3])
    #expect(try find("d", "A") == 1)
    // Also where the key is no longer where it was declared, or stood in the place of a dictionary.
    try set("d", "M", nil, in: .host)
    try set("d", "M", 5)
    try declare("site", ["A": 2, "M": ["x": 1]], isMerged: true)
    #expect(try find("d", "M") == ["x": 1])
    try set("d", "A", nil, in: .host)
    try declare("site", ["A": 2, "M": ["x": 1]], isMerged: true)
    try set("d", "A", nil)
    try set("d", "A", 8, in: .host)
    try set("d", "M", 6, in: .host)
    let moved = try declare("site", ["A": 2, "M": ["x": 1]], isMerged: true)
    #expect(moved.steps.map(\.outcome) == [.set, .moved, .set, .moved])
    #expect(try find("d", "A", in: .host) == 2 && find("d", "A") == nil)
    #expect(try find("d", "M", in: .host) == ["x": 1] && find("d", "M") == 5)
    let last = try declare("site", ["A": 2, "M": ["x": 1]], isMerged: true)
    #expect(last.steps.isEmpty && last.intents.isEmpty)
    try undeclare("site")
    #expect(try find("d", "A", in: .host) == 8 && find("d", "M", in: .host) == 6)
    #expect(try find("d", "M") == 5 && places.keys(at: Location(.user, .declared)).isEmpty)
    // What a forced value satisfies is set once nothing forces it.
    try set("d", "F", true, in: .managed)
    try declare("other", ["F": true])
    #expect(try find("d", "F") == nil && Declarations(places).drift().isEmpty)
    try set("d", "F", false, in: .managed)
    #expect(
      try Declarations(places).drift().map(\.line) == ["d F: declared 1 (other), is 0"])
    try set("d", "F", nil, in: .managed)
    #expect(
      try Declarations(places).drift().map(\.line) == ["d F: declared 1 (other), is (none)"])
    try declare("other", ["F": true])
    #expect(try find("d", "F") == true && Declarations(places).drift().isEmpty)
  }

  @Test("two declarations may agree: the key goes with the last one, in both orders")
  func shared() throws {
    for order in [["a", "b"], ["b", "a"]] {
      try declare("a", ["K": 1])
      try declare("b", ["K": 1])
      try undeclare(order[0])
      #expect(try find("d", "K") == 1)
      try undeclare(order[1])
      #expect(try find("d", "K") == nil)
    }
  }

  @Test("two that differ are refused, unless one is over the other, whose value returns")
  func conflict() throws {
    try set("d", "K", 0)
    try declare("a", ["K": 1])
    let error = #expect(throws: EngineError.self) { try declare("b", ["K": 2]) }
    #expect(error?.reason == .system(.notPermitted))
    #expect(error?.sentence.contains("b (2) and a (1)") == true)
    #expect(try find("d", "K") == 1 && Declarations(places).ledger().declarations.count == 1)
    try declare("b", ["K": 2], over: ["a"])
    #expect(try find("d", "K") == 2)
    // The order of the commands does not matter.
    try declare("a", ["K": 1])
    #expect(try find("d", "K") == 2)
    try declare("a", ["K": 5])
    try undeclare("b")
    #expect(try find("d", "K") == 5)
    try undeclare("a")
    #expect(try find("d", "K") == 0)
  }

  @Test("a key may be declared not to be there")
  func absent() throws {
    try set("d", "K", 1)
    try declare("a", ["K": Declaration.absent])
    #expect(try find("d", "K") == nil)
    try set("d", "K", 3)
    #expect(try Declarations(places).drift().map(\.line) == ["d K: declared (none) (a), is 3"])
    try declare("a", ["K": Declaration.absent])
    try undeclare("a")
    #expect(try find("d", "K") == 3)
  }

  @Test("a key that is declared not to be there is in none of the user's lists, and comes back")
  func absentEverywhere() throws {
    try set("d", "A", 1)
    try set("d", "A", 2, in: .host)
    let plan = try declare("site", ["A": Declaration.absent])
    #expect(plan.steps.map(\.place) == [.host, .user] && plan.steps.allSatisfy(\.isChange))
    #expect(try find("d", "A") == nil && find("d", "A", in: .host) == nil)
    #expect(try Declarations(places).drift().isEmpty)
    #expect(try declare("site", ["A": Declaration.absent]).intents.isEmpty)
    // Whoever sets it in the other list has drifted, and has the newer value back one day.
    try set("d", "A", 3)
    #expect(try Declarations(places).drift().count == 1)
    try declare("site", ["A": Declaration.absent])
    #expect(try find("d", "A") == nil && Declarations(places).drift().isEmpty)
    try undeclare("site")
    #expect(try find("d", "A") == 3 && find("d", "A", in: .host) == 2)
    // What has been set since stays.
    try declare("site", ["A": Declaration.absent])
    try set("d", "A", 4)
    try undeclare("site")
    #expect(try find("d", "A") == 4 && find("d", "A", in: .host) == 2)
  }

  @Test("dictionaries are merged member by member, and siblings stay")
  func merged() throws {
    try set("d", "D", ["a": 1, "b": ["x": 1]])
    try declare("m", ["D": ["a": 2, "b": ["y": 2], "c": ["z": 3]]], isMerged: true)
    #expect(try find("d", "D") == ["a": 2, "b": ["x": 1, "y": 2], "c": ["z": 3]])
    try set("d", "D", ["a": 2, "b": ["x": 7, "y": 2], "c": ["z": 3], "own": true])
    try undeclare("m")
    #expect(try find("d", "D") == ["a": 1, "b": ["x": 7], "own": true])
    try declare("whole", ["D": ["a": 5]])
    #expect(throws: EngineError.self) { try declare("m", ["D": ["b": 2]], isMerged: true) }
  }

  @Test("what somebody puts in the place of a dictionary of members stays")
  func replaced() throws {
    try set("d", "D", ["a": 1, "b": 2])
    try declare("m", ["D": ["a": Declaration.absent]], isMerged: true)
    #expect(try find("d", "D") == ["b": 2])
    try set("d", "D", "text")
    let plan = try undeclare("m")
    #expect(try find("d", "D") == "text" && plan.steps.map(\.outcome) == [.changedSince])
    try set("d", "D", "old")
    try declare("m", ["D": ["a": 5]], isMerged: true)
    try set("d", "D", "newer")
    try declare("m", ["D": ["a": 5]], isMerged: true)
    #expect(try find("d", "D") == ["a": 5])
    // Also where its last member is then declared not to be there.
    try declare("m", ["D": ["a": Declaration.absent]], isMerged: true)
    #expect(try find("d", "D") == [:])
    try undeclare("m")
    #expect(try find("d", "D") == "newer")
    try declare("m", ["D": ["a": 5]], isMerged: true)
    try set("d", "D", nil)
    try undeclare("m")
    #expect(try find("d", "D") == nil)
  }

  @Test("null stands for the value of a key, or of a member, and for nothing else")
  func misplaced() throws {
    let absent = Declaration.absent
    #expect(throws: EngineError.self) { try Declaration(["d": absent]) }
    for value: Value in [["a": absent], [absent], ["a": [["b": absent]]]] {
      #expect(throws: EngineError.self) { try Declaration(["d": ["D": value]]) }
    }
    #expect(throws: EngineError.self) { try Declaration(["d": ["D": [absent]]], isMerged: true) }
    let twice: ValueDictionary = ["Apple Global Domain": ["A": 1], ".GlobalPreferences": ["B": 1]]
    #expect(throws: EngineError.self) { try Declaration(twice) }
    let named = try Declaration(["Apple Global Domain": ["A": 1]])
    #expect(named.document.keys.map(\.string) == [DomainName.global.string])
    #expect(try Declaration(["-g": ["A": 1]]) == named)
  }

  @Test("one declaration leaves the drift of another alone, and what another one may not set")
  func others() throws {
    try declare("site", ["K": 1])
    try set("d", "K", 7)
    let own = try Declaration(["e": ["X": 1]])
    let declarations = Declarations(places)
    _ = try declarations.carryOut([.declare("own", own, over: [])], by: author)
    #expect(try find("d", "K") == 7)
    try set("d", "K", 2, in: .managed)
    _ = try declarations.carryOut([.undeclare("own")], by: author)
    #expect(try find("e", "X") == nil && find("d", "K") == 7)
  }

  @Test("a key that was moved to the cloud is followed there")
  func moved() throws {
    try set("d", "K", 1)
    try declare("a", ["K": 2])
    try set("d", "K", 2, in: .cloud)
    try set("d", "K", nil)
    #expect(try Declarations(places).drift().isEmpty)
    #expect(try declare("a", ["K": 2]).steps.isEmpty)
    try set("d", "K", 3, in: .cloud)
    #expect(try Declarations(places).drift().map(\.line) == ["d K: declared 2 (a), is 3"])
    try set("d", "K", 2, in: .cloud)
    try undeclare("a")
    #expect(try find("d", "K", in: .cloud) == 1 && find("d", "K") == nil)
  }

  @Test("a domain that was there, empty or not, stays; one that a declaration made goes")
  func domains() throws {
    _ = try places.apply([.createDomain("empty")], by: author)
    let declaration = try Declaration(["empty": ["K": 1], "made": ["K": 1]])
    _ = try Declarations(places).carryOut([.declare("a", declaration, over: [])], by: author)
    try undeclare("a")
    #expect(try places.exists(Location(.user, "empty")) && !places.exists(Location(.user, "made")))
  }

  @Test("a rename of a declaration takes nothing back")
  func renamed() throws {
    try set("d", "K", 0)
    try declare("a", ["K": 1])
    let declaration = try Declaration(["d": ["K": 1]])
    for requests: [Declarations.Request] in [
      [.declare("b", declaration, over: []), .undeclare("a")],
      [.declare("b", declaration, over: []), .undeclare("b")],
    ] {
      let plan = try Declarations(places).carryOut(requests, by: author).plan
      #expect(plan.steps.isEmpty)
    }
    #expect(try Declarations(places).ledger().declarations.keys.sorted() == ["b"])
    try undeclare("b")
    #expect(try find("d", "K") == 0)
  }

  @Test("what is forced satisfies if it is equal, else refuses the whole")
  func forced() throws {
    try set("d", "F", 1, in: .managed)
    try declare("a", ["F": 1, "K": 2])
    #expect(try find("d", "F") == nil && find("d", "K") == 2)
    let error = #expect(throws: EngineError.self) { try declare("a", ["F": 2, "K": 3]) }
    #expect(error?.reason == .forced)
    #expect(try find("d", "K") == 2)
    try set("d", "F", nil, in: .managed)
    try declare("a", ["F": 1, "K": 2])
    #expect(try find("d", "F") == 1)
    try undeclare("a")
    #expect(try find("d", "F") == nil)
  }

  @Test("a place of the machine has a ledger of its own")
  func machine() throws {
    try declare("fleet", ["K": 1], in: .managed)
    #expect(try find("d", "K", in: .managed) == 1 && find("d", "K") == nil)
    #expect(try places.exists(Location(.managed, .declared)))
    try undeclare("fleet", in: .managed)
    #expect(try find("d", "K", in: .managed) == nil)
  }

  @Test("of a secret no value from before is kept, and it stays")
  func secret() throws {
    try set("d", "Token", "mine")
    try declare("a", ["Token": "theirs", "NewToken": "x"])
    let before = try Declarations(places).ledger().before
    #expect(before[DeclaredPath("d", "Token")]?.isKept == false)
    let plan = try undeclare("a")
    #expect(plan.steps.map(\.outcome) == [.restored, .notKept])
    #expect(try find("d", "Token") == "theirs" && find("d", "NewToken") == nil)
  }

  @Test("a boolean is no secret, whatever its key's name is; a member with a secret's name is")
  func secretNames() throws {
    try set("d", "askForPassword", false)
    try set("d", "Server", ["password": "mine", "port": 1])
    let declared: ValueDictionary = [
      "askForPassword": true, "Server": ["password": "theirs", "port": 2],
    ]
    try declare("a", declared, isMerged: true)
    let plan = try undeclare("a")
    #expect(Set(plan.steps.map(\.outcome)) == [.restored, .notKept])
    #expect(try find("d", "askForPassword") == false)
    #expect(try find("d", "Server") == ["password": "theirs", "port": 1])
  }

  @Test("a value from before that is forgotten does not come back; those of other keys do")
  func forgotten() throws {
    try set("d", "A", 1)
    try set("d", "B", 1)
    try set("d", "C", 1)
    try set("d", "C", 2, in: .host)
    try declare("site", ["A": 2, "B": 2, "C": Declaration.absent])
    let declarations = Declarations(places)
    #expect(try declarations.forget(of: "e", nil, by: author) == 0)
    #expect(try declarations.forget(of: "d", "A", by: author) == 1)
    #expect(try declarations.forget(of: "d", "A", by: author) == 0)
    #expect(try declarations.forget(of: "d", "C", by: author) == 2)
    try declare("site", ["A": 2, "B": 2, "C": Declaration.absent])
    let plan = try undeclare("site")
    #expect(try find("d", "A") == 2 && find("d", "B") == 1)
    #expect(try find("d", "C") == nil && find("d", "C", in: .host) == nil)
    #expect(plan.steps.map(\.outcome) == [.notKept, .restored])
    #expect(try declarations.forget(of: "d", nil, by: author) == 0)
  }

  @Test("a damaged ledger is named and nothing is changed; without it, values stay")
  func damaged() throws {
    try declare("a", ["K": 1])
    try set(.declared, ".before", "broken")
    let error = #expect(throws: EngineError.self) { try undeclare("a") }
    #expect(error?.key == ".before" && error?.reason == .system(.invalidArgument))
    for key in try places.keys(at: Location(.user, .declared)) { try set(.declared, key, nil) }
    #expect(try find("d", "K") == 1 && Declarations(places).ledger() == Ledger())
  }

  @Test("a key of the ledger that is damaged stops the declarations of its domain alone")
  func damagedDomain() throws {
    try declare("a", ["K": 1])
    try set(.declared, ".domain/d", "broken")
    let error = #expect(throws: EngineError.self) { try declare("b", ["L": 1]) }
    #expect(error?.key == ".domain/d" && error?.reason == .system(.invalidArgument))
    let other = try Declaration(["e": ["K": 1]])
    _ = try Declarations(places).carryOut([.declare("c", other, over: [])], by: author)
    #expect(try find("e", "K") == 1)
  }

  @Test("an apply reads and writes what it declares, however much is declared besides")
  func cost() throws {
    var costs: [[Int]] = []
    for count in [1, 200] {
      let places = MemoryPlaces()
      let declarations = Declarations(places)
      for number in 0..<count {
        let other = try Declaration([Key("e\(number)"): ["K": 1, "L": ["M": .integer(2)]]])
        _ = try declarations.carryOut([.declare("other\(number)", other, over: [])], by: author)
      }
      let searches = places.searches
      let own = try Declaration(["d": ["A": 1, "B": 2]])
      let made = try declarations.carryOut([.declare("site", own, over: [])], by: author)
      #expect(made.changeset.items.contains { $0.edit.key == ".domain/d" })
      costs.append([places.searches - searches, made.plan.intents.count])
    }
    #expect(costs[0] == costs[1])
  }

  @Test("a ledger of an earlier version counts, and is written anew with the next change")
  func earlierVersion() throws {
    try set("d", "A", 2)
    try set("e", "B", 3)
    let before: [Value] = [
      ["place": "user", "domain": "d", "path": ["A"], "value": 1],
      ["place": "user", "domain": "e", "path": ["B"], "made": true],
    ]
    try set(.declared, "site", ["d": ["A": 2], "e": ["B": 3]])
    try set(.declared, ".before", .array(before))
    try set(.declared, ".texts", ["site.json": .data([0x7B, 0x7D])])
    #expect(throws: EngineError.self) { try declare("other", ["A": 5]) }
    try declare("other", ["C": 5])
    let ledger = try Declarations(places).ledger()
    #expect(ledger.texts["site"] == Ledger.Text(ending: ".json", bytes: [0x7B, 0x7D]))
    #expect(
      try places.keys(at: Location(.user, .declared)).sorted() == [
        ".domain/d", ".domain/e", ".text/site.json", "other", "site",
      ])
    try undeclare("site")
    #expect(try find("d", "A") == 1 && find("e", "B") == nil && find("d", "C") == 5)
    try undeclare("other")
    #expect(try !places.exists(Location(.user, .declared)))
  }

  @Test("of two plans that were made at once, the second is refused if they name the same domain")
  func atOnce() throws {
    let declarations = Declarations(places)
    func plan(_ name: String, _ domain: Key) throws -> DeclarationPlan {
      let declaration = try Declaration([domain: [Key(name): 1]])
      return try declarations.plan([.declare(name, declaration, over: [])])
    }
    let plans = [try plan("a", "d"), try plan("b", "d"), try plan("c", "e")]
    _ = try places.apply(plans[0].intents, by: author)
    let error = #expect(throws: EngineError.self) {
      try places.apply(plans[1].intents, by: author)
    }
    #expect(error?.reason == .changedMeanwhile)
    _ = try places.apply(plans[2].intents, by: author)
    #expect(try declarations.ledger().declarations.keys.sorted() == ["a", "c"])
  }

  @Test("names and documents that are none are refused")
  func refused() throws {
    for name in ["", ".x", "a b", "a/b", String(repeating: "x", count: 201)] {
      #expect(throws: EngineError.self, "\(name)") { try declare(name, ["K": 1]) }
    }
    #expect(throws: EngineError.self) { try Declaration(["d": 1]) }
    #expect(throws: EngineError.self) { try Declaration(["prefsfs.declared": ["a": 1]]) }
    #expect(throws: EngineError.self) { try Declaration(["a/b": ["a": 1]]) }
    #expect(try Declaration([:]).paths.isEmpty)
  }

  // MARK: - Random documents

  private struct Source {
    var numbers = SystemRandomNumberGenerator()

    mutating func below(_ limit: Int) -> Int { Int.random(in: 0..<limit, using: &numbers) }

    mutating func value(_ depth: Int = 0) -> Value {
      switch below(depth < 2 ? 8 : 6) {
      case 0: .integer(WideInteger(Int64(below(5))))
      case 1: .real(Double(below(9)) / 4)
      case 2: .boolean(below(2) == 0)
      case 3: .data([UInt8(below(3))])
      case 4: .date(AbsoluteTime(seconds: Double(below(4))))
      case 5: .string("text \(below(5))")
      case 6: .array((0..<below(3)).map { _ in value(depth + 1) })
      default: .dictionary(dictionary(depth + 1))
      }
    }

    mutating func dictionary(_ depth: Int = 0) -> ValueDictionary {
      var values: ValueDictionary = [:]
      for _ in 0..<below(6) { values[Key("K\(below(8))")] = value(depth) }
      return values
    }

    mutating func document() -> ValueDictionary {
      var document: ValueDictionary = [:]
      for domain in ["d", "e", "f"] where below(3) > 0 {
        document[Key(domain)] = .dictionary(dictionary())
      }
      return document
    }
  }

  private static let domains: [DomainName] = ["d", "e", "f"]

  private func contents(_ places: MemoryPlaces) throws -> [Location: ValueDictionary] {
    var all: [Location: ValueDictionary] = [:]
    for place in [Place.user, .host] {
      for domain in Self.domains {
        let location = Location(place, domain)
        all[location] = try places.snapshots(of: [location]).first?.values ?? [:]
      }
    }
    return all
  }

  @Test("500 random documents over random stores leave nothing behind, merged ones too")
  func random() throws {
    var source = Source()
    for round in 0..<500 {
      let places = MemoryPlaces()
      for place in [Place.user, .host] {
        for domain in Self.domains where source.below(2) == 0 {
          _ = try places.apply(
            [.replace(Location(place, domain), source.dictionary())], by: author)
        }
      }
      let before = try contents(places)
      let declarations = Declarations(places)
      for name in ["a", "a", "a"] {
        let declaration = try Declaration(source.document(), isMerged: round % 2 == 1)
        _ = try declarations.carryOut([.declare(name, declaration, over: [])], by: author)
        let ledger = try declarations.ledger()
        for path in ledger.paths {
          let place = try #require(ledger.before[path]).place
          let value = try places.find(path.key, at: Location(place, path.domain))?.value
          #expect(value?.part(path.members) == ledger.effective(path)?.value)
        }
      }
      let empty = try Declaration([:])
      _ = try declarations.carryOut([.declare("a", empty, over: [])], by: author)
      let after = try contents(places)
      for (location, values) in before {
        #expect(after[location] == values, "\(location)")
      }
    }
  }

  @Test("what a user has changed in between stays, and everything else goes back")
  func randomDrift() throws {
    var source = Source()
    for _ in 0..<300 {
      let places = MemoryPlaces()
      for domain in Self.domains {
        _ = try places.apply([.replace(Location(.user, domain), source.dictionary())], by: author)
      }
      var expected = try contents(places)
      let declarations = Declarations(places)
      let declaration = try Declaration(source.document())
      _ = try declarations.carryOut([.declare("a", declaration, over: [])], by: author)
      for path in declaration.paths.keys where source.below(2) == 0 {
        let (location, new) = (Location(.user, path.domain), Value.string("changed"))
        _ = try places.apply([.edit(location, .set(path.key, new, .unknown))], by: author)
        expected[location]?[path.key] = new
      }
      _ = try declarations.carryOut([.undeclare("a")], by: author)
      let after = try contents(places)
      for (location, values) in expected {
        #expect(after[location] == values, "\(location)")
      }
    }
  }
}
