import PreferenceHistory
import PreferenceModel
import PropertyList
import Testing

@testable import PreferenceDeclarations

@Suite("Documents that are changed in place") struct DocumentPatchTests {
  private func patch(_ text: String, _ change: (inout ValueDictionary) -> Void) throws -> String? {
    var limits = Limits.list
    limits.null = Declaration.absent
    let read = try Document.read(Array(text.utf8), limits: limits)
    var new = try #require(read.value.dictionary)
    change(&new)
    let old = try #require(read.value.dictionary)
    return DocumentPatch.apply(to: Array(text.utf8), read.format, from: old, to: new)
      .map { String(decoding: $0, as: UTF8.self) }
  }

  @Test("JSON: a value, a removal, new keys, elements")
  func json() throws {
    let text = "{ \"a\":1,\n\n  \"b\" :  [1,2 , 3],\n  \"c\": {}\n}\n"
    #expect(try patch(text) { $0["a"] = 2 } == text.replacing("\"a\":1", with: "\"a\":2"))
    #expect(
      try patch(text) { $0["b"] = [1, 3] } == text.replacing("[1,2 , 3]", with: "[1 , 3]"))
    #expect(try patch(text) { $0["a"] = nil } == text.replacing("\"a\":1,\n\n  ", with: ""))
    #expect(
      try patch(text) { $0["c"] = ["x": Declaration.absent] }
        == text.replacing("{}", with: "{\"x\": null}"))
    #expect(
      try patch(text) { $0["d"] = "é\"" }
        == text.replacing("{}\n", with: "{},\n\n  \"d\":\"é\\\"\"\n"))
    #expect(try patch("{\"a\": 1}") { $0["a"] = .data([1]) } == nil)
  }

  @Test("XML: comments, blanks and the spelling of other values stay")
  func xml() throws {
    let text = """
      <?xml version="1.0" encoding="UTF-8"?>
      <!-- <dict> is no tag here -->
      <plist version="1.0"><dict>
        <key>a</key> <integer>+1</integer><!-- one -->
          <key>b&amp;c</key><string><![CDATA[<x>]]></string>
        <key>l</key><array><true /><false/></array>
      </dict></plist>
      """
    #expect(
      try patch(text) { $0["a"] = 2 }
        == text.replacing("<integer>+1</integer>", with: "<integer>2</integer>"))
    #expect(
      try patch(text) { $0["b&c"] = "<" }
        == text.replacing("<string><![CDATA[<x>]]></string>", with: "<string>&lt;</string>"))
    #expect(try patch(text) { $0["l"] = [true] } == text.replacing("<false/>", with: ""))
    let added = try patch(text) { $0["z"] = ["k": 1] }
    #expect(added?.hasPrefix(String(text.dropLast("\n</dict></plist>".count))) == true)
    #expect(added?.contains("<key>z</key> <dict><key>k</key><integer>1</integer></dict>") == true)
  }

  // MARK: - Random documents

  private struct Source {
    var numbers = SystemRandomNumberGenerator()

    mutating func below(_ limit: Int) -> Int { Int.random(in: 0..<limit, using: &numbers) }

    mutating func value(_ depth: Int) -> Value {
      switch below(depth < 3 ? 6 : 4) {
      case 0: .integer(WideInteger(Int64(below(9))))
      case 1: .boolean(below(2) == 0)
      case 2: .string(["", "a b", "\"\\<&>", "é\u{1F600}", "]}\n"][below(5)])
      case 3: .real(Double(below(9)) + 0.5)
      case 4: .array((0..<below(4)).map { _ in value(depth + 1) })
      default: .dictionary(dictionary(depth + 1))
      }
    }

    mutating func dictionary(_ depth: Int) -> ValueDictionary {
      var values: ValueDictionary = [:]
      for _ in 0..<below(5) { values[Key("k\(below(7))")] = value(depth) }
      return values
    }

    mutating func changed(_ old: ValueDictionary) -> ValueDictionary {
      var new = old
      for (key, value) in old {
        switch below(6) {
        case 0: new[key] = nil
        case 1: new[key] = self.value(1)
        case 2:
          if case .dictionary(let inner) = value { new[key] = .dictionary(changed(inner)) }
          if case .array(let elements) = value {
            new[key] = .array(elements.dropLast() + [self.value(2)])
          }
        default: break
        }
      }
      if below(3) == 0 { new[Key("n\(below(3))")] = value(1) }
      return new
    }

    mutating func blanks() -> String { ["", " ", "\n", "\n    ", "\t"][below(5)] }

    mutating func json(_ value: Value) -> String {
      switch value {
      case .array(let elements):
        var texts: [String] = []
        for element in elements { texts.append(blanks() + json(element) + blanks()) }
        return "[" + (texts.isEmpty ? blanks() : texts.joined(separator: ",")) + "]"
      case .dictionary(let members):
        var texts: [String] = []
        for (key, value) in members {
          texts.append("\(blanks())\"\(key)\"\(blanks()):\(blanks())\(json(value))\(blanks())")
        }
        return "{" + (texts.isEmpty ? blanks() : texts.joined(separator: ",")) + "}"
      default:
        let list = String(decoding: Document.json([value]), as: UTF8.self)
        return list.dropFirst().prefix(list.count - 3).trimmed
      }
    }

    mutating func xml(_ value: Value) -> String {
      switch value {
      case .array(let elements):
        var text = "<array>"
        for element in elements { text += between() + xml(element) }
        return text + between() + "</array>"
      case .dictionary(let members):
        var text = "<dict>"
        for (key, value) in members {
          text += between() + "<key>\(key)</key>" + between() + xml(value)
        }
        return text + between() + "</dict>"
      case .boolean(let flag): return flag ? "<true />" : "<false></false>"
      case .string(let text):
        return "<string><![CDATA[\(text)]]></string>"
      case .real(let number): return "<real>\(number)</real>"
      default: return "<integer>\(ValueDescription.line(of: value, false))</integer>"
      }
    }

    private mutating func between() -> String {
      below(4) == 0 ? blanks() + "<!-- <key> -->" + blanks() : blanks()
    }
  }

  @Test(
    "random documents in odd forms: what does not change has its bytes", arguments: [true, false])
  func random(isJSON: Bool) throws {
    var source = Source()
    for round in 0..<150 {
      let old = source.dictionary(0)
      let text =
        isJSON
        ? source.json(.dictionary(old))
        : "<plist version=\"1.0\">\(source.xml(.dictionary(old)))</plist>"
      let bytes = Array(text.utf8)
      let read = try Document.read(bytes)
      #expect(read.value == .dictionary(old), "\(text)")
      let new = source.changed(old)
      let patched = DocumentPatch.apply(to: bytes, read.format, from: old, to: new)
      let result = try #require(patched, "round \(round): \(text)")
      #expect(DocumentPatch.apply(to: bytes, read.format, from: old, to: old) == bytes)
      let outlines = (Outline(bytes, read.format)?.root, Outline(result, read.format)?.root)
      guard case .dictionary(let before)? = outlines.0?.contents,
        case .dictionary(let after)? = outlines.1?.contents
      else { continue }
      for member in before where old[member.name] == new[member.name] {
        let same = try #require(after.first { $0.name == member.name })
        #expect(
          bytes[member.key.lowerBound..<member.value.range.upperBound]
            == result[same.key.lowerBound..<same.value.range.upperBound])
      }
      let kept = before.map(\.name).filter { new[$0] != nil }
      #expect(after.map(\.name).prefix(kept.count).elementsEqual(kept))
    }
  }
}

extension Substring {
  fileprivate var trimmed: String {
    String(drop(while: \.isWhitespace).reversed().drop(while: \.isWhitespace).reversed())
  }
}
