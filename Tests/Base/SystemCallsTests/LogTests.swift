import Testing

@testable import SystemCalls

@Suite("Log") struct LogTests {
  @Test("a line of the log stays one line, whatever it holds")
  func printable() {
    #expect("d Key\nprefsfs: forged".printable() == "d Key\\u{A}prefsfs: forged")
    #expect("a\u{1B}[2Jb\u{202E}c\r".printable() == "a\\u{1B}[2Jb\\u{202E}c\\u{D}")
    #expect("schön, 日本 100%".printable() == "schön, 日本 100%")
    #expect(String(repeating: "x", count: 100_000).printable(atMost: 4000).utf8.count < 4096)
  }

  @Test("of refusals with one errno 20 are written in a minute, and the rest are counted")
  func refusals() {
    var limit = RefusalLimit()
    let begin = Instant.now
    let texts = (0..<1000).compactMap { limit.text(of: "a\($0)", .notPermitted, at: begin) }
    #expect(texts.count == 20 && texts[18] == "a18")
    #expect(texts[19] == "a19 (further refusals with this errno are not logged for a minute)")
    #expect(limit.text(of: "b", .permissionDenied, at: begin) == "b")
    let later = begin.advanced(milliseconds: 60_000)
    let counted = "c (before it, 980 refusals with this errno were not logged)"
    #expect(limit.text(of: "c", .notPermitted, at: later) == counted)
    #expect(limit.text(of: "d", .notPermitted, at: later) == "d")
    #expect(limit.text(of: "e", .permissionDenied, at: later) == "e")
  }

  @Test("the line of a literal is an error, others say what they are")
  func severities() {
    let number = 5
    #expect(("process \(number)" as LogLine).severity == .error)
    #expect(LogLine.notice("connected").severity == .notice)
    #expect(LogLine.refusal("no", .notPermitted).severity == .refusal(.notPermitted))
  }
}
