import PreferenceModel
import PreferenceSearch
import PropertyList
import StoreAccess
import SystemCalls
import Testing

@testable import PreferenceEffects

/// Rules as they are read, patterns, digests and what a command gets.
@Suite("Rules") struct EffectRuleTests {
  private static func problem(_ value: Value) -> String? {
    do throws(EffectProblem) {
      _ = try EffectRule("r", value)
      return nil
    } catch {
      return error.sentence
    }
  }

  @Test("a rule counts")
  func accepted() throws {
    let rule = try EffectRule(
      "r", ["Keys": ["d/*", "e/K"], "Run": "make", "Delay": "1", "Timeout": 2.5, "Rum": 1])
    #expect(rule.patterns.map(\.domain) == ["d", "e"])
    #expect(rule.patterns.map(\.key) == ["*", "K"])
    #expect(rule.command == ["/bin/sh", "-c", "make"] && rule.path == nil)
    #expect(rule.delay == 1 && rule.timeout == 2.5 && rule.unknown == ["Rum"])
    let file = try EffectRule(
      "r", ["Keys": "d/a*", "Write": "~/x.ini", "As": "ini", "Run": ["a", "", "b"]])
    #expect(file.path == "~/x.ini" && file.form == .ini && file.command == ["a", "", "b"])
    #expect(file.delay == 0.2 && file.timeout == 60 && file.unknown.isEmpty)
  }

  @Test(
    "a rule does not count",
    arguments: [
      ("text", "expected a dictionary, found a string"),
      (["Run": "x"], "Keys must be an array of patterns, as in com.example.editor/*"),
      (["Keys": [], "Run": "x"], "Keys must be an array of patterns, as in com.example.editor/*"),
      (["Keys": ["d"], "Run": "x"], "Keys: d is not of the form DOMAIN/KEY"),
      (["Keys": ["/K"], "Run": "x"], "Keys: /K is not of the form DOMAIN/KEY"),
      (["Keys": [1], "Run": "x"], "Keys must be an array of patterns, as in com.example.editor/*"),
      (["Keys": "d/*"], "it has neither Run nor Write"),
      (["Keys": "d/*", "Run": ""], "Run must name a program, and have no NUL"),
      (["Keys": "d/*", "Run": ["a", 1]], "Run must be a string or an array of strings"),
      (["Keys": "d/*", "Run": 1], "Run must be a string or an array of strings"),
      (["Keys": "d/*", "Run": "x", "As": "ini"], "As has no effect without Write"),
      (
        ["Keys": "d/*", "Write": "x", "As": "ini"],
        "Write must be the path of a file, absolute or beginning with ~/"
      ),
      (["Keys": "d/*", "Write": "/x"], "Write needs As, one of json, plist, env, ini"),
      (
        ["Keys": ["d/*", "e/*"], "Write": "/x", "As": "ini"],
        "with Write, all of Keys must name the same domain, without *"
      ),
      (
        ["Keys": "d*/*", "Write": "/x", "As": "ini"],
        "with Write, all of Keys must name the same domain, without *"
      ),
      (
        ["Keys": "d/*", "Run": "x", "Delay": -1],
        "Delay must be a number of seconds from 0.0 to 3600.0"
      ),
      (
        ["Keys": "d/*", "Run": "x", "Timeout": "x"],
        "Timeout must be a number of seconds from 0.1 to 86400.0"
      ),
    ] as [(Value, String)])
  func refused(_ value: Value, _ sentence: String) {
    #expect(Self.problem(value) == sentence)
  }

  @Test(
    "a pattern names keys",
    arguments: [
      ("d/*", "d", "K", true), ("d/*", "dd", "K", false), ("d/K", "d", "K", true),
      ("d/K", "d", "KK", false), ("*/K", "any", "K", true), ("org.*/a*z", "org.x", "abz", true),
      ("org.*/a*z", "org.x", "ab", false), ("d/a/b", "d", "a/b", true),
      ("NSGlobalDomain/*", "NSGlobalDomain", "K", true),
    ])
  func patterns(_ text: String, _ domain: String, _ key: String, _ matches: Bool) throws {
    let pattern = try #require(EffectPattern(text))
    #expect((pattern.matches(DomainName(domain)) && pattern.matches(Key(key))) == matches)
  }

