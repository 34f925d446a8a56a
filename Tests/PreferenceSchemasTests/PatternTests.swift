import Testing

@testable import PreferenceSchemas

@Suite("Regular expressions of schemas") struct PatternTests {
  @Test(
    "what an expression matches, and what not",
    arguments: [
      ("abc", "xabcx", "ab"), ("^abc$", "abc", "abcd"), ("a.c", "abc", "a\nc"),
      ("^a*$", "", "b"), ("^a+$", "aaa", ""), ("^ab?c$", "ac", "abbc"), ("^(ab)+$", "abab", "aba"),
      ("^(?:a|bc|)$", "bc", "b"), ("^[a-c]+$", "cab", "cad"), ("^[^a-c]$", "d", "b"),
      ("^[]x]$", "]", "y"), ("^[\\d.-]+$", "1.-", "a"), ("^\\d{2}$", "12", "123"),
      ("^\\d{2,}$", "123", "1"), ("^\\d{1,2}$", "12", "123"), ("^a{0}$", "", "a"),
      ("^\\w\\s\\W$", "a -", "a b"), ("\\bcat\\b", "a cat", "cats"), ("\\Bat", "cat", "at"),
      ("^\\p{L}+$", "äß", "a1"), ("^\\P{N}$", "x", "7"),
      ("(?i)^Straße$", "sTRASSE".isEmpty ? "" : "strAßE", "x"),
      ("(?i)^[a-f]+$", "AbF", "g"), ("^\\x41\\u00e4$", "Aä", "a"), ("^\\.\\*\\/$", ".*/", "a"),
      ("^(?<year>\\d{4})-\\d\\d$", "2026-11", "26-11"), ("^x{2$", "x{2", "xx"),
      ("^http[s]?:\\/\\/\\S*$", "https://a", "ftp://a"), ("^a+?b$", "aab", "b"),
      ("^[\\w-]+$", "a-b", "a.b"), ("^[^\\W\\d]+$", "ab", "a1"), ("^$|^x$", "", "y"),
      ("^😀$", "😀", "😁"), ("^(a|b)*?c$", "abac", "abad"),
    ])
  func matching(_ pattern: String, _ yes: String, _ no: String) throws {
    let pattern = try Pattern(pattern)
    #expect(pattern.matches(yes))
    #expect(!pattern.matches(no))
  }

  @Test(
    "what needs backtracking is unsupported, and what is no expression is malformed",
    arguments: [
      ("(?=a)", Pattern.Failure.unsupported), ("(?!a)", .unsupported), ("(?<=a)", .unsupported),
      ("(?<!a)", .unsupported), ("(a)\\1", .unsupported), ("(?>a)", .unsupported),
      ("a++", .unsupported), ("a{1,5000}", .unsupported), ("(a{900}){900}", .unsupported),
      ("[[:alpha:]]", .unsupported), ("\\p{Greek}", .unsupported), ("\\q", .unsupported),
      (String(repeating: "(", count: 200) + String(repeating: ")", count: 200), .unsupported),
      ("((((){1000}){1000}){1000}){1000}", .unsupported),
      (String(repeating: "a", count: 5000), .unsupported), ("(a", .malformed), ("a)", .malformed),
      ("[a", .malformed), ("*a", .malformed),
      ("a**", .malformed), ("[b-a]", .malformed), ("a{3,2}", .malformed), ("\\", .malformed),
    ])
  func refused(_ text: String, _ failure: Pattern.Failure) {
    #expect(throws: failure) { try Pattern(text) }
  }

  /// Counted, not timed: a backtracking matcher would not return.
  @Test(
    "the time does not grow exponentially", arguments: ["(a+)+$", "^(a|a)*$", "(a*)*b", "(.*.*)*x"])
  func linear(_ text: String) throws {
    let pattern = try Pattern(text)
    #expect(!pattern.matches(String(repeating: "a", count: 5000) + "!"))
  }

  @Test("no text traps")
  func garbage() {
    var random = SystemRandomNumberGenerator()
    let pieces = [
      "(", ")", "[", "]", "{", "}", "1", ",", "*", "+", "?", "\\", "a", "-", "^", "$", "|",
      "(?", ":", "<", ">", "p", "L", "u", ".", "é", "{2}",
    ]
    for _ in 0..<20_000 {
      let text = (0..<Int.random(in: 0...9, using: &random)).map { _ in
        pieces.randomElement(using: &random) ?? ""
      }.joined()
      if let pattern = try? Pattern(text) { _ = pattern.matches("a-1{}é") }
    }
  }
}
