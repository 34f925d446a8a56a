import SystemCalls
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
      ("^😀$", "😀", "😁"), ("^(a|b)*?c$", "abac", "abad"), ("^a$", "a", "a\n"),
      ("^(?=.*\\d)\\w+$", "a1", "ab"), ("^(?!no)", "yes", "no"), ("^(.)\\1$", "ää", "äa"),
      ("^[[:alpha:]]+$", "ab", "é"), ("^\\p{Greek}+$", "αβ", "ab"), ("^a++b$", "aab", "aa"),
      ("^a{1,5000}$", "aa", ""), ("^\\d$", "1", "१"), ("^\\u{e4}$", "ä", "a"),
    ])
  func matching(_ pattern: String, _ yes: String, _ no: String) throws {
    let pattern = try Pattern(pattern)
    #expect(pattern.search(yes, within: PatternBudget()) == .found)
    #expect(pattern.search(no, within: PatternBudget()) == .notFound)
  }

  @Test(
    "what is too large or has another meaning elsewhere is unsupported, what is none is malformed",
    arguments: [
      ("[a-z&&[^b]]", Pattern.Failure.unsupported), ("\\C", .unsupported),
      (String(repeating: "(", count: 200) + String(repeating: ")", count: 200), .unsupported),
      ("((((){1000}){1000}){1000}){1000}", .unsupported),
      (String(repeating: "a", count: 5000), .unsupported), ("(a", .malformed), ("a)", .malformed),
      ("[a", .malformed), ("*a", .malformed), ("(a)\\2", .malformed), ("\\q", .malformed),
      ("a**", .malformed), ("[b-a]", .malformed), ("a{3,2}", .malformed), ("\\", .malformed),
    ])
  func refused(_ text: String, _ failure: Pattern.Failure) {
    #expect(throws: failure) { try Pattern(text) }
  }

  @Test(
    "a search that takes long ends, and takes no more of the processor than the budget",
    arguments: [
      ("(a+)+$", 5000, false), ("^(a|a)*$", 5000, true), ("^(a*)*[b-d]$", 60_000, true),
      ("^(\\w+\\s?)*$", 60_000, true), ("\\w*\\W\\d", 60_000, false),
      ("[\\p{L}\\p{N}]{200}$", 60_000, false), ("^a*!$", 60_000, false),
      ("^[\\p{L}\\p{N} !]{1,99}$", 60_000, false),
    ])
  func costly(_ text: String, _ count: Int, _ isCostly: Bool) throws {
    let pattern = try Pattern(text)
    let start = ThreadTime.nanoseconds
    let found = pattern.search(
      String(repeating: "a", count: count) + "!", within: PatternBudget())
    // 14 ms, and what a look at the time is late.
    #expect(ThreadTime.nanoseconds - start < 25_000_000)
    if isCostly { #expect(found == .tooCostly && pattern.isCostly) }
  }

  @Test("of many texts, each has what it takes without repetitions, and all together have no more")
  func shared() throws {
    let (plain, costly) = (try Pattern("^[a-z]+$"), try Pattern("\\w*\\W"))
    let budget = PatternBudget()
    let start = ThreadTime.nanoseconds
    for _ in 0..<100 {
      #expect(plain.search(String(repeating: "a", count: 1000), within: budget) == .found)
    }
    for _ in 0..<20 {
      _ = costly.search(String(repeating: "a", count: 10_000), within: budget)
    }
    // The searches alone would take 2 s.
    #expect(ThreadTime.nanoseconds - start < 200_000_000)
    #expect(costly.search(String(repeating: "a", count: 10_000), within: budget) == .tooCostly)
    #expect(plain.search("abc", within: budget) == .found)
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
      if let pattern = try? Pattern(text) {
        _ = pattern.search("a-1{}é", within: PatternBudget())
      }
    }
  }
}