  // MARK: - Digests

  @Test(
    "the keyed hash is SipHash-2-4-128",
    arguments: [
      (0, "a3817f04ba25a8e66df67214c7550293"), (1, "da87c1d86b99af44347659119b22fc45"),
      (9, "264499060ad9baabc47f8b02bb6d71ed"),
    ])
  func hash(_ count: UInt8, _ expected: String) throws {
    let key = try #require(Digest((0..<16).map { UInt8($0) }))
    let digest = Digest(of: (0..<count).map { $0 }, key: key)
    #expect(digest.bytes.hexadecimal == expected)
    #expect(Digest(digest.bytes) == digest)
  }

  @Test("equal values have equal digests, and others have others")
  func canonical() {
    let key = EffectState().key
    func digest(_ value: Value) -> Digest { EffectValues("r", value, [:], key: key).rule }
    let others: [Value] = [
      1, 1.0, true, "1", .single(1), .data([49]), ["1"], ["1": 1], [["1"]], .uid(1), [], [:],
      ["a": 1, "b": 2], ["a": 2, "b": 1], .date(AbsoluteTime(seconds: 1)), "",
    ]
    #expect(Set(others.map(digest)).count == others.count)
    #expect(digest(["a": 1, "b": 2]) == digest(["b": 2, "a": 1]))
  }

  private static let a = EffectKey("d", "A")
  private static let b = EffectKey("d", "B")

  @Test("what has changed is what is different since the last success")
  func changes() {
    let key = EffectState().key
    let old = EffectValues("r", ["Keys": "d/*"], [Self.a: 1, Self.b: 2], key: key)
    let same = EffectValues("r", ["Keys": "d/*"], [Self.b: 2, Self.a: 1], key: key)
    #expect(same == old && same.changes(since: old).isEmpty)
    #expect(old.changes(since: nil) == [Self.a, Self.b])
    let new = EffectValues("r", ["Keys": "d/*"], [Self.a: 3], key: key)
    #expect(new.changes(since: old) == [Self.a, Self.b])
    let other = EffectValues("r", ["Keys": "d/*", "Run": "x"], [Self.a: 1], key: key)
    #expect(other != old && other.changes(since: old) == [Self.a])
    #expect(EffectValues("s", ["Keys": "d/*"], [Self.a: 1, Self.b: 2], key: key) != old)
  }

  @Test("a command gets JSON with null for what is gone, and lines without newlines in names")
  func input() throws {
    let odd = EffectKey("d", "new\nline")
    let input = EffectInput([Self.a, Self.b, odd, EffectKey("e", "K")], [Self.a: ["x": "\n"]])
    guard
      case .dictionary(let root) = try Document.read(
        input.document,
        limits: {
          var limits = Limits.list; limits.null = "NULL"; return limits
        }()
      ).value
    else { return }
    #expect(root["d"] == ["A": ["x": "\n"], "B": "NULL", "new\nline": "NULL"])
    #expect(root["e"] == ["K": "NULL"])
    #expect(input.lines == "d A\nd B\nd new%0Aline\ne K\n")
    #expect(try Document.read(EffectInput([], [:]).document).value == [:])
  }

  @Test("in a locked domain none of the user's rules count")
  func locked() throws {
    let places = MemoryPlaces()
    let layout = StoreLayout(
      userDirectory: "/nowhere/user", systemDirectory: "/nowhere/etc",
      stateDirectory: "/nowhere/state", hostIdentifier: "H", userName: "ada")
    func set(_ place: Place, _ domain: DomainName, _ key: Key, _ value: Value) throws {
      let changeset = try places.apply(
        [.edit(Location(place, domain), .set(key, value, .unknown))], by: Author.unique())
      #expect(EffectRules.areChanged(by: changeset))
    }
    for place in [Place.host, .user, .managed, .anyUser] {
      try set(place, EffectRule.domain, Key(place.rawValue), ["Keys": "d/*", "Run": "make"])
    }
    let names = { try EffectRules.read(places, layout).entries.map(\.name) }
    #expect(try names() == ["any-user", "host", "managed", "user"])
    try set(.managed, .settings, DomainLocks.key, ["prefsfs.effects"])
    #expect(try names() == ["any-user", "managed"])
  }
}
