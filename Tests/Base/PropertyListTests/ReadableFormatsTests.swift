import Foundation
import PropertyList
import Testing

@Suite("Binary lists with values that cannot be read") struct ReadableBinaryTests {
  /// The objects of a list with the keys `good` and `odd`, whose values are objects 2 and 4.
  private static func objects(_ odd: [UInt8], _ more: [[UInt8]]) -> [[UInt8]] {
    let keys = ["good", "odd"].map { [0x50 | UInt8($0.utf8.count)] + Array($0.utf8) }
    return [[0xD2, 1, 3, 2, 4], keys[0], [0x10, 1], keys[1], odd] + more
  }

  /// The value of `odd`, objects that it refers to, from 5 on, and what must be in a list that is
  /// written anew; nil if the list cannot be written, because the object is cut off.
  private static let odd: [(name: String, object: [UInt8], more: [[UInt8]], kept: [UInt8]?)] = [
    ("null", [0x00], [], [0x00]), ("fill", [0x0F], [], [0x0F]),
    ("an unknown type", [0x91, 1, 2], [], [0x91, 1, 2]),
    ("a UUID", [0x0E] + Array(1...16), [], [0x0E] + Array(1...16)),
    ("a URL", [0x0C, 0x52, 0x61, 0x3A], [], [0x0C, 0x52, 0x61, 0x3A]),
    ("a set", [0xC2, 5, 2], [[0x52, 0x79, 0x79]], [0x52, 0x79, 0x79]),
    ("an array of a set", [0xA1, 5], [[0xB1, 6], [0x42, 8, 9]], [0x42, 8, 9]),
    ("a dictionary with a key that is a number", [0xD1, 2, 5], [[0x51, 0x7A]], [0x51, 0x7A]),
    ("a dictionary of null", [0xD1, 3, 5], [[0x00]], [0x00]),
    (
      "an integer beyond 64 bits", [0x14] + Array(1...16), [], [0x14] + Array(1...16)
    ),
    ("an integer of 32 bytes", [0x15] + Array(1...32), [], [0x15] + Array(1...32)),
    ("a real of 2 bytes", [0x21, 7, 7], [], [0x21, 7, 7]),
    ("a date of 4 bytes", [0x32, 7, 7, 7, 7], [], [0x32, 7, 7, 7, 7]),
    ("something else than a count", [0x5F, 0x50, 0x61], [], [0x5F, 0x50, 0x61]),
    ("an array of itself", [0xA1, 4], [], [0xA1]), ("an array of the root", [0xA1, 0], [], [0xA1]),
    ("a reference to no object", [0xA2, 2, 99], [], [0xA2]),
    ("a string that is cut off", [0x5E, 0x61], [], nil), ("data that is cut off", [0x4E], [], nil),
    ("a negative count", [0x4F, 0x13] + Array(repeating: 0xFF, count: 8), [], nil),
    ("a UID beyond 64 bits", [0x8F] + Array(1...16), [], [0x8F] + Array(1...16)),
  ]

  @Test("such a value hides its key alone, and stays when the list is written", arguments: odd)
  func hidden(_ name: String, _ object: [UInt8], _ more: [[UInt8]], _ kept: [UInt8]?) throws {
    var bytes = binaryList(Self.objects(object, more))
    #expect(throws: FormatError.self) { try Document.read(bytes) }
    let list = try #require(ReadableList(bytes))
    #expect(list.values == ["good": 1] && list.hidden.keys.sorted() == ["odd"])
    // Written several times, and with more than 256 objects, it stays hidden, and stays itself.
    let many = (0..<300).map { (Key("n\($0)"), Value.string("value \($0)")) }
    for values: ValueDictionary in [[:], ["good": 2], ValueDictionary(many), ["new": ["é", 1.5]]] {
      let format: Format
      (bytes, format) = try #require(ReadableList(bytes)?.writing(values))
      let again = try #require(ReadableList(bytes))
      #expect(again.values == values && again.hidden.keys.sorted() == ["odd"])
      #expect(format == .binary && kept.map { Data(bytes).range(of: Data($0)) != nil } != false)
      #expect(Data(bytes).range(of: Data("good".utf8)) == nil || values["good"] != nil)
    }
    #expect(ReadableList(bytes)?.writing(["odd": 1]) == nil)
  }

