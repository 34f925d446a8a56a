import Testing

@testable import TerminalScreen

@Suite("Bytes of a terminal as inputs") struct InputParserTests {
  static let cases: [(name: String, bytes: String, inputs: [Input])] = [
    ("text", "aé日", [.text("a"), .text("é"), .text("日")]),
    (
      "keys", "\r\n\t\u{7F}\u{8}",
      [
        .key(.enter), .key(.enter), .key(.tab), .key(.backspace), .key(.backspace),
      ]
    ),
    ("Ctrl", "\u{1}\u{3}\u{1A}", [.control("a"), .control("c"), .control("z")]),
    (
      "arrows", "\u{1B}[A\u{1B}OB\u{1B}[1;5C\u{1B}[D",
      [
        .key(.up), .key(.down), .key(.right), .key(.left),
      ]
    ),
    (
      "Home and its like", "\u{1B}[H\u{1B}[1~\u{1B}[4~\u{1B}[3~\u{1B}[5~\u{1B}[6~",
      [
        .key(.home), .key(.home), .key(.end), .key(.delete), .key(.pageUp), .key(.pageDown),
      ]
    ),
    ("Alt", "\u{1B}b\u{1B}\u{7F}", [.alt("b"), .alt("\u{8}")]),
    ("F1", "\u{1B}OP\u{1B}[[A\u{1B}[11~", [.key(.help), .key(.help), .key(.help)]),
    (
      "the wheel", "\u{1B}[<64;10;5M\u{1B}[<65;10;5M\u{1B}[<0;10;5M\u{1B}[<0;10;5m",
      [
        .wheel(isUp: true), .wheel(isUp: false),
      ]
    ),
    (
      "a paste", "\u{1B}[200~a\r\nb\u{1B}[31m\u{1B}\u{1B}[201~c",
      [
        .paste("a\nb\u{1B}[31m\u{1B}"), .text("c"),
      ]
    ),
    ("an unknown sequence types nothing", "\u{1B}[?1;2c\u{1B}[99~\u{1B}[1;1Rx", [.text("x")]),
    ("controls of C1 are no text", "\u{9B}31m", [.text("3"), .text("1"), .text("m")]),
    ("Escape before a sequence", "\u{1B}\u{1B}[A", [.key(.escape), .key(.up)]),
  ]

  @Test("inputs, in one piece and byte by byte", arguments: cases.indices)
  func parse(_ index: Int) {
    let (name, bytes, inputs) = Self.cases[index]
    var parser = InputParser()
    #expect(parser.feed(Array(bytes.utf8)) == inputs, "\(name)")
    #expect(!parser.isWaiting)
    #expect(bytes.utf8.flatMap { parser.feed([$0]) } == inputs, "\(name), byte by byte")
  }

  @Test("Escape alone is the key when nothing follows")
  func escape() {
    var parser = InputParser()
    #expect(parser.feed([0x1B]).isEmpty && parser.isWaiting)
    #expect(parser.endWait() == [.key(.escape)] && !parser.isWaiting)
    #expect(parser.feed([0x1B, 0x5B]).isEmpty)
    #expect(parser.endWait() == [])
    #expect(parser.feed(Array("A".utf8)) == [.text("A")])
  }

  @Test("bytes that are not UTF-8 are left out")
  func invalid() {
    var parser = InputParser()
    #expect(
      parser.feed([0xFF, 0x61, 0xC3, 0x62, 0xE3, 0x81, 0x63, 0x80])
        == ["a", "b", "c"].map { .text($0) })
  }

  @Test("a sequence without an end, and a paste without one, stay small")
  func long() {
    var parser = InputParser()
    #expect(parser.feed(Array("\u{1B}[".utf8) + Array(repeating: 0x31, count: 10_000)).isEmpty)
    #expect(parser.feed(Array("~x".utf8)) == [.text("x")])
    _ = parser.feed(Array("\u{1B}[200~".utf8))
    _ = parser.feed(Array(repeating: 0x61, count: InputParser.mostPasted + 1000))
    guard case .paste(let text)? = parser.feed(Array("\u{1B}[201~".utf8)).first else {
      Issue.record("there is no paste")
      return
    }
    #expect(text.utf8.count == InputParser.mostPasted)
  }

  @Test("random bytes end nothing")
  func noise() {
    var numbers = Numbers(state: 7)
    var parser = InputParser()
    for _ in 0..<50_000 {
      let byte = UInt8.random(in: 0...255, using: &numbers)
      for case .text(let text) in parser.feed([byte]) {
        #expect(
          text.unicodeScalars.allSatisfy { $0.value >= 0x20 && !(0x7F..<0xA0).contains($0.value) })
      }
      if byte == 0 { _ = parser.endWait() }
    }
  }
}
