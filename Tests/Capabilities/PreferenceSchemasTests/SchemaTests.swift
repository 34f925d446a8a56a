import PreferenceModel
import PreferenceSchemaForms
import PropertyList
import Testing

@testable import PreferenceSchemas

@Suite("Schemas") struct SchemaTests {
  static func schema(_ keys: Value..., others: ValueDictionary = [:]) throws -> Schema {
    var root = others
    root["pfm_subkeys"] = .array(keys)
    return try Schema(manifest: root)
  }

  static let keys: [(String, Value)] = [
    ("range", ["pfm_name": "K", "pfm_type": "integer", "pfm_range_min": 10, "pfm_range_max": 20]),
    ("real", ["pfm_name": "K", "pfm_type": "float", "pfm_range_max": 1.5]),
    ("wide", ["pfm_name": "K", "pfm_type": "integer", "pfm_range_min": 0]),
    ("list", ["pfm_name": "K", "pfm_type": "string", "pfm_range_list": ["a", "b"]]),
    ("numbers", ["pfm_name": "K", "pfm_type": "integer", "pfm_range_list": [1, 2.0]]),
    (
      "custom",
      [
        "pfm_name": "K", "pfm_type": "string", "pfm_range_list": ["a"],
        "pfm_range_list_allow_custom_value": true,
      ]
    ),
    ("pattern", ["pfm_name": "K", "pfm_type": "string", "pfm_format": "^#[0-9a-f]{6}$"]),
    ("look-around", ["pfm_name": "K", "pfm_type": "string", "pfm_format": "^(?!y)"]),
    (
      "array",
      [
        "pfm_name": "K", "pfm_type": "array",
        "pfm_subkeys": [["pfm_type": "string", "pfm_range_list": ["a", "b"]]],
      ]
    ),
    (
      "either",
      [
        "pfm_name": "K", "pfm_type": "array",
        "pfm_subkeys": [["pfm_type": "string"], ["pfm_type": "integer"]],
      ]
    ),
    (
      "dictionary",
      [
        "pfm_name": "K", "pfm_type": "dictionary",
        "pfm_subkeys": [["pfm_name": "Width", "pfm_type": "integer", "pfm_range_max": 5]],
      ]
    ),
    (
      "any key",
      [
        "pfm_name": "K", "pfm_type": "dictionary",
        "pfm_subkeys": [
          ["pfm_name": "{{key}}", "pfm_type": "string"],
          ["pfm_name": "{{value}}", "pfm_type": "boolean"],
        ],
      ]
    ),
    ("untyped", ["pfm_name": "K"]),
    (
      "date",
      ["pfm_name": "K", "pfm_type": "date", "pfm_range_min": .date(AbsoluteTime(seconds: 5))]
    ),
  ]

