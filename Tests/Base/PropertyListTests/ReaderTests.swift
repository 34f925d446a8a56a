import Foundation
import PropertyList
import Testing

@Suite("Readers") struct ReaderTests {
  static let accepted: [(text: String, value: Value)] = [
    (
      "{\"a\": [1, -2, 1.5, 1e3, true, false, \"\\u00e9\\ud83c\\udf88\\n\"]}",
      ["a": [1, -2, 1.5, 1000.0, true, false, "é🎈\n"]]
    ),
    ("  [ ]  ", []),
    ("<plist version=\"1.0\"><dict><key>a</key><integer>0x1F</integer></dict></plist>", ["a": 31]),
    (
      "<?xml version=\"1.0\"?><!DOCTYPE plist [<!ENTITY x \"y\">]><!-- c --><plist><array><true/><false></false><string/></array></plist>",
      [true, false, ""]
    ),
    ("<dict><key>k</key><string>a&lt;b&#x41;<![CDATA[<c>&]]>d</string></dict>", ["k": "a<bA<c>&d"]),
    (
      "<plist><array><real>nan</real><real>+infinity</real><real> 1.5 </real></array></plist>",
      [.real(.nan), .real(.infinity), 1.5]
    ),
    ("<plist><dict><key>CF$UID</key><integer>3</integer></dict></plist>", .uid(3)),
    (
      "<plist><array><data> AQ ID </data><date>2001-01-01T00:00:00Z</date></array></plist>",
      [.data([1, 2, 3]), .date(AbsoluteTime(seconds: 0))]
    ),
    (
      "<plist><dict><key>a</key><string>1</string><key>a</key><string>2</string></dict></plist>",
      ["a": "2"]
    ),
    (
      "{ a = <*I5>; b = <*R1.5>; c = <*BY>; d = <*D2001-01-01 00:00:00 +0000>; }",
      ["a": 5, "b": 1.5, "c": true, "d": .date(AbsoluteTime(seconds: 0))]
    ),
    ("<!DOCTYPE plist [ <!-- don't, [ > --> ]><plist><string>a</string></plist>", "a"),
    ("{ a = \"\\Ud83c\\Udf88\"; }", ["a": "🎈"]),
    ("<0fbd77>", .data([0x0F, 0xBD, 0x77])),
    ("\u{FEFF}{\"a\": 1}", ["a": 1]),
  ]

  @Test("a document reads as this value", arguments: accepted.indices)
  func accept(_ index: Int) throws {
    let (text, value) = Self.accepted[index]
    #expect(try Document.read(Array(text.utf8)).value == value, "\(text)")
  }

  static let rejected: [(text: String, reason: String)] = [
    ("", "ends too early"), ("{", ""), ("{\"a\": null}", ""), ("[1,]", ""),
    ("<plist><dict><key>a</key></dict></plist>", "value was expected"),
    ("<plist>", "ends too early"),
    ("<plist><integer>x</integer></plist>", "line 1"), ("<plist><foo/></plist>", "unknown element"),
    ("<plist>\n\n<dict><string/></dict></plist>", "line 3"),
    ("<plist><string>&x;</string></plist>", "entity"),
    ("<plist><string/><string/></plist>", "after the value"),
    ("<plist><date>2020-1-1T00:00:00Z</date></plist>", "date"),
    ("<?xml version=\"1.0\" encoding=\"bogus\"?><plist><string/></plist>", "encoding"),
    ("{ a = b }", "';'"), ("( a b )", "','"), ("{ a = <0>; }", "odd"),
    ("{ a = b; } c", "after the end"),
    ("{\"a\": 1,\n // note\n \"b\": 2}", "line 2: JSON has no comments"),
    ("{\"a\": 1, /* note */ \"b\": 2}", "JSON has no comments"),
    ("[1 // note\n]", "JSON has no comments"),
    ("<!DOCTYPE plist [ <!-- don't ]><plist><string/></plist>", "ends too early"),
    ("bplist00", "header"), (String(repeating: "[", count: 600), "nested deeper"),
    (String(repeating: "(", count: 600), "nested deeper"),
    (String(repeating: "<array>", count: 600), "nested deeper"),
  ]

  @Test("a document is refused, with the reason", arguments: rejected.indices)
  func reject(_ index: Int) {
    let (text, reason) = Self.rejected[index]
    do {
      let value = try Document.read(Array(text.utf8)).value
      Issue.record("\(text) was read as \(value)")
    } catch {
      #expect(reason.isEmpty || error.description.contains(reason), "\(text): \(error)")
    }
  }

