import PropertyList
import Testing

@testable import DefaultsCommand

/// Paths into nested values, as `--path` takes them.
@Suite("Value path") struct ValuePathTests {
  static let value: Value = ["a": [1, ["b:c": "x"]], "n": 5]

  static let reads: [(path: String, value: Value?)] = [
    ("K", value), (":K:n", 5), ("K:a:0", 1), ("K:a:1:b\\:c", "x"), ("K:a:2", nil),
    ("K:a:-1", nil), ("K:n:x", nil), ("K:no", nil),
  ]

  @Test("a path finds this value", arguments: reads)
  func find(_ path: String, _ expected: Value?) {
    let path = ValuePath(path, isPath: true)
    #expect(path.key == "K")
    #expect(path.find(in: Self.value) == expected)
  }

  static let writes: [(path: String, new: Value?, result: Value?)] = [
    ("K:n", 6, ["a": [1, ["b:c": "x"]], "n": 6]),
    ("K:a:0", nil, ["a": [["b:c": "x"]], "n": 5]),
    ("K:a:2", "end", ["a": [1, ["b:c": "x"], "end"], "n": 5]),
    ("K:new:sub", true, ["a": [1, ["b:c": "x"]], "n": 5, "new": ["sub": true]]),
    ("K:n", nil, ["a": [1, ["b:c": "x"]]]),
    ("K", nil, nil),
  ]

  @Test("a change at a path gives this value", arguments: writes)
  func change(_ path: String, _ new: Value?, _ result: Value?) throws {
    #expect(try ValuePath(path, isPath: true).changed(Self.value, to: new) == result)
  }

  @Test("a change where no value can be is refused", arguments: ["K:a:7", "K:a:x", "K:n:deep"])
  func refused(_ path: String) {
    #expect(throws: Refusal.self) {
      _ = try ValuePath(path, isPath: true).changed(Self.value, to: 1)
    }
  }

  @Test("without --path a colon is a part of the key")
  func plain() {
    let path = ValuePath("K:a:0", isPath: false)
    #expect(path.key == "K:a:0")
    #expect(path.entries.isEmpty)
  }
}
