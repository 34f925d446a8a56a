import EffectiveDocuments
import PropertyList
import Testing

@Suite("Documents of values, in the formats that programs read") struct DocumentFormTests {
  private struct Case: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let values: ValueDictionary
    let form: DocumentForm
    let text: String

    init(
      _ name: String, _ values: ValueDictionary, _ form: DocumentForm = .env, _ lines: String...
    ) {
      (testDescription, self.values, self.form) = (name, values, form)
      text = lines.map { $0 + "\n" }.joined()
    }
  }

  private static let date = Value.date(AbsoluteTime(seconds: 786_007_200))

  /// A string of these bytes of UTF-8. Literals cannot have noncharacters.
  private static func text(_ bytes: [UInt8]) -> Value {
    .string(String(decoding: bytes, as: UTF8.self))
  }

  private static let variables = [
    Case("none", [:]),
    Case(
      "each type",
      [
        "S": "a b", "I": -5, "R": 1.0, "Single": .single(0.5), "T": true, "F": false, "D": date,
        "B": .data([1, 2, 3]), "U": .uid(7), "A": ["x", 1, ["y"]],
        "M": ["k": [true], "j": "q\"\n"],
        "Empty": "", "NoItems": [], "NoKeys": [:], "Inf": .real(-.infinity),
      ], .env,
      #"A="[\"x\", 1, [\"y\"]]""#, #"B="AQID""#, #"D="2025-11-28T07:20:00Z""#, #"Empty="""#,
      #"F="false""#, #"I="-5""#, #"Inf="-inf""#,
      #"M="{\"j\": \"q\\\"\\n\", \"k\": [true]}""#, #"NoItems="[]""#, #"NoKeys="{}""#,
      #"R="1.0""#, #"S="a b""#, #"Single="0.5""#, #"T="true""#, #"U="7""#),
    Case(
      "what a shell or systemd would expand",
      ["K": "$(id) ${x} `y` \\n \"z\" 'q' !x ~ *;#\t\n\\", "L": "é 日本 🎈", "M": " both "], .env,
      "K=\"\\$(id) \\${x} \\`y\\` \\\\n \\\"z\\\" 'q' !x ~ *;#\t", #"\\""#, "L=\"é 日本 🎈\"",
      "M=\" both \""),
    Case(
      "names", ["com.x-y z": 1, "4x": 2, "é": 3, "": 4, "Ünique": 5, "lower_9": 6], .env,
      "# % is left out: its name is empty",
      "# é is left out: _ is a variable of the shell or of the loader of programs",
      #"_4x="2""#, #"com_x_y_z="1""#, #"lower_9="6""#, #"_nique="5""#),
    Case(
      "names that become equal", ["a.b": 1, "a-b": 2, "a_b": "\u{1}", "c": 3], .env,
      "# a-b is left out: a_b would be the variable of several keys",
      "# a.b is left out: a_b would be the variable of several keys",
      "# a_b is left out: a_b would be the variable of several keys", #"c="3""#),
    Case(
      "a name is no shell code", ["a\nrm -r x\\": 1, "a\rrm -r x\\": 2, "back\\": 3], .env,
      "# a%0Arm -r x\\ is left out: a_rm__r_x_ would be the variable of several keys",
      "# a%0Drm -r x\\ is left out: a_rm__r_x_ would be the variable of several keys",
      #"back_="3""#),
    Case(
      "names that others need", ["PATH": "/x", "LD_PRELOAD": "x", "BASH_ENV": "x", "LDX": "x"],
      .env,
      "# BASH_ENV is left out: BASH_ENV is a variable of the shell or of the loader of programs",
      "# LD_PRELOAD is left out: LD_PRELOAD is a variable of the shell or of the loader of programs",
      "# PATH is left out: PATH is a variable of the shell or of the loader of programs",
      #"LDX="x""#),
    Case(
      "values that systemd refuses",
      [
        "A": "\u{1}", "B": "\r", "C": "\u{7F}", "D": text([0xEF, 0xBF, 0xBE]),
        "E": text([0xEF, 0xB7, 0x90]), "F": "a\0b",
        "G": ["\u{7F}"], "H": ["\u{1B}"], "I": "\u{85}",
      ], .env,
      "# A is left out: its value has characters that systemd refuses",
      "# B is left out: its value has characters that systemd refuses",
      "# C is left out: its value has characters that systemd refuses",
      "# D is left out: its value has characters that systemd refuses",
      "# E is left out: its value has characters that systemd refuses",
      "# F is left out: its value has characters that systemd refuses",
      "# G is left out: its value has characters that systemd refuses",
      #"H="[\"\\u001b\"]""#, "I=\"\u{85}\""),
  ]

  private static let groups = [
    Case("none", [:], .ini),
    Case(
      "each type",
      [
        "S": "a b", "I": -5, "R": 1.5, "T": true, "F": false, "D": date, "B": .data([1, 2, 3]),
        "A": ["x", 1, true, ["y": 1]], "E": "", "N": [], "O": [""], "z": ["M": ["k": 1], "a": [2]],
        "Empty": [:],
      ], .ini, "[General]", #"A=x;1;true;{"y": 1};"#, "B=AQID", "D=2025-11-28T07:20:00Z", "E=",
      "F=false", "I=-5", "N=", "O=;", "R=1.5", "S=a b", "T=true", "", "[Empty]", "", "[z]",
      #"M={"k": 1}"#, "a=2;"),
    Case(
      "escapes", ["A": "  a;b\\ \t\r\n ", "B": [" ", "a;b", "\\", "c d "], "C": " ", "D": "#a"],
      .ini,
      "[General]", #"A=\s a;b\\ \t\r\n\s"#, #"B=\s;a\;b;\\;c d\s;"#, #"C=\s"#, "D=#a"),
    Case(
      "only a dictionary", ["Journal": ["SystemMaxUse": "500M"]], .ini, "[Journal]",
      "SystemMaxUse=500M"),
    Case(
      "names",
      [
        "Name": 1, "Name[de]": 2, "Name[de_DE.UTF-8@x]": 3, "a b": 4, "é": 5, "Name[de": 6,
        " x": 7, "x ": 8, "": 9, "#x": 10, "a=b": 11, "x\n": 12, "[x]": 13, "x[é]": 14, "y]": 15,
        "a\tb": 16, "n\0": 17, "w [de]": 18, "v[]": 19,
      ], .ini,
      "# % is left out: no key can have that name", "#  x is left out: no key can have that name",
      "# %23x is left out: no key can have that name",
      "# Name[de is left out: no key can have that name",
      "# [x] is left out: no key can have that name",
      "# a=b is left out: no key can have that name",
      "# n%00 is left out: no key can have that name",
      "# w [de] is left out: no key can have that name",
      "# x%0A is left out: no key can have that name",
      "# x  is left out: no key can have that name",
      "# x[é] is left out: no key can have that name",
      "# y] is left out: no key can have that name", "",
      "[General]", "Name=1", "Name[de]=2", "Name[de_DE.UTF-8@x]=3", "a\tb=16", "a b=4", "v[]=19",
      "é=5"),
    Case(
      "groups' names", ["a[b]": ["k": 1], "": ["k": 1], "a\nb": [:], " g é": ["k=": 1, "k": 2]],
      .ini,
      "# % is left out: no group can have that name",
      "#  g é/k= is left out: no key can have that name",
      "# a%0Ab is left out: no group can have that name",
      "# a[b] is left out: no group can have that name", "", "[ g é]", "k=2"),
    Case(
      "a dictionary General", ["General": ["a": 1, "b": 2], "b": 3, "c": 4], .ini,
      "# General/b is left out: the group General has two keys of that name",
      "# b is left out: the group General has two keys of that name", "", "[General]", "a=1", "c=4"),
    Case(
      "Encoding", ["Encoding": "Latin-1", "x": ["Encoding": "Latin-1"]], .ini,
      "# Encoding is left out: in the first group, Encoding can only be UTF-8", "", "[General]", "",
      "[x]", "Encoding=Latin-1"),
    Case("Encoding UTF-8", ["x": ["Encoding": "utf-8"]], .ini, "[x]", "Encoding=utf-8"),
    Case(
      "values", ["a": "x\0", "b": "\u{B}x", "c": ["\u{C}"], "d": "x\u{B}", "e": ["x", "\u{C}"]],
      .ini,
      "# a is left out: no key can have that value", "# b is left out: no key can have that value",
      "# c is left out: no key can have that value", "", "[General]", "d=x\u{B}", "e=x;\u{C};"),
  ]

  private static let documents = [
    Case("JSON of none", [:], .json, "{}"),
    Case(
      "JSON",
      [
        "b": date, "a": .data([1, 2, 3]), "c": .uid(7), "d": .real(.infinity),
        "e": [1.0, "é/\u{1}"],
      ],
      .json, "{", #"  "a": "AQID","#, #"  "b": "2025-11-28T07:20:00Z","#, #"  "c": {"#,
      #"    "CF$UID": 7"#, "  },", #"  "d": "inf","#, #"  "e": ["#, "    1.0,",
      #"    "é/\u0001""#, "  ]", "}"),
    Case(
      "a property list", ["b": 1, "a": true], .plist, #"<?xml version="1.0" encoding="UTF-8"?>"#,
      #"<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "#
        + #""http://www.apple.com/DTDs/PropertyList-1.0.dtd">"#,
      #"<plist version="1.0">"#, "<dict>", "\t<key>a</key>", "\t<true/>", "\t<key>b</key>",
      "\t<integer>1</integer>", "</dict>", "</plist>"),
  ]

  @Test("a document has exactly these bytes", arguments: variables + groups + documents)
  private func bytes(_ item: Case) {
    let bytes = EffectiveDocument.bytes(of: item.values, as: item.form)
    #expect(String(decoding: bytes, as: UTF8.self) == item.text)
  }

  @Test(
    "equal values give equal bytes, in whatever order they were set",
    arguments: DocumentForm.allCases)
  func order(_ form: DocumentForm) {
    let pairs = (0..<20).map { (key: Key("k\($0)"), value: Value.integer(WideInteger(Int64($0)))) }
    let nested = { (items: [(key: Key, value: Value)]) -> ValueDictionary in
      ["d": .dictionary(ValueDictionary(items)), "a": [.dictionary(ValueDictionary(items))]]
    }
    for make in [{ ValueDictionary($0) }, nested] {
      #expect(
        EffectiveDocument.bytes(of: make(pairs), as: form)
          == EffectiveDocument.bytes(of: make(pairs.reversed()), as: form))
    }
  }

  @Test("a value is left out of variables from the size on with which no program starts")
  func longest() {
    for (count, isHeld) in [(131_072 - 3, true), (131_072 - 2, false)] {
      let values: ValueDictionary = ["K": .string(String(repeating: "x", count: count))]
      #expect(
        EffectiveDocument.bytes(of: values, as: .env).starts(with: "K=\"".utf8) == isHeld,
        "\(count)")
    }
  }

  @Test("what XML cannot hold is a binary list")
  func binary() {
    let values: ValueDictionary = ["a": "x\0"]
    let bytes = EffectiveDocument.bytes(of: values, as: .plist)
    #expect((try? Document.read(bytes).value) == .dictionary(values))
  }
}