  @Test(
    "such JSON is refused",
    arguments: [
      "{\"a\": 1, \"a\": 2}", "[01]", "[1.]", "[.5]", "[+1]", "[1e]", "[1e999]",
      "[18446744073709551616]",
      "[\"\\ud800\"]", "[\"\\udc00\"]", "[\"\\x\"]", "[\"a\nb\"]", "[tru]", "[1] 2", "[\"a\"",
      "{\"a\" 1}", "{1: 2}",
    ])
  func json(_ text: String) {
    #expect(
      Recogniser.value(of: Array(text.utf8), kind: text.first == "{" ? .dictionary : .array) == nil)
  }

  @Test("a number that is too large for a real is refused as that")
  func largeNumber() {
    for text in ["[1e999]", "[1, -1e400]"] {
      let error = #expect(throws: FormatError.self) { try Document.read(Array(text.utf8)) }
      #expect(error?.reason == "a number beyond the range of a real")
    }
  }

  @Test("XML in UTF-16 is read")
  func utf16() throws {
    let text = "<?xml version=\"1.0\" encoding=\"UTF-16\"?><plist><string>é🎈</string></plist>"
    for encoding in [String.Encoding.utf16, .utf16BigEndian, .utf16LittleEndian] {
      let data = try #require(text.data(using: encoding))
      #expect(try Document.read(Array(data)).value == "é🎈")
    }
  }
}

/// Makes a binary list of these objects, with one-byte offsets and references; the first object
/// is the root.
func binaryList(_ objects: [[UInt8]]) -> [UInt8] {
  var bytes = Array("bplist00".utf8)
  var offsets: [UInt8] = []
  for object in objects {
    offsets.append(UInt8(bytes.count))
    bytes += object
  }
  let table = UInt8(bytes.count)
  bytes += offsets + [0, 0, 0, 0, 0, 0, 1, 1]
  for number in [UInt8(objects.count), 0, table] { bytes += [0, 0, 0, 0, 0, 0, 0, number] }
  return bytes
}

@Suite("Odd lists that Foundation reads") struct OddListTests {
  private static let xml = "<plist><dict><key>a</key><integer>1</integer></dict></plist>"
  private static let zeros = [UInt8](repeating: 0, count: 15)
  private static func plist(_ element: String) -> [UInt8] { text("<plist>\(element)</plist>") }
  private static func date(_ seconds: Double) -> Value { .date(AbsoluteTime(seconds: seconds)) }
  private static func encoded(_ encoding: String, _ byte: UInt8) -> [UInt8] {
    text("<?xml version=\"1.0\" encoding=\"\(encoding)\"?><plist><string>") + [byte]
      + text("</string></plist>")
  }
  private static func text(_ text: String, _ encoding: String.Encoding = .utf8) -> [UInt8] {
    Array(text.data(using: encoding) ?? Data())
  }

