import PropertyList
import Testing

@testable import DefaultsCommand

/// The values that words of a command line give.
@Suite("Value argument") struct ValueArgumentTests {
  static let values: [(words: [String], value: Value)] = [
    (["text"], "text"), (["1.5"], "1.5"), (["true"], "true"), ([""], ""), (["-5"], "-5"),
    (["(a, \"b c\")"], ["a", "b c"]), (["{ a = 1; }"], ["a": "1"]), (["\"quoted\""], "quoted"),
    (["[1, true]"], [1, true]), (["<0fbd77>"], .data([0x0F, 0xBD, 0x77])),
    (["<plist><integer>5</integer></plist>"], 5),
    (["-string", "(a)"], "(a)"), (["-string", "-int"], "-int"),
    (["-int", "42"], 42), (["-integer", " -7x"], -7), (["-int", "garbage"], 0),
    (["-int", "0x10"], 0), (["-int", "99999999999999999999"], 9_223_372_036_854_775_807),
    (["-float", "0.5"], .single(0.5)), (["-float", "0.1"], .single(0.1)),
    (["-float", "1e3kg"], .single(1000)), (["-float", "x"], .single(0)),
    (["-float", "0x10"], .single(0)),
    (["-float", "inf"], .single(0)), (["-float", " .5"], .single(0.5)),
    (["-bool", "TRUE"], true), (["-boolean", "no"], false), (["-bool", "Yes"], true),
    (["-data", "0FbD"], .data([0x0F, 0xBD])), (["-data", "abc"], .data([0x0A, 0xBC])),
    (["-data", ""], .data([])),
    (["-date", "2001-01-01 01:00:00 +0100"], .date(AbsoluteTime(seconds: 0))),
    (["-date", "2001-01-01T00:00:00Z"], .date(AbsoluteTime(seconds: 0))),
    (["-array"], []), (["-dict"], [:]),
    (["-array", "a", "-int", "1", "(b)", "-bool", "yes"], ["a", 1, ["b"], true]),
    (
      ["-dict", "k", "v", "n", "-float", "2", "-string", "s", "{a=b;}"],
      ["k": "v", "n": .single(2), "s": ["a": "b"]]
    ),
  ]

  @Test("words give this value", arguments: values)
  func value(_ words: [String], _ value: Value) throws {
    var arguments = Arguments(words[...], Options())
    guard case .value(let found) = try ValueArgument.parse(&arguments) else {
      Issue.record("\(words) gave no value")
      return
    }
    #expect(found == value, "\(words)")
  }

  /// Words that are refused, and Apple's message. An empty message stands for the usage, which has
  /// status 255.
  static let refusals: [(words: [String], message: String)] = [
    (["-bool", "1"], ""), (["-bool", "on"], ""), (["-int"], ""), (["-data", "0g"], ""),
    (["-date", "nonsense"], ""), ([], ""), (["-dict", "k", "-int"], ""),
    (["{a"], "Could not parse: {a.  Try single-quoting it."),
    (["a", "b"], "Unexpected argument b; leaving defaults unchanged."),
    (["-int", "1", "2"], "Unexpected argument 2; leaving defaults unchanged."),
    (["-dict", "a"], "Key a lacks a corresponding value"),
    (["-dict", "-int", "1", "x"], "Dictionary keys must be strings"),
    (["-array", "-dict"], "Cannot nest composite types (arrays and dictionaries); exiting"),
    (
      ["-dict", "k", "-array", "a"],
      "Cannot nest composite types (arrays and dictionaries); exiting"
    ),
  ]

  @Test("words are refused with Apple's message", arguments: refusals)
  func refusal(_ words: [String], _ message: String) {
    var arguments = Arguments(words[...], Options())
    let refusal = #expect(throws: Refusal.self) { _ = try ValueArgument.parse(&arguments) }
    #expect(refusal?.message == message, "\(words)")
    #expect(refusal?.status == (message.isEmpty ? 255 : 1))
  }
}