  @Test("an object outside of the list hides its key, and stays outside of a larger one")
  func outside() throws {
    for offset: UInt8 in [0, 7, 40, 255] {
      var bytes = binaryList(Self.objects([0x09], []))
      bytes[bytes.count - 33] = offset
      for values: ValueDictionary in [
        ["good": 1], ["text": .string(String(repeating: "a", count: 999))],
      ] {
        let list = try #require(ReadableList(bytes))
        #expect(list.hidden.keys.sorted() == ["odd"])
        bytes = try #require(list.writing(values)).bytes
        #expect(ReadableList(bytes)?.values == values)
      }
    }
  }

  @Test("a key that is no string is hidden under a name in parentheses, with its value")
  func keys() throws {
    for key: [UInt8] in [[0x10, 5], [0x41, 0x78], [0x00], [0x5E, 0x61]] {
      let bytes = binaryList([[0xD2, 1, 3, 2, 4], [0x51, 0x61], [0x10, 1], key, [0x51, 0x7A]])
      let list = try #require(ReadableList(bytes))
      #expect(list.values == ["a": 1] && list.hidden.keys.sorted() == ["(key 2)"])
      let written = try #require(list.writing([:])).bytes
      #expect(ReadableList(written)?.hidden.count == 1)
      #expect(Data(written).range(of: Data([0x51, 0x7A])) != nil)
    }
  }

  @Test("of a key that occurs twice, the first value counts")
  func twice() throws {
    let key: [UInt8] = [0x51, 0x61]
    let first = try #require(ReadableList(binaryList([[0xD2, 1, 1, 3, 2], key, [0x10, 1], [0]])))
    #expect(first.values == [:] && first.hidden.keys.sorted() == ["a"])
    let second = try #require(
      ReadableList(binaryList([[0xD2, 1, 1, 2, 3], key, [0x10, 1], [0]])))
    #expect(second.values == ["a": 1] && second.hidden.isEmpty)
  }

  @Test("a value inside of several keys hides each of them, for the same reason")
  func shared() throws {
    let list = try #require(
      ReadableList(
        binaryList([
          [0xD3, 1, 2, 3, 4, 5, 7], [0x51, 0x61], [0x51, 0x62], [0x51, 0x63], [0xA2, 7, 6],
          [0xA1, 4], [0x00], [0xA1, 3],
        ])))
    #expect(list.values == ["c": ["c"]] && list.hidden.keys.sorted() == ["a", "b"])
    #expect(list.hidden.values.allSatisfy { $0.contains("unknown object type 0x0") })
  }

  @Test("lists of which nothing is certain, and those whose objects overlap, are not read")
  func refused() {
    #expect(ReadableList(binaryList([[0xA1, 1], [0x00]])) == nil)
    #expect(ReadableList(binaryList([[0xD9, 1, 2], [0x51, 0x61], [0x00]])) == nil)
    #expect(ReadableList(Array("bplist00".utf8)) == nil)
    // Many numbers of one array, each of which has many references.
    var bytes = binaryList(
      [[0xD1, 1, 2], [0x51, 0x61], [0xAF, 0x10, 60] + Array(3..<63)]
        + Array(repeating: [], count: 59) + [[0xAF, 0x10, 60] + Array(0..<60)])
    #expect(ReadableList(bytes) == nil)
    bytes.removeLast()
    #expect(ReadableList(bytes) == nil)
  }
}

@Suite("Texts with values that cannot be read") struct ReadableTextTests {
  private static func openStep(_ odd: String) -> String {
    "// list\n{ /* { */ good = 1; odd = \(odd);\n z = \"2;{\"; w; }\n"
  }
  private static func json(_ odd: String) -> String {
    "{\"good\": 1, \"odd\": \(odd),\n\"z\": {\"a\": [1, \"},]\"]}}\n"
  }