  /// What is read of each; Foundation's parser judges those that `isJudged`.
  static let lists: [(name: String, bytes: [UInt8], value: Value, isJudged: Bool)] = [
    ("a NUL behind the list", text(xml) + [0], ["a": 1], true),
    ("blanks behind the list", text(xml + " \n\t"), ["a": 1], true),
    ("a second document", text(xml + xml), ["a": 1], true),
    ("a second element", text("<string>a</string><string>b</string>"), "a", false),
    ("blanks alone", text(" \n"), [:], true),
    ("comments alone", text("/* a */ // b"), [:], true),
    ("a key alone at the beginning", text("\"X\";\n\"Y\" = \"z\";"), ["X": "X", "Y": "z"], true),
    ("a comment that ends in CR", text("// c\r\"a\" = \"b\";"), ["a": "b"], true),
    ("UTF-32", [0xFF, 0xFE, 0, 0] + text(xml, .utf32LittleEndian), ["a": 1], false),
    ("UTF-32, big-endian", [0, 0, 0xFE, 0xFF] + text(xml, .utf32BigEndian), ["a": 1], false),
    ("UTF-16 of an old-style list", text("{ a = b; }", .utf16BigEndian), ["a": "b"], false),
    (
      "ISO-8859-1",
      text("<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><plist><string>")
        + [0xE9] + text("</string></plist>"), "é", true
    ),
    ("windows-1252", encoded("windows-1252", 0x80), "€", true),
    ("ISO-8859-15", encoded("iso-8859-15", 0xA4), "€", true),
    ("ISO-8859-2", encoded("ISO-8859-2", 0xB1), "ą", true),
    ("ISO-8859-9", encoded("iso-8859-9", 0xFD), "ı", true),
    ("windows-1251", encoded("windows-1251", 0xE9), "й", true),
    ("KOI8-R", encoded("koi8-r", 0xC1), "а", true),
    ("ASCII with another byte", encoded("us-ascii", 0xE9), "é", true),
    ("an encoding of several bytes, with ASCII", encoded("shift_jis", 0x61), "a", true),
    ("Mac OS Roman", encoded("macintosh", 0x8E), "é", false),
    ("30 February", plist("<date>2020-02-30T00:00:00Z</date>"), date(604_713_600), true),
    ("29 February", plist("<date>2021-02-29T00:00:00Z</date>"), date(636_249_600), true),
    ("a leap second", plist("<date>2016-12-31T23:59:60Z</date>"), date(504_921_600), true),
    ("24:00:00", plist("<date>2020-01-01T24:00:00Z</date>"), date(599_616_000), true),
    ("99:99:99", plist("<date>2020-01-01T99:99:99Z</date>"), date(599_892_039), true),
    ("month 13", plist("<date>2020-13-10T00:00:00Z</date>"), date(631_929_600), true),
    ("month 0", plist("<date>2020-00-10T00:00:00Z</date>"), date(600_307_200), true),
    ("a year of one digit", plist("<date>5-02-08T02:40:00Z</date>"), date(-62_984_380_800), true),
    ("0000-00-00", plist("<date>0000-00-00T00:00:00Z</date>"), date(-63_145_612_800), true),
    ("base64 without padding", plist("<data>AAE</data>"), .data([]), true),
    ("base64 with too much padding", plist("<data>AAEC=</data>"), .data([0, 1, 2]), true),
    ("base64 with padding inside", plist("<data>AA==AAEC</data>"), .data([0, 0, 1, 2]), true),
    ("base64 of padding", plist("<data>A===</data>"), .data([0]), true),
    ("base64 with other bytes", plist("<data>AA*EC</data>"), .data([0, 1, 2]), true),
    ("a blank behind a sign", plist("<integer>- 5</integer>"), -5, true),
    ("wide blanks before an integer", plist("<integer>\u{2009}5</integer>"), 5, true),
    ("a key in an array", plist("<array><key>a</key></array>"), ["a"], true),
    ("a key as a value", plist("<dict><key>a</key><key>b</key></dict>"), ["a": "b"], true),
    (
      "old-style data that begins with a blank", text("< 0123 4567 >"),
      .data([1, 0x23, 0x45, 0x67]),
      true
    ),
    ("old-style data of blanks", text("< >"), .data([]), true),
    ("\\u without digits", text("{ p = \"C:\\users\\u12\"; }"), ["p": "C:usersu12"], false),
    ("\\U without digits", text("{ p = \"C:\\Users\"; }"), ["p": "C:Users"], false),
    (
      "half of a surrogate pair in old-style text", text("{ a = \"\\Ud83c\\n\\Udf88b\"; }"),
      ["a": "\u{FFFD}\n\u{FFFD}b"], false
    ),
    ("a count of 16 bytes", binaryList([[0x4F, 0x14] + zeros + [1, 0x78]]), .data([0x78]), true),
    ("a UID of 16 bytes", binaryList([[0x8F] + zeros + [7]]), .uid(7), false),
    ("a byte that is not ASCII", binaryList([[0x52, 0x61, 0xE9]]), "aé", true),
    ("half of a surrogate pair", binaryList([[0x62, 0, 0x61, 0xD8, 0x3C]]), "a\u{FFFD}", false),
    (
      "two equal keys of a binary list",
      binaryList([[0xD2, 1, 1, 2, 3], [0x51, 0x61], [0x10, 1], [0x10, 2]]), ["a": 1], true
    ),
    (
      "equal keys of a binary list that are two objects",
      binaryList([[0xD2, 1, 4, 2, 3], [0x51, 0x61], [0x10, 1], [0x10, 2], [0x51, 0x61]]), ["a": 1],
      true
    ),
    ("two equal keys of an old-style list", text("{ a = b; a = c; }"), ["a": "c"], true),
    (
      "two equal keys of XML",
      text("<plist><dict><key>a</key><true/><key>a</key><false/></dict></plist>"), ["a": false],
      true
    ),
  ]

