import Foundation
import PropertyList
import Testing

@Suite("Lists with values that cannot be read") struct ReadableListTests {
  private static let list = """
    <?xml version="1.0" encoding="UTF-8"?>
    <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
    <plist version="1.0">
    <dict>
      <key>Bad</key>
      <integer>five</integer>
      <!-- good -->
      <key>Good</key> <integer>1</integer>
      <key>Inner</key>
      <dict><key>a</key><array><null/></array></dict>
    </dict>
    </plist>

    """

  @Test("a value that cannot be read hides its key alone, and the reason says the line")
  func hidden() throws {
    let bytes = Array(Self.list.utf8)
    #expect(throws: FormatError.self) { try Document.read(bytes) }
    let list = try #require(ReadableList(bytes))
    #expect(list.values == ["Good": 1])
    #expect(
      list.hidden == [
        "Bad": "line 6: the text of <integer> is not valid", "Inner": "line 10: an unknown element",
      ])
  }

  @Test(
    "such values hide their keys",
    arguments: [
      "<integer/>", "<integer>99999999999999999999</integer>", "<real>1,5</real>",
      "<date>yesterday</date>", "<null/>", "<ustring>a</ustring>", "<string>&nbsp;</string>",
      "<string>a & b</string>", "<string>a < b <!-- </string> --></string>", "<true>x</true>",
      "<string>a<b/></string>", "<array>text</array>", "<dict><string/></dict>",
      "<string><![CDATA[</string>]]>&x;</string>", "<string a='>'>&#xD800;</string>",
    ])
  func value(_ element: String) {
    let text = "<plist><dict><key>a</key>\(element)<key>z</key><true/></dict></plist>"
    #expect((try? Document.read(Array(text.utf8))) == nil)
    let list = ReadableList(Array(text.utf8))
    #expect(list?.values == ["z": true] && list?.hidden.keys.sorted() == ["a"])
  }

  @Test("a DTD with a part of its own, in which brackets are quoted, hides nothing")
  func definitions() {
    let dtd = "<!DOCTYPE plist [<!ENTITY a ']>'>]>"
    let pairs = "<key>a</key><integer>x</integer><key>z</key><true/>"
    let list = ReadableList(Array("\(dtd)<plist><dict>\(pairs)</dict></plist>".utf8))
    #expect(list?.values == ["z": true] && list?.hidden.keys.sorted() == ["a"])
  }

  @Test("bytes that are not UTF-8 hide their key, and stay as they are")
  func bytes() {
    let text = Array("<plist><dict><key>a</key><string>".utf8) + [0xFF]
    let list = text + Array("</string><key>b</key><integer>1</integer></dict></plist>".utf8)
    #expect(ReadableList(list)?.values == ["b": 1])
    let changed = XMLPatch.apply(to: list, from: ["b": 1], to: ["b": 2])
    #expect(changed?.starts(with: text) == true)
  }

  @Test(
    "a list of which no part is certain is not read",
    arguments: [
      "<!DOCTYPE plist [<!-- ", "<!DOCTYPE plist [<!-- ]><plist><dict></dict></plist>",
      "<plist><dict><key>a</key><integer>x</integer><key>b</key><tr", "<plist><dict><key>a</key>",
      "<plist><dict><key>a</key><integer>x</integer></dict>",
      "<plist><dict><key>a</key><integer>x</integer></dict></plst>",
      "<plist><dict><key>a</key><integer>x</array></dict></plist>",
      "<plist><dict>text<key>a</key><integer>x</integer></dict></plist>",
      "<plist><dict><key>a</key></dict></plist>", "<plist><dict><true/></dict></plist>",
      "<plist><array><integer>x</integer></array></plist>",
      "<?xml version='1.0' encoding='bogus'?><plist><dict><key>a</key><null/></dict></plist>",
      "<plist><dict><key>a</key><string><!-- </string></dict></plist>",
    ])
  func unreadable(_ text: String) {
    #expect(ReadableList(Array(text.utf8)) == nil)
  }

  @Test("a list that can be read has no such values")
  func readable() throws {
    #expect(ReadableList(try Document.write(["a": 1], as: .xml)) == nil)
    #expect(ReadableList(try Document.write(["a": 1], as: .binary)) == nil)
    for text in ["{\"a\": 1}", "{ a = b; }", "a = b;", "{}", ""] {
      #expect(ReadableList(Array(text.utf8)) == nil, "\(text)")
    }
  }

  @Test("what is hidden stays byte for byte when other keys change, until it is set")
  func patched() {
    func patched(_ new: ValueDictionary) -> String? {
      XMLPatch.apply(to: Array(Self.list.utf8), from: ["Good": 1], to: new)
        .map { String(decoding: $0, as: UTF8.self) }
    }
    #expect(patched(["Good": 1]) == Self.list)
    #expect(
      patched(["Good": 2])
        == Self.list.replacingOccurrences(of: "<integer>1<", with: "<integer>2<"))
    #expect(
      patched([:])
        == Self.list.replacingOccurrences(
          of: "  <!-- good -->\n  <key>Good</key> <integer>1</integer>\n", with: ""))
    #expect(
      patched(["Good": 1, "Bad": 5])
        == Self.list.replacingOccurrences(of: "<integer>five<", with: "<integer>5<"))
  }

  @Test("a list that is written anew has what is hidden, too")
  func written() throws {
    let list = try #require(ReadableList(Array(Self.list.utf8)))
    for values: ValueDictionary in [[:], ["Good": 1, "New": ["a"]], ["Inner": "b"]] {
      let (bytes, format) = try #require(list.writing(values))
      #expect(format == .xml)
      let again = try #require(ReadableList(bytes))
      #expect(again.values == values)
      #expect(String(decoding: bytes, as: UTF8.self).contains("<integer>five</integer>"))
      #expect(again.hidden.keys.sorted() == ["Bad", "Inner"].filter { values[$0] == nil })
    }
    #expect(list.writing(["Bad": 1, "Inner": 2]) == nil)
  }
}
