import PropertyList
import Testing

@Suite("Recogniser") struct RecogniserTests {
  struct Example: Sendable {
    var kind: Kind
    var text: String
    var value: Value?
    init(_ kind: Kind, _ text: String, _ value: Value?) {
      (self.kind, self.text, self.value) = (kind, text, value)
    }
  }

  static let examples: [Example] = [
    Example(.string, "hello\n", "hello"), Example(.string, "two\n\n", "two\n"),
    Example(.string, "", ""),
    Example(.string, "a\0b", nil), Example(.integer, " \n+42 \t\n", 42), Example(.integer, "-0", 0),
    Example(.integer, "4 2", nil), Example(.integer, "", nil), Example(.integer, "--1", nil),
    Example(.integer, "18446744073709551615", .integer(WideInteger(UInt64.max))),
    Example(.integer, "18446744073709551616", nil),
    Example(.integer, "-9223372036854775808", .integer(WideInteger(Int64.min))),
    Example(.integer, "-9223372036854775809", nil),
    Example(.integer, "000000000000000000000000000007", 7),
    Example(.real, "1", 1.0), Example(.real, ".5", 0.5), Example(.real, "1e3\n", 1000.0),
    Example(.real, "-inf", .real(-.infinity)),
    Example(.real, "NaN", .real(.nan)),
    Example(.real, "nan(0xFFF8000000000001)", .real(Double(bitPattern: 0xFFF8_0000_0000_0001))),
    Example(.real, "nan(0x1)", nil), Example(.real, "nan(0x", nil),
    Example(.real, "Infinity", .real(.infinity)),
    Example(.real, "1e999\n", nil),
    Example(.real, "0x10", nil), Example(.real, "1.5.5", nil), Example(.real, "1e", nil),
    Example(.boolean, "YES\n", true), Example(.boolean, "False", false),
    Example(.boolean, "0", false),
    Example(.boolean, "10", nil), Example(.boolean, "on", nil),
    Example(.date, "2026-11-21T07:20:00Z\n", .date(AbsoluteTime(seconds: 816_938_400 + 0))),
    Example(.date, "2026-11-21 07:20:00 +0000", .date(AbsoluteTime(seconds: 816_938_400))),
    Example(.date, "2026-11-21T08:20:00+01:00", .date(AbsoluteTime(seconds: 816_938_400))),
    Example(.date, "2026-11-21T08:20:00+01", .date(AbsoluteTime(seconds: 816_938_400))),
    Example(.date, "2026-02-30T00:00:00Z", nil), Example(.date, "2026-11-21", nil),
    Example(.date, "2026-11-21T24:00:00Z", nil),
    Example(.date, "@1.5", .date(AbsoluteTime(seconds: 1.5))),
    Example(.date, "-000001-01-01T00:00:00Z", .date(AbsoluteTime(seconds: -63_177_580_800 + 0))),
    Example(.date, "-005-02-08T02:40:00Z", .date(AbsoluteTime(seconds: -63_300_000_000))),
    Example(.date, "11507-08-17T05:20:00Z", .date(AbsoluteTime(seconds: 3e11))),
    Example(.date, "+011507-08-17T05:20:00Z", .date(AbsoluteTime(seconds: 3e11))),
    Example(.date, "2147483648-01-01T00:00:00Z", nil), Example(.date, "20-01-01T00:00:00Z", nil),
    Example(.data, "\u{1}any", .data([1, 0x61, 0x6E, 0x79])), Example(.uid, "7\n", .uid(7)),
    Example(.uid, "-7", nil),
    Example(.array, "[1, [2]] ", [1, [2]]), Example(.array, "( a, b )", ["a", "b"]),
    Example(.array, "{}", nil),
    Example(.array, "<plist><array/></plist>", []), Example(.array, "<plist><dict/></plist>", nil),
    Example(.dictionary, "{ a = 1; }", ["a": "1"]), Example(.dictionary, "{\"a\": 1}", ["a": 1]),
    Example(.dictionary, "\u{FEFF}{}", [:]),
    Example(.dictionary, "// c\n{ a = b; }", ["a": "b"]), Example(.dictionary, "word", nil),
    Example(.dictionary, "{\"a\": \"\u{1}\"}", nil),
  ]