  @Test("such a list reads as this value", arguments: lists.indices)
  func value(_ index: Int) throws {
    let (name, bytes, value, isJudged) = Self.lists[index]
    #expect(try Document.read(bytes).value == value, "\(name)")
    guard isJudged else { return }
    let object = try PropertyListSerialization.propertyList(from: Data(bytes), format: nil)
    let judged = try PropertyListSerialization.data(
      fromPropertyList: object, format: .binary, options: 0)
    #expect(try Document.read(Array(judged)).value == value, "\(name)")
  }

  @Test("a text that is written as a value is right, ends with it, and is not blank")
  func written() {
    for text in [
      Self.xml + " x", Self.xml + Self.xml, " \n", "/* a */",
      "<dict><key>a</key><data>AAE</data></dict>", "<dict><key>a</key><key>b</key></dict>",
      "<dict><key>a</key><date>2020-02-30T00:00:00Z</date></dict>",
      "<dict><key>a</key><integer>- 5</integer></dict>", "{ a = \"\\Ud83c\"; }",
    ] {
      #expect(Recogniser.value(of: Array(text.utf8), kind: .dictionary) == nil, "\(text)")
    }
  }
}

@Suite("Encodings that are not read") struct EncodingTests {
  @Test(
    "a list in such an encoding is refused, and the error says why",
    arguments: [
      ("Shift_JIS", "the encoding Shift_JIS is not supported (use UTF-8 or UTF-16)"),
      ("GB18030", "the encoding GB18030 is not supported (use UTF-8 or UTF-16)"),
      ("UTF-16", "the encoding UTF-16 is not supported (use UTF-8 or UTF-16)"),
      ("windows-1252", "text that is not windows-1252"),
    ])
  func refused(_ encoding: String, _ reason: String) {
    let text = "<?xml version=\"1.0\" encoding=\"\(encoding)\"?><plist><string>"
    let bytes = Array(text.utf8) + [0x81, 0x40] + Array("</string></plist>".utf8)
    let error = #expect(throws: FormatError.self) { try Document.read(bytes) }
    #expect(error?.reason == reason && error?.format == .xml)
  }
}

@Suite("Hostile binary lists") struct HostileBinaryTests {
  @Test("an array that contains itself is refused") func cycle() {
    #expect(throws: FormatError.self) { try Document.read(binaryList([[0xA1, 0]])) }
    #expect(throws: FormatError.self) { try Document.read(binaryList([[0xA1, 1], [0xA1, 0]])) }
  }

  @Test("a bomb of shared arrays is refused by its unfolded size") func bomb() {
    let levels = (0..<24).map { level -> [UInt8] in
      [0xA4] + Array(repeating: UInt8(level + 1), count: 4)
    }
    #expect(throws: FormatError.self) { try Document.read(binaryList(levels + [[0x09]])) }
  }

  @Test("counts, sizes and references beyond the list are refused") func bounds() {
    for object: [UInt8] in [
      [0x5F, 0x13, 0x7F, 255, 255, 255, 255, 255, 255, 255], [0xAF, 0x12, 255, 255, 255, 255],
      [0xA1, 9],
      [0x5F, 0x10], [0x33, 0], [0x14, 1], [0x15], [0x4F, 0x09], [0xD1, 0, 0], [0x61, 0xD8],
      [0xC1, 0], [0x00],
    ] {
      #expect(throws: FormatError.self, "\(object)") { try Document.read(binaryList([object])) }
    }
    for index in 0..<32 {
      var bytes = binaryList([[0xA1, 1], [0x09]])
      bytes[bytes.count - 1 - index] = 0xFF
      _ = try? Document.read(bytes)
    }
  }

  @Test("16-byte integers of both signs are read") func wide() throws {
    let negative: [UInt8] = [0x14] + Array(repeating: 0xFF, count: 16)
    #expect(try Document.read(binaryList([negative])).value == -1)
    let large: [UInt8] = [0x14] + Array(repeating: 0, count: 8) + Array(repeating: 0xFF, count: 8)
    #expect(try Document.read(binaryList([large])).value == .integer(WideInteger(UInt64.max)))
  }
}
