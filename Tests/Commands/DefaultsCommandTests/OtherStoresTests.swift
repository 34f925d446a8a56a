import PreferenceSchemas
import PropertyList
import Testing

@testable import DefaultsCommand

@Suite("Preferences of other systems") struct OtherStoresTests {
  @Test(
    "the text of a GVariant is this value",
    arguments: [
      ("true", true), ("5", 5), ("-7", -7), ("uint32 5", 5), ("byte 0x1f", 31), ("int64 -1", -1),
      ("uint64 18446744073709551615", .integer(WideInteger(UInt64.max))), ("1.5", .real(1.5)),
      ("uint64 0xffffffffffffffff", .integer(WideInteger(UInt64.max))), ("-0x1f", -31),
      ("double 2", 2), ("'a b'", "a b"), ("\"it's\"", "it's"), (#"'\'\n\u00e9'"#, "'\né"),
      ("objectpath '/a'", "/a"), ("[1, 2]", [1, 2]), ("@as []", []), ("('a', 1)", ["a", 1]),
      ("[byte 0x01, 0x02]", .data([1, 2])), ("@ay []", .data([])), ("b'ab'", .data([97, 98, 0])),
      ("{'a': <1>, 'b': <'x'>}", ["a": 1, "b": "x"]), ("{1: 'a'}", [[1, "a"]]), ("@a{sv} {}", [:]),
      ("just 'x'", "x"), ("[('xkb', 'us'), ('xkb', 'de')]", [["xkb", "us"], ["xkb", "de"]]),
      ("nothing", nil), (#"b'\303\251\\\n'"#, .data([0xC3, 0xA9, 0x5C, 0x0A, 0])),
    ] as [(String, Value?)])
  func variants(_ text: String, _ value: Value?) throws {
    #expect(try VariantText.value(of: text) == value)
  }

  @Test(
    "the text of a GVariant is kept like this, and written as the same value again",
    arguments: [
      ("true", "b", true), ("uint32 5", "u", 5), ("'14'", "s", "14"), ("1.5", "d", .real(1.5)),
      ("<uint32 5>", "v", "<uint32 5>"), ("@mi 3", "mi", "@mi 3"), ("inf", "d", "inf"),
      ("@as []", "as", []), ("[byte 0x01, 0x02]", "ay", [1, 2]), ("@ay []", "ay", []),
      (#"b'\303'"#, "ay", [195, 0]), ("('a', 1)", "(si)", ["a", 1]),
      ("@ms nothing", "ms", "@ms nothing"),
      ("{'a': <1>, 'b': <'x'>}", "a{sv}", ["a": "<1>", "b": "<'x'>"]), ("@a{sv} {}", "a{sv}", [:]),
      ("{uint32 1: 'a'}", "a{us}", "{uint32 1: 'a'}"), ("@a{us} {}", "a{us}", "@a{us} {}"),
      ("[{'a': <[<1>, <2>]>}]", "aa{sv}", [["a": "<[<1>, <2>]>"]]), ("handle 5", "h", "handle 5"),
      ("[@mi 3, nothing]", "ami", "[@mi 3, nothing]"), ("'\u{301}a'", "s", "\u{301}a"),
      ("[1.0, -inf]", "ad", [.real(1), "-inf"]),
    ] as [(String, String, Value)])
  func kept(_ text: String, _ type: String, _ value: Value) throws {
    #expect(try VariantText.kept(text) == value)
    let written = try #require(VariantWriter.text(of: value, as: type))
    #expect(try VariantText.kept(written) == value || written.hasSuffix(text), "\(written)")
  }

  @Test(
    "what is no GVariant is refused, and nothing traps",
    arguments: ["", "'", "[1", "{'a' 1}", "<1", "word", "1 2", "\"\\", "'\\u12'", "("]
      + ["[", "{", "<", "@i "].map { String(repeating: $0, count: 10_000) })
  func refused(_ text: String) {
    #expect(throws: Malformed.self) { try VariantText.value(of: text) }
  }

  @Test(
    "a value is this text of a GVariant of the type",
    arguments: [
      (true, "b", "true"), ("Yes", "b", "true"), (1, "b", "true"), (2, "b", nil),
      (5, "i", "5"), (5, "u", "uint32 5"), (-1, "u", nil), (300, "y", nil), (7, "y", "byte 7"),
      (2, "d", "2.0"), (.real(.infinity), "d", "inf"), ("inf", "d", "inf"), (14, "s", "'14'"),
      ("it's\n\\\u{1}é", "s", #"'it\'s\n\\\u0001é'"#), ("a\0", "s", nil), ([1], "s", nil),
      ("/a/b", "o", "objectpath '/a/b'"), ("a", "o", nil), ("a{sv}", "g", "signature 'a{sv}'"),
      (["a"], "as", "@as ['a']"), ([], "as", "@as []"), ("['a']", "as", "@as ['a']"),
      ([["a", "b"]], "a(ss)", "@a(ss) [('a', 'b')]"), (["a", 1], "(si)", "@(si) ('a', 1)"),
      (["a"], "(si)", nil), ("['a']", "(si)", nil), (["a"], "(s)", "@(s) ('a',)"),
      ([1, 255], "ay", "@ay [1, 255]"), (.data([1, 255]), "ay", "@ay [1, 255]"),
      ([256], "ay", nil), ("@mi 3", "mi", "@mi @mi 3"), ("nothing", "mi", "@mi nothing"),
      (["k": "<uint32 5>"], "a{sv}", "@a{sv} {'k': <uint32 5>}"), ("<5>", "v", "<5>"),
      (["k": 5, "l": ["x"]], "a{sv}", "@a{sv} {'k': <5>, 'l': <@as ['x']>}"),
      ("{1: 'a'}", "a{us}", "@a{us} {1: 'a'}"), ("{1: 2}", "a{us}", nil), ("x", "i", nil),
      ("x", nil, "'x'"), (3_000_000_000, nil, "int64 3000000000"),
      (["a", 1], nil, "@av [<'a'>, <1>]"),
      ([1, 3_000_000_000], nil, "@ax [1, 3000000000]"), (["<5>"], nil, "@av [<5>]"),
      (.data([1]), nil, "@ay [1]"), (["k": "<5>"], nil, "@a{sv} {'k': <5>}"), ("<5>", nil, "'<5>'"),
      ("x", "z", nil),
    ] as [(Value, String?, String?)])
  func written(_ value: Value, _ type: String?, _ text: String?) {
    #expect(VariantWriter.text(of: value, as: type) == text)
  }

  @Test(
    "a path is this domain, and the domain this path",
    arguments: [
      ("org/gnome/desktop", "org.gnome.desktop"), ("org/x/profiles:/:a", "org.x.profiles:.:a"),
      ("a.b/c%d", "a%2Eb.c%25d"), ("a%2Eb", "a%252Eb"), ("a", "a"),
    ])
  func paths(_ path: String, _ domain: String) {
    #expect(GSettingsPath.domain(of: "/\(path)/") == domain)
    #expect(GSettingsPath.path(of: domain) == path)
  }

  @Test("these domains have no path, and the root is no domain")
  func noPaths() {
    for domain in ["", "a..b", ".a", "a%2F", "a%2e", "100%"] {
      #expect(GSettingsPath.path(of: domain) == nil, "\(domain)")
    }
    #expect(GSettingsPath.domain(of: "/") == nil)
    #expect(GSettingsPath.domain(of: String(repeating: "a", count: 201)) == nil)
  }

  @Test("dconf's directories and schemas of GSettings become domains")
  func documents() {
    let dconf = OtherStores.dconf(
      """
      [/]
      top=1

      [org/gnome/desktop]
      clock='24h'
      bad=word
      none=@ms nothing

      [org/x/profiles:/:a.b]
      k={'v': <1>}
      """)
    let desktop: Value = ["clock": "24h", "none": "@ms nothing"]
    #expect(
      dconf.domains
        == ["org.gnome.desktop": desktop, "org.x.profiles:.:a%2Eb": ["k": ["v": "<1>"]]])
    #expect(
      dconf.rest == [
        "/ top: no domain can have the name of its path",
        "org.gnome.desktop bad: word is not a value",
      ])
    let settings = OtherStores.gsettings(
      "org.a key 'x y'\norg.a other [1, 2]\norg.b key 1\n", ["org.b": "b"])
    #expect(settings.domains == ["org.a": ["key": "x y", "other": [1, 2]], "b": ["key": 1]])
  }
}