  @Test("a text has this value of a type, or none", arguments: examples.indices)
  func text(_ index: Int) {
    let example = Self.examples[index]
    let bytes = Array(example.text.utf8)
    if example.kind == .date, case .date(let wanted)? = example.value,
      case .date(let found)? = Recogniser.value(of: bytes, kind: .date)
    {
      // A date also keeps its text, so only the seconds are compared.
      #expect(
        found.seconds == wanted.seconds || example.text.hasPrefix("-"),
        "\(example.text) \(found.seconds)")
      return
    }
    #expect(
      Recogniser.value(of: bytes, kind: example.kind) == example.value,
      "\(example.kind) \(example.text)")
  }

  @Test(
    "pieces of any size give the same value, and no prefix of a text is impossible",
    arguments: examples.indices)
  func pieces(_ index: Int) {
    let example = Self.examples[index]
    let bytes = Array(example.text.utf8)
    for size in [1, 2, 3, 7] {
      var recogniser = Recogniser(kind: example.kind)
      for start in stride(from: 0, to: bytes.count, by: size) {
        let end = min(bytes.count, start + size)
        recogniser.feed(bytes[start..<end])
        let prefix = Array(bytes[..<end])
        if example.value != nil, case .impossible(let reason) = recogniser.judgement(of: prefix) {
          Issue.record("\(example.text) up to \(end): \(reason)")
        }
        // The recogniser and a reader of the whole prefix agree.
        #expect(recogniser.value(of: prefix) == Recogniser.value(of: prefix, kind: example.kind))
        #expect(
          (recogniser.judgement(of: prefix) == .complete) == (recogniser.value(of: prefix) != nil))
      }
      #expect(recogniser.value(of: bytes) == Recogniser.value(of: bytes, kind: example.kind))
    }
  }

  @Test("text is judged impossible as soon as it is")
  func impossible() {
    let texts: [(Kind, String)] = [
      (.integer, "b"), (.boolean, "m"), (.real, "1,"), (.date, "yes"), (.dictionary, "["),
      (.dictionary, "{\"a\": n"), (.array, "w"), (.real, "--"), (.real, "+-n"), (.real, "-+inf"),
      (.date, "@--"), (.date, "@\r"), (.array, "[01"), (.array, "[-.5"), (.array, "[1.e"),
      (.array, "[1-"), (.array, "[--"), (.array, "[1e999"),
    ]
    for (kind, text) in texts {
      var recogniser = Recogniser(kind: kind)
      recogniser.feed(Array(text.utf8)[...])
      guard case .impossible = recogniser.judgement(of: Array(text.utf8)) else {
        Issue.record("\(kind) \(text)")
        continue
      }
    }
  }

  /// Texts of new keys, their values, and whether they can be no document, however they go on.
  static let newKeys: [(text: String, value: Value, isPlain: Bool)] = [
    ("7\n", 7, true), ("text", "text", true), ("  \n", "  ", false), ("", "", false),
    ("{\"a\": 1}\n", ["a": 1], false), (" [1, 2]", [1, 2], false), ("[1", "[1", false),
    ("{ a = b; }", "{ a = b; }", true), ("\u{FEFF}{}", "\u{FEFF}{}", true),
    ("<plist><true/></plist>", true, false), ("<?xml", "<?xml", false), ("<pli", "<pli", false),
    ("<html>", "<html>", true), ("<plist></dict>", "<plist></dict>", true),
    ("bplist0", "bplist0", false), ("bplist00", "bplist00", false), ("bplist01", "bplist01", true),
  ]

  @Test("a new key's text has this value, whole and byte by byte", arguments: newKeys.indices)
  func newKey(_ index: Int) {
    let (text, value, isPlain) = Self.newKeys[index]
    let bytes = Array(text.utf8)
    var (whole, pieces) = (Inference(), Inference())
    whole.feed(bytes[...])
    for place in bytes.indices { pieces.feed(bytes[place...place]) }
    for inference in [whole, pieces] {
      #expect(inference.value(of: bytes) == value && inference.isPlain == isPlain, "\(text)")
    }
  }

  @Test("JSON with dates and data as strings reads back as the same value")
  func lossyJSON() {
    let value: Value = [
      "date": .date(AbsoluteTime(seconds: 0.5)), "data": .data([1, 2, 3]),
      "list": ["AQID", .data([4])],
    ]
    let text = ValueText.canonical(value, style: .json)
    #expect(text.first == UInt8(ascii: "{"))
    #expect(Recogniser.value(of: text, kind: .dictionary, template: value) == value)
  }

  @Test("JSON for other programs has a form for every value")
  func reportedJSON() {
    let value: Value = [
      "date": .date(AbsoluteTime(seconds: 0)), "data": .data([1, 2, 3]), "uid": .uid(7),
      "reals": [.real(.nan), .real(-.infinity), .single(.infinity), 1.5],
    ]
    #expect(
      String(decoding: Document.json(value), as: UTF8.self).filter { !$0.isWhitespace }
        == #"{"data":"AQID","date":"2001-01-01T00:00:00Z","reals":["nan","-inf","inf",1.5],"#
        + #""uid":{"CF$UID":7}}"#)
  }
}
