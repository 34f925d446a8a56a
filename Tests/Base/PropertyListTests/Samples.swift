import PropertyList

/// Named values for the tests of readers and writers.
enum Samples {
  /// Values that every reader and writer of binary and XML lists should keep exactly; `JudgeTests`
  /// names those that others change.
  static let portable: [(name: String, value: Value)] = [
    ("empty dictionary", [:]), ("empty array", ["a": []]), ("empty string", ["": ""]),
    ("booleans", ["t": true, "f": false]),
    (
      "integers",
      [
        "list": [
          0, 1, -1, 127, 128, 255, 256, 65535, 65536, 2_147_483_647, 4_294_967_296,
          -2_147_483_648, 9_223_372_036_854_775_807, -9_223_372_036_854_775_807,
        ]
      ]
    ),
    ("smallest integer", ["n": .integer(WideInteger(Int64.min))]),
    ("largest integer", ["n": .integer(WideInteger(UInt64.max))]),
    (
      "reals",
      ["list": [0.5, -0.25, 1.0, 1e300, .real(.leastNonzeroMagnitude), 3.141592653589793, 100.0]]
    ),
    (
      "dates",
      [
        "list": [
          .date(AbsoluteTime(seconds: 0)), .date(AbsoluteTime(seconds: 786_007_200)),
          .date(AbsoluteTime(seconds: -978_307_200)), .date(AbsoluteTime(seconds: -5_000_000_000)),
        ]
      ]
    ),
    ("data", ["empty": .data([]), "one": .data([0]), "more": .data(Array(0...255))]),
    ("text", ["a<b>&\"c'": "tab\there\nline", "ünïcødé": "日本語 🎈"]),
    ("normal forms", ["e\u{301}": "decomposed", "\u{e9}": "composed"]),
    ("nested", ["a": ["b": ["c": [["d": [1, [2, [3]]]]]]]]),
    (
      "fifteen and more",
      .dictionary(
        ValueDictionary(
          (0..<300).map {
            (
              Key("key \($0)"),
              .array([.integer(WideInteger(Int64($0))), .string(String(repeating: "x", count: $0))])
            )
          }))
    ),
    (
      "long strings that are shared, by keys too",
      [
        "a string of more than fifteen": "a string of more than fifteen",
        "another": [
          "a string of more than fifteen", ["a string of more than fifteen": "x"],
          ["a string of more than fifteen": "a string of more than fifteen"],
          ["a string of more than fifteen": [["a string of more than fifteen"]]],
        ],
        "ein Schlüssel mit Umlauten": ["ein Schlüssel mit Umlauten": "ein Schlüssel mit Umlauten"],
      ]
    ),
    ("shared strings", ["a": "same", "b": "same", "c": ["same", "same"], "same": "a"]),
  ]

  /// The portable values, and others that take the binary format and our own reader.
  static let exact: [(name: String, value: Value)] =
    portable + [
      ("UID", ["uid": .uid(7), "large": .uid(4_294_967_296)]),
      (
        "fractions of a second",
        [
          "d": .date(AbsoluteTime(seconds: 786_007_200.125)),
          "e": .date(AbsoluteTime(seconds: -0.1)),
        ]
      ),
      ("control characters", ["a\u{1}b": "c\u{7F}d\u{1F}\r\n"]),
      ("infinities", ["list": [.real(.infinity), .real(-.infinity)]]),
      ("negative zero", ["z": -0.0]),
      (
        "far dates",
        [
          "list": [
            .date(AbsoluteTime(seconds: 1e15)), .date(AbsoluteTime(seconds: .infinity)),
            .date(AbsoluteTime(seconds: 1e12)),
          ]
        ]
      ),
      ("a dictionary that looks like a UID", ["d": ["CF$UID": 1]]),
    ]

  /// The values that JSON holds.
  static let json: [(name: String, value: Value)] = portable.filter {
    $0.name != "dates" && $0.name != "data"
  }
}
