import Foundation
import PropertyList
import Support
import Testing

@Suite("XML lists that are changed in place") struct XMLPatchTests {
  private static let hand = """
    <?xml version="1.0" encoding="UTF-8"?>
    <!-- mine -->
    <plist version="1.0">
      <dict>
        <!-- zoom -->
        <key>Zoom</key>   <real>1.50</real>
        <key>A &amp; B</key><string><![CDATA[</dict>]]></string>
        <key>Flag</key>
        <true/>
        <key>Keys</key> <dict> <key>a</key><integer>0x10</integer> </dict>
      </dict>
    </plist>
    <!-- end -->

    """

  private func patched(_ text: String, _ changes: [Key: Value?]) throws -> String? {
    let bytes = Array(text.utf8)
    guard case .dictionary(let old) = try Document.read(bytes).value else { return nil }
    var new = old
    for (key, value) in changes { new[key] = value }
    return XMLPatch.apply(to: bytes, from: old, to: new).map { String(decoding: $0, as: UTF8.self) }
  }

  @Test("what did not change stays as its author has it")
  func kept() throws {
    #expect(try patched(Self.hand, [:]) == Self.hand)
    #expect(
      try patched(Self.hand, ["Flag": Value?.some(false)])
        == Self.hand.replacingOccurrences(of: "<true/>", with: "<false/>"))
    let removed = try patched(Self.hand, ["Zoom": Value?.none])
    #expect(
      removed
        == Self.hand.replacingOccurrences(
          of: "    <!-- zoom -->\n    <key>Zoom</key>   <real>1.50</real>\n", with: ""))
    // One line and the comment in it stay; XML has one size of reals.
    let line =
      "<plist><dict>\r\n<key a='>'>Z</key> <!-- 1 to 3 --> <real>1.50</real>\r\n</dict></plist>"
    #expect(
      try patched(line, ["Z": Value?.some(.single(2.5))])
        == line.replacingOccurrences(of: "1.50", with: "2.5"))
    #expect(
      try patched(line, ["b": Value?.some(.array([.single(0.5)]))])?.contains(
        "</real>\r\n<key>b</key>\r\n<array>") == true)
    let definitions = "\u{FEFF}<!DOCTYPE plist [<!-- don't [ --><!ENTITY a '<key>'>]>"
    let list = definitions + "<plist><dict><key>a</key><true/></dict></plist>"
    #expect(
      try patched(list, ["a": Value?.some(false)])
        == list.replacingOccurrences(of: "<true/>", with: "<false/>"))
    let added = try #require(try patched(Self.hand, ["N": Value?.some([.data([1, 2, 3])])]))
    #expect(
      added.contains(
        "<integer>0x10</integer> </dict>\n    <key>N</key>\n    <array>\n\t\t<data>\n\t\tAQID\n"))
  }

  @Test("a new key stands where a sorted list has it")
  func sorted() throws {
    let list = String(decoding: try Document.write(["a": 1, "c": 3], as: .xml), as: UTF8.self)
    let whole = String(
      decoding: try Document.write(["a": 1, "b": ["x": [1.5, 2.0]], "c": 3], as: .xml),
      as: UTF8.self)
    #expect(try patched(list, ["b": Value?.some(["x": [1.5, 2.0]])]) == whole)
    #expect(try patched(whole, ["b": Value?.none]) == list)
  }

  @Test(
    "what this does not know is written anew",
    arguments: [
      "<plist><dict/></plist>", "<plist><array><dict><key>a</key><true/></dict></array></plist>",
      "<plist><dict><key>a</key><true/><key>a</key><true/></dict></plist>",
    ])
  func refused(_ text: String) throws {
    #expect(try patched(text, ["b": Value?.some(1)]) == nil)
  }

  @Test("a list in another encoding is written anew")
  func encoding() throws {
    let head = "<?xml version='1.0' encoding='ISO-8859-1'?><plist><dict><key>a</key><string>"
    let list = Array(head.utf8) + [0xF6] + Array("</string></dict></plist>".utf8)
    #expect(try Document.read(list).value == ["a": "ö"])
    #expect(XMLPatch.apply(to: list, from: ["a": "ö"], to: ["a": 1]) == nil)
  }

  /// Lists that Foundation and plistlib write, as themes and key bindings are.
  private func lists() throws -> [[UInt8]] {
    var random = SystemRandomNumberGenerator()
    return try withSandbox { sandbox -> [[UInt8]] in
      try (0..<100).map { number in
        var values: ValueDictionary = [:]
        for key in 0..<20 {
          let data = (0..<Int.random(in: 0...300)).map { _ in UInt8.random(in: .min ... .max) }
          let real = Value.real(Double(Int.random(in: 0...1000)) / 1000)
          let items: [Value] = [
            .data(data), real, .real(1), true, .array([real, .data(data)]), "a<b>&\"c\"",
            .dictionary(["x": .data(data), "y": .dictionary(["z": real])]), .array([]), 7,
          ]
          values[Key("Key \(key)")] = items.randomElement(using: &random)
        }
        let binary = Document.binary(.dictionary(values))
        guard number % 2 == 0 else {
          let path = sandbox.root + "/list"
          try Data(binary).write(to: URL(fileURLWithPath: path))
          let script =
            "import plistlib; d = plistlib.load(open('\(path)', 'rb')); "
            + "plistlib.dump(d, open('\(path)', 'wb'))"
          sandbox.shell("python3 -c \"\(script)\"")
          return Array(try Data(contentsOf: URL(fileURLWithPath: path)))
        }
        let object = try PropertyListSerialization.propertyList(from: Data(binary), format: nil)
        return Array(
          try PropertyListSerialization.data(fromPropertyList: object, format: .xml, options: 0))
      }
    }
  }

  @Test("of 100 lists that others wrote, only the lines of the change differ")
  func others() throws {
    for list in try lists() {
      let text = String(decoding: list, as: UTF8.self)
      let new = try #require(try patched(text, ["Key 3": Value?.some(false)]))
      let (old, changed) = (text.components(separatedBy: "\n"), new.components(separatedBy: "\n"))
      let head = zip(old, changed).prefix { $0 == $1 }.count
      let tail = zip(old.reversed(), changed.reversed()).prefix { $0 == $1 }.count
      #expect(changed.count - head - tail <= 1, "\(new)")
      #expect(old[head - 1] == "\t<key>Key 3</key>" || old == changed)
    }
  }

  @Test("a list that is written anew is as Foundation writes it, but for the reals with a fraction")
  func whole() throws {
    for list in try lists() {
      let value = try Document.read(list).value
      let object = try PropertyListSerialization.propertyList(from: Data(list), format: nil)
      let judged = try PropertyListSerialization.data(
        fromPropertyList: object, format: .xml, options: 0)
      let lines = { (bytes: [UInt8]) in
        String(decoding: bytes, as: UTF8.self).components(separatedBy: "\n").filter {
          !$0.contains("<real>0")
        }
      }
      #expect(try lines(Document.write(value, as: .xml)) == lines(Array(judged)))
    }
  }
}
