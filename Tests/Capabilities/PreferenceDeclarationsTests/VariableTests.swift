import PreferenceModel
import PropertyList
import Testing

@testable import PreferenceDeclarations

@Suite("Variables in documents") struct VariableTests {
  private static let own = Variables(home: "/home/ada", user: "ada", host: "here", machine: "ID-1")
  private static let elsewhere = Variables(
    home: "/u/ada", user: "ada", host: "there", machine: "ID-2")

  private func declare(
    _ store: DeclaredStore, _ settings: ValueDictionary, in place: Place? = nil,
    _ variables: Variables = own
  ) throws {
    let declaration = try Declaration(["d": .dictionary(settings)], variables: variables)
    _ = try Declarations(store.places, in: place).carryOut(
      [.declare("a", declaration, over: [])], by: store.author)
  }

  @Test(
    "texts",
    arguments: [
      ("plain $ $x {}", "plain $ $x {}"), ("${home}", "/home/ada"),
      ("a${user}b${user}", "aadabada"),
      ("$${home}", "${home}"), ("$$${home}", "$${home}"), ("$$", "$$"),
      ("${host}-${machine}", "here-ID-1"), ("é${home}é", "é/home/adaé"),
    ])
  func texts(_ text: String, _ expanded: String) throws {
    var used: Set<Variables.Name> = []
    #expect(try Self.own.expand(text, &used) == expanded)
  }

  @Test(
    "an unknown one refuses the whole document", arguments: ["${x}", "${HOME}", "${home", "${}"])
  func unknown(_ text: String) throws {
    for value: Value in [.string(text), [.string(text)], ["$add": [.string(text)]]] {
      #expect(throws: EngineError.self) {
        try Declaration(["d": ["A": 1, "K": value]], variables: Self.own)
      }
    }
  }

  @Test("what they stood for is kept; it counts for whoever reads the ledger")
  func kept() throws {
    let store = DeclaredStore()
    try declare(store, ["K": ["l": ["${home}/x"]], "E": "$${"])
    #expect(try store.find("K") == ["l": ["/home/ada/x"]] && store.find("E") == "${")
    #expect(try store.drift().isEmpty)
    let ledger = try Declarations(store.places).ledger()
    #expect(ledger.declarations["a"]?.variables?.values == [.home: "/home/ada"])
    // Another declaration, which does not read this document, leaves that alone.
    let other = try Declaration(["e": ["K": 1]])
    _ = try Declarations(store.places).carryOut([.declare("b", other, over: [])], by: store.author)
    #expect(try store.drift().isEmpty)
    try declare(store, ["K": ["l": ["${home}/x"]]], Self.elsewhere)
    #expect(try store.find("K") == ["l": ["/u/ada/x"]])
    try store.undeclare("a")
    try store.undeclare("b")
    #expect(try store.find("K") == nil)
    #expect(try store.places.keys(at: Location(.user, .declared)).isEmpty)
  }

  @Test("without an entry of the ledger a string is what it is, as earlier versions took it")
  func earlier() throws {
    let store = DeclaredStore()
    try store.declare("a", ["K": "${home} ${other}"])
    #expect(try store.find("K") == "${home} ${other}" && store.drift().isEmpty)
  }

  @Test("what is the host's is declared in its list, also if it was elsewhere before")
  func ofHost() throws {
    let store = DeclaredStore()
    try store.set("K", "old")
    try declare(store, ["K": "name"])
    try declare(store, ["K": "${host}", "L": ["$add": ["x", "${machine}"]]])
    #expect(try store.find("K", in: .host) == "here" && store.find("K") == "old")
    #expect(try store.find("L", in: .host) == ["x", "ID-1"] && store.find("L") == nil)
    #expect(try store.drift().isEmpty)
    try store.undeclare("a")
    #expect(try store.find("K", in: .host) == nil && store.find("K") == "old")
    #expect(try store.find("L", in: .host) == nil)
  }

  @Test("a place with one value for all refuses what differs")
  func places() throws {
    let store = DeclaredStore()
    for (place, text) in [
      (Place.managed, "${home}"), (.anyUser, "${user}"), (.user, "${host}"), (.user, "${machine}"),
    ] {
      #expect(throws: EngineError.self, "\(place)") {
        try declare(store, ["K": .string(text)], in: place)
      }
    }
    try declare(store, ["K": "${host}"], in: .managed)
    #expect(try store.find("K", in: .managed) == "here")
  }
}
