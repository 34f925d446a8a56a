import PreferenceModel
import PropertyList
import SystemCalls
import Testing

@testable import PreferenceSchemas

@Suite("Preference interfaces") struct SettingsBundlesTests {
  /// A specifier, and what becomes of it: the rule of its key; nil if it is no key.
  static let specifiers: [(name: String, specifier: String, rule: String?)] = [
    ("slider", "Type = PSSliderSpecifier; Key = K;", "real"),
    ("text", "Type = PSTextFieldSpecifier; Key = K; DefaultValue = ada;", "string, default ada"),
    (
      "choices", "Type = PSMultiValueSpecifier; Key = K; Values = (a, b); Titles = (A, B);",
      "string, one of a, b"
    ),
    ("radio", "Type = PSRadioGroupSpecifier; Key = K; Values = (a);", "string, one of a"),
    (
      "two values", "Type = PSToggleSwitchSpecifier; Key = K; TrueValue = on; FalseValue = off;",
      "string, one of on, off"
    ),
    ("title", "Type = PSTitleValueSpecifier; Key = K; DefaultValue = 1.0;", "string, default 1.0"),
    ("group", "Type = PSGroupSpecifier; Title = T; Key = K;", nil),
    ("no key", "Type = PSToggleSwitchSpecifier;", nil), ("nothing", "", nil),
  ]

  private static func list(_ text: String) throws -> ValueDictionary {
    try #require(try Document.read(Array(text.utf8)).value.dictionary)
  }

  @Test("a specifier is a key, with its type, range and default", arguments: specifiers)
  func specifier(_ example: (name: String, specifier: String, rule: String?)) throws {
    let pane = try Self.list("{PreferenceSpecifiers = ({\(example.specifier)});}")
    let schema = try Schema(manifest: pane)
    #expect(schema.keys.first?.rule == example.rule, "\(example.name)")
    #expect(!schema.isAuthoritative && schema.problems.isEmpty)
  }

  @Test("numbers, secrets and titles of choices")
  func details() throws {
    let slider: ValueDictionary = [
      "Type": "PSSliderSpecifier", "Key": "Volume", "MinimumValue": 0, "MaximumValue": 10,
      "DefaultValue": 4,
    ]
    let secret: ValueDictionary = ["Type": "PSTextFieldSpecifier", "Key": "S", "IsSecure": true]
    let flag: ValueDictionary = [
      "Type": "PSToggleSwitchSpecifier", "Key": "F", "DefaultValue": 1, "Title": "Flag",
    ]
    let choice: ValueDictionary = [
      "Type": "PSMultiValueSpecifier", "Key": "C", "Values": [1, 2], "Titles": ["One", "Two"],
    ]
    let schema = try Schema(manifest: [
      "PreferenceSpecifiers": .array([slider, secret, flag, choice, flag].map { .dictionary($0) })
    ])
    #expect(schema.keys.map(\.name) == ["Volume", "S", "F", "C"])
    #expect(schema["Volume"]?.kind == .real && schema["Volume"]?.maximum == 10)
    #expect(schema["S"]?.isSensitive == true)
    #expect(schema["F"]?.fallback == true && schema["F"]?.title == "Flag")
    #expect(schema["C"]?.choices == [1, 2] && schema["C"]?.choiceTitles == ["One", "Two"])
    #expect(schema["C"]?.kind == .integer)
  }

  /// Child panes that lead to each other, out of the bundle, and nowhere; and texts of titles.
  @Test("child panes and texts are read in the bundle, and a file that is none counts as none")
  func bundle() throws {
    let root = "/tmp/prefsfs-bundles-\(UInt64.random(in: 0 ... .max))"
    defer { _ = try? Child.output("/bin/rm", ["-rf", root], milliseconds: 5000) }
    let child = { (file: String) in "{Type = PSChildPaneSpecifier; File = \"\(file)\";}" }
    let files = [
      "1/com.example.a.bundle/Root.plist": """
      {Title = Viewer; PreferenceSpecifiers = (\(child("Net")), \(child("../x")), \(child("none")),
        {Type = PSToggleSwitchSpecifier; Key = Smooth; Title = smooth;});}
      """,
      "1/com.example.a.bundle/Net.plist": """
      {StringsTable = Other; PreferenceSpecifiers = (\(child("Root")), \(child("Net")),
        {Type = PSTextFieldSpecifier; Key = Host; Title = host;});}
      """,
      "1/com.example.x.plist": "{PreferenceSpecifiers = ();}",
      "1/com.example.a.bundle/de.lproj/Root.strings":
        "\"smooth\" = \"Weich\"; Viewer = Betrachter;",
      "1/com.example.a.bundle/en.lproj/Root.strings": "smooth = Soft;",
      "1/com.example.a.bundle/en.lproj/Other.strings": "host = Host;",
      "0/com.example.b.bundle/Root.plist": "(a)", "0/com.example.c.bundle/Other.plist": "{}",
    ]
    for (name, text) in files {
      try Files.makeDirectories(Files.parent(of: "\(root)/\(name)"), mode: 0o700)
      try Files.replace("\(root)/\(name)", with: Array(text.utf8))
    }
    let bundles = SettingsBundles(
      ["\(root)/0", "\(root)/1", "\(root)/2"], languages: ["de", "en"])
    #expect(bundles.domains == ["com.example.a", "com.example.b"])
    let schema = try Schema(manifest: try #require(bundles.manifest(of: "com.example.a")))
    #expect(schema.keys.map(\.name) == ["Host", "Smooth"] && schema.title == "Betrachter")
    #expect(schema.keys.map(\.title) == ["Host", "Weich"])
    #expect(bundles.manifest(of: "com.example.b") == nil && !bundles.has("com.example.c"))
    #expect(!bundles.has("../1/com.example.a") && bundles.modified(of: "com.example.a") != nil)
    let machine = MachineSchemas([], bundles: ["\(root)/1"]) { _ in }
    #expect(machine.has("com.example.a") && machine.domains == ["com.example.a"])
  }
}
