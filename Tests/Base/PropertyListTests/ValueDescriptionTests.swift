import Testing

@testable import PropertyList

/// The text of values, as Apple's command prints them.
@Suite("Value description") struct ValueDescriptionTests {
  static let cases: [(name: String, value: Value, text: String)] = [
    ("a string on its own has no quotes", "a \"b\"\n", "a \"b\"\n"),
    ("an integer", 42, "42"),
    ("a real without fraction", 100.0, "100"),
    ("a real", 0.25, "0.25"),
    ("a real of single precision", .real(Double(Float(0.1))), "0.1"),
    ("a real of double precision", 0.1, "0.1"),
    ("a large real", 1e30, "1e+30"),
    ("booleans are 1 and 0", [true, false], "(\n    1,\n    0\n)"),
    ("an empty array", [], "(\n)"),
    ("an empty dictionary", [:], "{\n}"),
    ("a date in whole seconds", .date(AbsoluteTime(seconds: 0.75)), "2001-01-01 00:00:00 +0000"),
    ("a date before 2001", .date(AbsoluteTime(seconds: -0.5)), "2000-12-31 23:59:59 +0000"),
    ("empty data", .data([]), "{length = 0, bytes = 0x}"),
    (
      "24 bytes of data", .data([UInt8](0..<24)),
      "{length = 24, bytes = 0x000102030405060708090a0b0c0d0e0f1011121314151617}"
    ),
    (
      "25 bytes of data", .data([UInt8](0..<25)),
      "{length = 25, bytes = 0x00010203 04050607 08090a0b 0c0d0e0f ... 11121314 15161718 }"
    ),
    (
      "text that is not alphanumeric is quoted",
      ["12A251": "plain", "dns.domain": "a_b", "": "", "x": -1, "y": 1.5],
      """
      {
          "" = "";
          12A251 = plain;
          "dns.domain" = "a_b";
          x = "-1";
          y = "1.5";
      }
      """
    ),
    (
      "containers in containers",
      ["persistent-apps": [["GUID": 1, "tile-data": ["a": [1, [2]]]]]],
      """
      {
          "persistent-apps" =     (
                      {
                  GUID = 1;
                  "tile-data" =             {
                      a =                 (
                          1,
                                              (
                              2
                          )
                      );
                  };
              }
          );
      }
      """
    ),
    ("escapes in quotes", ["a\"b\\c\nd\te\u{1}"], "(\n    \"a\\\"b\\\\c\\nd\\te\\001\"\n)"),
    ("UTF-8 is not escaped", ["é€"], "(\n    \"é€\"\n)"),
  ]

  @Test("a value is printed as Apple's command prints it", arguments: cases)
  func text(_ name: String, _ value: Value, _ text: String) {
    #expect(ValueDescription.text(of: value, isAppleText: false) == text, "\(name)")
  }

  static let appleCases: [(value: Value, text: String)] = [
    ("à", "\\340"), ("€", "\\u20ac"), ("a\\b", "a\\\\b"), ("😀", "\\ud83d\\ude00"),
    (["à€"], "(\n    \"\\\\U00e0\\\\U20ac\"\n)"), ("plain\n\ttext", "plain\n\ttext"),
  ]

  @Test("--apple-text escapes characters as Apple's command does", arguments: appleCases)
  func appleText(_ value: Value, _ text: String) {
    #expect(ValueDescription.text(of: value, isAppleText: true) == text)
  }

  @Test("a value is printed in one line")
  func line() {
    let value: Value = ["a": [1, "b c"], "d": "x\ny"]
    #expect(ValueDescription.line(of: value, false) == "{ a = ( 1, \"b c\" ); d = \"x\\ny\"; }")
  }

  static let changes: [(old: Value?, new: Value?, lines: [String])] = [
    (nil, 1, ["(none)", "1"]), (1, 2, ["1", "2"]), (1, "1", ["1 (integer)", "1 (string)"]),
    (true, 1, ["1 (boolean)", "1 (integer)"]), (1.0, 1, ["1 (real)", "1 (integer)"]),
    (.single(0.1), .real(0.1), ["0.10000000149011612", "0.1"]),
    (["1", true], [1, true], ["[\"1\", true]", "[1, true]"]), (["a"], ["a"], ["( a )", "( a )"]),
  ]

  @Test("the lines of two values differ if they do", arguments: changes)
  func change(_ old: Value?, _ new: Value?, _ lines: [String]) {
    let found = ValueDescription.lines(from: old, to: new)
    #expect([found.old, found.new] == lines)
  }
}