  @Test(
    "what does not fit is said",
    arguments: [
      ("range", 10, nil), ("range", 20, nil), ("range", 9, "9 is less than 10"),
      ("range", 21, "21 is more than 20"), ("range", "10", #""10" is not an integer"#),
      ("range", true, "true is not an integer"), ("range", 15.0, "15.0 is not an integer"),
      ("real", 1, nil), ("real", 1.5, nil), ("real", 2, "2 is more than 1.5"),
      ("real", .real(.nan), nil), ("wide", .integer(WideInteger(UInt64.max)), nil),
      ("wide", -1, "-1 is less than 0"), ("list", "a", nil),
      ("list", "A", #""A" is not one of "a", "b""#),
      ("numbers", 2, nil), ("numbers", 3, "3 is not one of 1, 2.0"), ("custom", "x", nil),
      ("pattern", "#00ff00", nil), ("pattern", "red", #""red" does not match ^#[0-9a-f]{6}$"#),
      ("look-around", "x", nil),
      ("look-around", "y", #""y" does not match ^(?!y)"#), ("array", ["a", "b"], nil),
      ("array", [], nil),
      ("array", ["a", "c"], #"1: "c" is not one of "a", "b""#),
      ("either", ["a", 1], nil), ("either", [true], "0: true is not a string"),
      ("dictionary", ["Width": 5, "Other": "x"], nil),
      ("dictionary", ["Width": 6], "Width: 6 is more than 5"),
      ("any key", ["a": true], nil), ("any key", ["a": 1], "a: 1 is not a boolean"),
      ("untyped", 1, nil), ("untyped", ["a"], nil),
      (
        "date", .date(AbsoluteTime(seconds: 4)),
        "2001-01-01T00:00:04Z is less than 2001-01-01T00:00:05Z"
      ),
    ] as [(String, Value, String?)])
  func objections(_ name: String, _ value: Value, _ objection: String?) throws {
    let key = try #require(Self.keys.first { $0.0 == name }).1
    let plain = try Self.schema(key)
    #expect(plain["K"]?.objection(to: value) == objection)
    #expect(plain.refusal(of: value, for: "K") == nil)
    let deciding = try Self.schema(key, others: ["prefs_authoritative": true])
    #expect(deciding.refusal(of: value, for: "K") == objection)
    #expect(deciding.refusal(of: value, for: "Other") == nil)
  }

  @Test("only an authoritative schema gives defaults")
  func defaults() throws {
    let key: Value = ["pfm_name": "K", "pfm_type": "integer", "pfm_default": 4]
    #expect(try Self.schema(key).fallback(of: "K") == nil)
    let deciding = try Self.schema(key, others: ["prefs_authoritative": true])
    #expect(deciding.fallback(of: "K") == 4 && deciding.fallback(of: "L") == nil)
  }

  @Test("a number is the default, however it is stored")
  func sameDefault() throws {
    let key: Value = ["pfm_name": "K", "pfm_type": "real", "pfm_default": 1]
    let known = try #require(try Self.schema(key)["K"])
    #expect(known.isDefault(1) && known.isDefault(.real(1)) && known.isDefault(.single(1)))
    #expect(!known.isDefault(.real(1.5)) && !known.isDefault("1"))
    #expect(!SchemaKey("L").isDefault(1))
    let tenth: Value = ["pfm_name": "K", "pfm_type": "real", "pfm_default": 0.1]
    #expect(try #require(try Self.schema(tenth)["K"]).isDefault(.single(0.1)))
    let large: Value = [
      "pfm_name": "K", "pfm_type": "integer", "pfm_default": 9_007_199_254_740_992,
    ]
    let integer = try #require(try Self.schema(large)["K"])
    #expect(integer.isDefault(9_007_199_254_740_992) && !integer.isDefault(9_007_199_254_740_993))
  }

  @Test(
    "what is no schema, and what is wrong in one",
    arguments: [
      ([:], "it is no preference manifest: it has no array pfm_subkeys"),
      (
        ["pfm_subkeys": [], "pfm_format_version": 2],
        "it is of a later format (pfm_format_version), which is not known here"
      ),
    ] as [(ValueDictionary, String)])
  func refused(_ root: ValueDictionary, _ reason: String) {
    #expect(throws: SchemaError(reason)) { try Schema(manifest: root) }
  }

  @Test("a part that is wrong is left out, and named")
  func problems() throws {
    let schema = try Self.schema(
      "x", ["pfm_type": "string"], ["pfm_name": "K", "pfm_type": "strnig"],
      ["pfm_name": "K"], ["pfm_name": "P", "pfm_format": "("],
      ["pfm_name": "Q", "pfm_format": "[a&&b]"],
      ["pfm_name": "R", "pfm_type": "integer", "pfm_range_min": "1", "pfm_default": "x"])
    #expect(schema.keys.map(\.name) == ["K", "P", "Q", "R"])
    #expect(
      schema.problems == [
        "pfm_subkeys has something that is not a dictionary", "a key has no pfm_name",
        "K: the type strnig is not known", "P: pfm_format is not a regular expression",
        "Q: pfm_format is ignored, because it is too large or has &&",
        "R: pfm_range_min is not a number", #"R: its default does not fit: "x" is not an integer"#,
        "K is there twice; the first one counts",
      ])
  }

  @Test("keys of payloads are none of the program's, except as members")
  func payloads() throws {
    let uuid: Value = [
      "pfm_name": "PayloadUUID", "pfm_type": "string", "pfm_format": "^[0-9A-F-]{36}$",
      "pfm_default": "",
    ]
    let schema = try Self.schema(
      uuid, ["pfm_name": "PFC_SegmentedControl_0"], ["pfm_name": "PayloadLimit"],
      ["pfm_name": "K", "pfm_type": "dictionary", "pfm_subkeys": [["pfm_name": "PayloadType"]]])
    #expect(schema.keys.map(\.name) == ["PayloadLimit", "K"] && schema.problems.isEmpty)
    #expect(schema["K"]?.members.map(\.name) == ["PayloadType"])
  }

  @Test("strings of a text without types are values of the schema's types, where they can be")
  func types() throws {
    let schema = try Self.schema(
      ["pfm_name": "I", "pfm_type": "integer"],
      ["pfm_name": "B", "pfm_type": "boolean"], ["pfm_name": "S", "pfm_type": "string"],
      ["pfm_name": "A", "pfm_type": "array", "pfm_subkeys": [["pfm_type": "real"]]],
      [
        "pfm_name": "D", "pfm_type": "dictionary",
        "pfm_subkeys": [
          ["pfm_name": "M", "pfm_type": "integer"],
          ["pfm_name": "{{value}}", "pfm_type": "boolean"],
        ],
      ])
    let written: ValueDictionary = [
      "I": "5", "B": "1", "S": "5", "A": ["1.5", "x"], "D": ["M": "7", "Any": "no"],
      "Other": "8",
    ]
    let typed: ValueDictionary = [
      "I": 5, "B": true, "S": "5", "A": [1.5, "x"], "D": ["M": 7, "Any": false],
      "Other": "8",
    ]
    #expect(schema.typed(written) == typed)
    #expect(schema.typed(["I": "five", "B": 1]) == ["I": "five", "B": 1])
  }

  @Test("a pattern that takes long refuses the texts for which it does, and lint names it")
  func costly() throws {
    let schema = try Self.schema(
      ["pfm_name": "K", "pfm_type": "string", "pfm_format": "^(\\w+\\s?)*$"],
      [
        "pfm_name": "D", "pfm_type": "dictionary",
        "pfm_subkeys": [["pfm_name": "M", "pfm_type": "string", "pfm_format": "^(a+)+$"]],
      ], ["pfm_name": "L", "pfm_type": "string", "pfm_format": "^[a-z]+$"])
    #expect(
      schema.complaints == [
        "K: pfm_format takes too long for some texts, which are refused",
        "D.M: pfm_format takes too long for some texts, which are refused",
      ])
    let key = try #require(schema["K"])
    #expect(key.objection(to: "two words") == nil)
    let long = Value.string(String(repeating: "a", count: 60) + "!")
    #expect(
      key.objection(to: long, quotes: false)
        == #"the value takes too long to be searched for ^(\w+\s?)*$"#)
  }

  @Test("a description keeps its lines in whatever is made of a schema")
  func lines() throws {
    let schema = try Self.schema(
      [
        "pfm_name": "K", "pfm_type": "string",
        "pfm_description": "First\tline.\r\n\n- Second\u{1B} line.",
      ], others: ["pfm_title": "A\nB", "pfm_description": "One.\nTwo."])
    let key = try #require(schema["K"])
    #expect(schema.about == "    One.\n    Two.\n")
    #expect(key.caption == "First line. - Second\\u{1B} line.")
    #expect(
      key.text(present: nil) == "K: string\n    First line.\n    - Second\\u{1B} line.\n")
    let page = schema.markdown(of: "d")
    #expect(page.hasPrefix("# A B\n\nOne.\nTwo.\n"))
    #expect(page.hasSuffix("string\n\nFirst line.\n\n\\- Second\\\\u{1B} line.\n"))
    let source = schema.swift(of: "d")
    #expect(source.contains("The keys of A B.\n"))
    #expect(source.contains("  /// First line.\n  /// - Second\\u{1B} line.\n"))
    guard case .dictionary(let root) = schema.jsonSchema(of: "d"),
      case .dictionary(let properties)? = root["properties"],
      case .dictionary(let entry)? = properties["K"]
    else {
      Issue.record("there is no member K")
      return
    }
    #expect(entry["description"] == "First line.\n\n- Second\\u{1B} line.")
  }

  @Test("a schema that is nested without end traps nothing")
  func deep() throws {
    var key: Value = ["pfm_name": "K", "pfm_type": "dictionary"]
    for _ in 0..<400 { key = ["pfm_name": "K", "pfm_type": "dictionary", "pfm_subkeys": [key]] }
    let schema = try Self.schema(key)
    #expect(schema.problems.count == 1)
  }

  @Test(
    "the name that was meant",
    arguments: [
      ("TabWidht", "TabWidth"), ("tabwidth", "TabWidth"), ("TabWith", "TabWidth"),
      ("Them", "Theme"),
      ("Wrap", nil), ("X", nil), ("Fnot", "Font"), ("TabSize", nil),
    ] as [(String, String?)])
  func near(_ name: String, _ meant: String?) {
    #expect(NearName.find(name, among: ["Font", "TabWidth", "Theme", "Indent"]) == meant)
  }
}