  @Test(
    "such an old-style value hides its key alone, and stays in an element when the list becomes XML",
    arguments: [
      "<0g>", "<012>", "<0123", "<*Dxx>", "<*I>", "a b", "a*b", "+5", "é", "[1]", "( a b )",
      "{ x = <0g>; }", "{ x = 1 }", "=", "a//b c", "(a[b]]>c)", "/* c */ a b // d\n", "",
    ])
  func openStep(_ odd: String) throws {
    let text = Self.openStep(odd)
    #expect(throws: FormatError.self) { try Document.read(Array(text.utf8)) }
    let list = try #require(ReadableList(Array(text.utf8)))
    #expect(list.format == .openStep && list.hidden.keys.sorted() == ["odd"])
    #expect(list.values == ["good": "1", "z": "2;{", "w": "w"])
    let (bytes, format) = try #require(list.writing(["good": 5]))
    let again = try #require(ReadableList(bytes))
    #expect(format == .xml && again.values == ["good": 5] && again.hidden.keys.sorted() == ["odd"])
    let kept = odd.trimmingCharacters(in: .whitespacesAndNewlines)
      .replacingOccurrences(of: "]]>", with: "]]]]><![CDATA[>")
    let written = String(decoding: bytes, as: UTF8.self)
    #expect(written.contains("<old-style><![CDATA[\(kept)]]></old-style>"))
    #expect(again.writing(["good": 5, "odd": 1]) == nil)
  }

  @Test(
    "such a JSON value hides its key alone, and stays as it is in JSON",
    arguments: [
      "null", "NaN", "-Infinity", "1e999", "123456789012345678901", "01", ".5", "True", "undefined",
      "\"\\ud800\"", "\"\\x\"", "\"a\tb\"", "[1, null]", "{\"x\": null}", "[1,]", "1 2", "",
    ])
  func json(_ odd: String) throws {
    let text = Self.json(odd)
    let list = try #require(ReadableList(Array(text.utf8)))
    #expect(list.format == .json && list.hidden.keys.sorted() == ["odd"])
    #expect(list.values == ["good": 1, "z": ["a": [1, "},]"]]])
    for values: ValueDictionary in [[:], ["good": 2, "n": ["a"]]] {
      let (bytes, format) = try #require(list.writing(values))
      #expect(format == .json && ReadableList(bytes)?.values == values)
      #expect(String(decoding: bytes, as: UTF8.self).contains("\"odd\": \(odd)\n"))
    }
    // JSON holds no data.
    let (bytes, format) = try #require(list.writing(["data": .data([1])]))
    #expect(format == .xml && ReadableList(bytes)?.values == ["data": .data([1])])
    #expect(ReadableList(bytes)?.hidden.keys.sorted() == ["odd"])
  }

  @Test("bytes that are not UTF-8 hide their key, and stay as they are")
  func bytes() throws {
    for (text, key) in [("{ good = 1; odd = \"", "\"; }"), ("{\"good\": 1, \"odd\": \"", "\"}")] {
      let list = try #require(ReadableList(Array(text.utf8) + [0xE9] + Array(key.utf8)))
      #expect(list.values.count == 1 && list.hidden.keys.sorted() == ["odd"])
      #expect(try #require(list.writing([:])).bytes.contains(0xE9))
    }
  }

  @Test("the reason says the line")
  func line() {
    let text = "// 1\n// 2\ngood = 1; odd =\n<0g>;\n"
    #expect(
      ReadableList(Array(text.utf8))?.hidden
        == ["odd": "line 4: expected hexadecimal digits or '>'"])
  }

  @Test(
    "a text of which no part is certain is not read",
    arguments: [
      "{ a = <0g>; b = c }", "{ a = <0g>;", "{ a = <0g>; } b", "a = <0g>; b", "{ a = \"b; c = d; }",
      "{ a = (b}; }", "{ a = <0g>;; }", "{ a b = <0g>; }", "{ (a) = 1; }", "{ a = b /* ; }",
      "( <0g> )",
      "{\"a\": null", "{\"a\": null,}", "{\"a\": null} x", "{a: null}", "{\"a\"}", "{\"a\": [null}",
      "{\"a\": \"b}", "[null]", "null",
    ])
  func unreadable(_ text: String) {
    #expect(ReadableList(Array(text.utf8)) == nil)
  }
}
