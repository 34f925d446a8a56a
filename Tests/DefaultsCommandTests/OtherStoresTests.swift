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
      ("nothing", nil),
    ] as [(String, Value?)])
  func variants(_ text: String, _ value: Value?) throws {
    #expect(try VariantText.value(of: text) == value)
  }

  @Test(
    "what is no GVariant is refused, and nothing traps",
    arguments: ["", "'", "[1", "{'a' 1}", "<1", "word", "1 2", "\"\\", "'\\u12'", "("]
      + [String(repeating: "[", count: 10_000)])
  func refused(_ text: String) {
    #expect(throws: Malformed.self) { try VariantText.value(of: text) }
  }

  @Test("dconf's directories, schemas of GSettings, and groups of KDE become domains")
  func documents() {
    let dconf = OtherStores.dconf(
      """
      [/]
      top=1

      [org/gnome/desktop]
      clock='24h'
      bad=word
      none=@ms nothing
      """)
    #expect(dconf.domains == ["dconf": ["top": 1], "org.gnome.desktop": ["clock": "24h"]])
    #expect(
      dconf.rest == [
        "org.gnome.desktop bad: word is no value", "org.gnome.desktop none: it has no value",
      ])
    let settings = OtherStores.gsettings("org.a key 'x y'\norg.a other [1, 2]\n")
    #expect(settings.domains == ["org.a": ["key": "x y", "other": [1, 2]]])
    let kde = OtherStores.kconfig(
      """
      Top=1
      [General]
      # a comment
      Name=\\sa\\tb
      Name[de]=anders
      Fixed[$i]=true
      [Containments][1][General]
      size=007
      """, domain: "kwinrc")
    let general: Value = ["Name": " a\tb", "Fixed": true]
    let nested: Value = ["1": ["General": ["size": "007"]]]
    #expect(
      kde.domains == ["kwinrc": ["Top": 1, "General": general, "Containments": nested]])
    #expect(kde.rest == ["kwinrc Name[de]: it is for a language"])
  }
}
