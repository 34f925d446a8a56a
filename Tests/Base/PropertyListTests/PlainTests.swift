import Foundation
import Testing

@testable import PropertyList

/// A parser takes runs of plain bytes at once, and the one of XML whole elements that are spelled
/// plainly. Fed byte by byte, it uses its state machine alone. Both must give the same value.
@Suite("Plain spellings and the state machines")
struct PlainTests {
  private static let documents: [String] = [
    """
    <?xml version="1.0"?><plist version="1.0"><dict><key>a key of some length</key><string>t</string>
    <key>b</key><integer>-12</integer><key>c</key><real>1.5</real><key>d</key><true/>
    <key>e</key><array><dict/><false/><date>2026-11-21T07:20:00Z</date></array>
    <key>f</key><data>AAEC Aw==</data><key>g</key><string>a&lt;b</string></dict></plist>
    """,
    """
    {"a key of some length": "text", "b": [1, -2, 3.25, 1e3, true, false, "x\\n"], "c": {},
      "d" : {"nested key of some length": -0.5, "e": 0}, "f":[[]], "g": 12345678901234567890}
    """,
    """
    { "a key of some length" = "text"; b = (1, "two", <0fbd77>, <*I5>); c = { d = e; }; /* x */ f; }
    """,
  ]

  /// Reads the text whole, or in pieces of a size. Returns the value, or nil if it is refused.
  private func value(_ text: [UInt8], _ format: Format, pieces size: Int?) -> Value? {
    func run(_ parser: some TextParser) -> Value? {
      var parser = parser
      guard let size else {
        return text.withUnsafeBufferPointer { try? parser.read($0) }
      }
      for start in stride(from: 0, to: text.count, by: size) {
        let piece = text[start..<min(start + size, text.count)]
        guard (try? parser.feed(piece)) != nil else { return nil }
      }
      return try? parser.result()
    }
    switch format {
    case .xml: return run(XMLParser())
    case .json: return run(JSONParser())
    default: return run(OpenStepParser())
    }
  }

  @Test("a document with random damage reads the same in pieces", arguments: documents.indices)
  func mutations(_ index: Int) {
    let format: Format = [.xml, .json, .openStep][index]
    let original = Array(Self.documents[index].utf8)
    #expect(value(original, format, pieces: nil) != nil)
    var generator = SystemRandomNumberGenerator()
    for _ in 0..<3000 {
      var text = original
      for _ in 0..<Int.random(in: 0...2, using: &generator) {
        let place = Int.random(in: 0..<text.count, using: &generator)
        switch Int.random(in: 0..<3, using: &generator) {
        case 0: text[place] = original.randomElement(using: &generator) ?? 0
        case 1: text.remove(at: place)
        default: text.insert(original.randomElement(using: &generator) ?? 0, at: place)
        }
      }
      let whole = value(text, format, pieces: nil)
      let size = Int.random(in: 1...40, using: &generator)
      if whole != value(text, format, pieces: 1) || whole != value(text, format, pieces: size) {
        Issue.record("\(String(decoding: text, as: UTF8.self)), in pieces of \(size)")
        return
      }
    }
  }

  @Test(
    "escapes in a document of ASCII give the text that they stand for",
    arguments: [
      "<plist><string>a text that is &#233;scaped &#x1F388;</string></plist>",
      #"["a text that is \u00e9scaped \ud83c\udf88"]"#,
      #"("a text that is \U00e9scaped \Ud83c\Udf88")"#,
    ])
  func escapes(_ document: String) throws {
    var value = try Document.read(Array(document.utf8)).value
    if case .array(let items) = value, let first = items.first { value = first }
    guard case .string(let text) = value else {
      Issue.record("\(value.kind)")
      return
    }
    let expected = "a text that is \u{e9}scaped \u{1F388}"
    #expect(text == expected && Array(text.utf16) == Array(expected.utf16))
    #expect(text.count == expected.count)
  }

  @Test("numbers read as Swift reads them")
  func numbers() {
    var generator = SystemRandomNumberGenerator()
    func digits(_ most: Int) -> String {
      (0..<Int.random(in: 1...most, using: &generator)).map { _ in
        String(Int.random(in: 0...9, using: &generator))
      }.joined()
    }
    for _ in 0..<3000 {
      let sign = Bool.random(using: &generator) ? "-" : ""
      let whole = sign + digits(20)
      let real = "\(sign)\(digits(18)).\(digits(18))"
      let number = Array("<real>\(real)</real>".utf8)
      #expect(value(number, .xml, pieces: nil) == Double(real).map { .real($0) }, "\(real)")
      let integer = Array("<integer>\(whole)</integer>".utf8)
      let expected =
        Int64(whole).map { WideInteger($0) } ?? UInt64(whole).map { WideInteger($0) }
      #expect(value(integer, .xml, pieces: nil) == expected.map { .integer($0) }, "\(whole)")
      let json = Array("[\(real), \(whole)]".utf8)
      // JSON has no numbers with zeros in front, and an integer past 64 bits is refused.
      let isJSON = [real, whole].allSatisfy { text in
        let digits = text.drop { $0 == "-" }.prefix { $0 != "." }
        return digits.count == 1 || digits.first != "0"
      }
      let items = Double(real).flatMap { first in
        expected.map { [Value.real(first), .integer($0)] }
      }
      #expect(
        value(json, .json, pieces: nil) == (isJSON ? items.map { .array($0) } : nil),
        "\(real) \(whole)")
    }
  }

  @Test("dates of the calendar are read, and written as they were read; no others are")
  func moments() {
    var generator = SystemRandomNumberGenerator()
    for _ in 0..<5000 {
      let fields = [9999, 13, 32, 25, 61, 61].map { Int.random(in: 0...$0, using: &generator) }
      func pad(_ number: Int, _ width: Int = 2) -> String {
        String(repeating: "0", count: width - String(number).count) + String(number)
      }
      let day = "\(pad(fields[0], 4))-\(pad(fields[1]))-\(pad(fields[2]))"
      let text = "\(day)T\(pad(fields[3])):\(pad(fields[4])):\(pad(fields[5]))Z"
      let isLeap = fields[0] % 4 == 0 && (fields[0] % 100 != 0 || fields[0] % 400 == 0)
      let february = isLeap ? 29 : 28
      let days: [Int] = [0, 31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31, 0]
      let isDay = fields[2] >= 1 && fields[2] <= days[fields[1]]
      let isValid = isDay && fields[3] < 24 && fields[4] < 60 && fields[5] < 60
      let scanned = Array(text.utf8).withUnsafeBufferPointer { Padded.value(of: $0, DateParser()) }
      guard case .date(let time)? = scanned else {
        #expect(!isValid, "\(text)")
        continue
      }
      #expect(isValid && time.text == text, "\(text)")
    }
  }

  @Test("base64 is encoded as by Foundation, and decoded", arguments: 0..<40)
  func base64(_ count: Int) throws {
    let bytes = (0..<count).map { _ in UInt8.random(in: .min ... .max) }
    var sink = ByteSink(room: 1)
    Base64.encode(bytes, to: &sink)
    let text = sink.finish()
    #expect(String(decoding: text, as: UTF8.self) == Data(bytes).base64EncodedString())
    let spread = text.flatMap { byte -> [UInt8] in [byte, 10, 9] }
    for form in [text, spread] {
      #expect(form.withUnsafeBufferPointer { Base64.decode($0) } == bytes)
    }
    for end in 0..<text.count where end % 4 != 0 {
      #expect(text[..<end].withUnsafeBufferPointer { Base64.decode($0) } == nil, "\(end)")
    }
  }

  @Test("keys do not change while copies of their parser go on")
  func copies() async throws {
    var parser = OpenStepParser()
    try parser.feed(Array("\"the first key of a document\" = 1;".utf8)[...])
    let first = try parser.result()
    let start = parser
    await withTaskGroup(of: Value?.self) { group in
      for number in 0..<8 {
        group.addTask {
          var copy = start
          for index in 0..<2000 {
            let text = Array("\"key \(index) of the copy \(number)\" = \(index);".utf8)
            guard (try? copy.feed(text[...])) != nil else { return nil }
          }
          return try? copy.result()
        }
      }
      for await value in group {
        guard case .dictionary(let items)? = value else {
          Issue.record("a copy fails")
          continue
        }
        #expect(items.count == 2001)
        let name = items.last?.key.string.split(separator: " ").last ?? ""
        #expect(
          items.dropFirst().enumerated().allSatisfy { index, item in
            item.key.string == "key \(index) of the copy \(name)"
              && items[item.key] == .string("\(index)")
          })
      }
    }
    #expect(first == ["the first key of a document": "1"])
  }

  @Test("a key from a block equals the key of its string", arguments: [1, 15, 16, 70_000])
  func keys(_ count: Int) {
    var maker = KeyMaker()
    let texts = (0..<20).map {
      String(repeating: "k", count: count - 1) + "\(Character(Unicode.Scalar(97 + UInt8($0))))"
    }
    let keys = texts.map { text in Array(text.utf8).withUnsafeBufferPointer { maker.key($0) } }
    for (key, text) in zip(keys, texts) {
      #expect(key == Key(text) && Key(text) == key && key.string == text)
      #expect(key.hashValue == Key(text).hashValue && key.utf8Count == count)
      #expect(key.hash == Key(text).hash)
    }
    #expect(keys.reversed().sorted() == keys && Set(keys + texts.map { Key($0) }).count == 20)
  }
}
