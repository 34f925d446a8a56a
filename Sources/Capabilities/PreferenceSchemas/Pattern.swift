import CPCRE2

/// A regular expression, as PCRE2 has them: in UTF-8, with `\d`, `\w`, `\s` and `\b` of ASCII as in
/// JSON Schema, `\uHHHH` for a character, and `$` for the end of the text alone.
///
/// PCRE2 tries again what did not match, so that a search may take exponential time, or the square
/// of the text's length. A search that takes longer than its `PatternBudget` ends without an answer:
/// the loop of a mount waits for it.
///
/// Threads: any, several at once.
public struct Pattern: Sendable {
  /// Why a text is no pattern.
  public enum Failure: Error, Equatable, Sendable {
    /// It is not a regular expression.
    case malformed
    /// It is too large, or means something else to other programs.
    case unsupported
  }

  /// What came of a search.
  enum Outcome: Sendable {
    case found, notFound
    /// The search has ended without an answer.
    case tooCostly
  }

  /// The expression as it was written.
  public let text: String
  private let compiled: CompiledPattern
  /// Bytes of the compiled expression.
  var size: Int { compiled.size }

  /// Bytes of the longest text that is judged.
  public static let longestText = 1 << 16
  /// The largest product of the bytes of an expression and of a text: between two looks at the
  /// time, each character of the text is compared with a part of the expression.
  private static let mostComparisons = 1 << 24

  /// Whether a text is short enough to be judged.
  public func judges(_ text: String) -> Bool {
    let count = text.utf8.count
    return count <= Self.longestText && count * self.text.utf8.count <= Self.mostComparisons
  }

  /// Compiles an expression.
  public init(_ text: String) throws(Failure) {
    // On macOS, `[a-z&&[^b]]` is the intersection of two sets; here it would be something else.
    guard !text.contains("&&") else { throw .unsupported }
    compiled = try CompiledPattern(text)
    self.text = text
  }

  /// Searches the text for the expression.
  func search(_ text: String, within budget: PatternBudget) -> Outcome {
    compiled.search(text, within: budget)
  }

  /// Whether a short text is known in which the search takes too long, as in one of many words that
  /// does not match `^(\w+\s?)*$`. Cost: some milliseconds.
  var isCostly: Bool {
    Self.probes.contains { search($0, within: PatternBudget()) == .tooCostly }
  }

  /// Texts of 1,000 characters of which the last one seldom matches.
  private static let probes = ["a", "A", "0", " ", ".", "-", "/", "a ", "a.", "a,", "a0"].map {
    String(repeating: $0, count: 1000 / $0.count) + "\u{1}"
  }
}

/// A compiled expression, which nothing changes.
private final class CompiledPattern: @unchecked Sendable {
  private let code: OpaquePointer
  let size: Int

  /// Bytes of the longest expression, and how deep its groups may be nested.
  private static let longest = 4096
  private static let deepest: UInt32 = 100
  /// How often a search may go back. A search that goes back so often takes some 10 ms.
  private static let mostSteps: UInt32 = 200_000
  /// KiB that a search may take.
  private static let mostMemory: UInt32 = 16 << 10
  /// PCRE2's numbers for: groups are nested too deeply, the compiled expression is too large, `\C`
  /// is not allowed, the text is too long.
  private static let limits: Set<Int32> = [119, 120, 183, 188]

  init(_ text: String) throws(Pattern.Failure) {
    guard let context = pcre2_compile_context_create_8(nil) else { throw .unsupported }
    defer { pcre2_compile_context_free_8(context) }
    pcre2_set_compile_extra_options_8(context, UInt32(PCRE2_EXTRA_ALT_BSUX))
    pcre2_set_newline_8(context, UInt32(PCRE2_NEWLINE_LF))
    pcre2_set_max_pattern_length_8(context, Self.longest)
    pcre2_set_parens_nest_limit_8(context, Self.deepest)
    // With callouts, the search looks at the time before each part of the expression.
    let options =
      UInt32(PCRE2_UTF) | UInt32(PCRE2_DOLLAR_ENDONLY) | UInt32(PCRE2_NEVER_BACKSLASH_C)
      | UInt32(PCRE2_AUTO_CALLOUT)
    let bytes = Array(text.utf8)
    var error: Int32 = 0
    var offset = 0
    guard let code = pcre2_compile_8(bytes, bytes.count, options, &error, &offset, context) else {
      throw Self.limits.contains(error) ? .unsupported : .malformed
    }
    var size = 0
    pcre2_pattern_info_8(code, UInt32(PCRE2_INFO_SIZE), &size)
    (self.code, self.size) = (code, size)
  }

  deinit { pcre2_code_free_8(code) }

  func search(_ text: String, within budget: PatternBudget) -> Pattern.Outcome {
    guard let context = pcre2_match_context_create_8(nil) else { return .tooCostly }
    defer { pcre2_match_context_free_8(context) }
    guard let match = pcre2_match_data_create_8(1, nil) else { return .tooCostly }
    defer { pcre2_match_data_free_8(match) }
    pcre2_set_match_limit_8(context, Self.mostSteps)
    pcre2_set_heap_limit_8(context, Self.mostMemory)
    pcre2_set_callout_8(
      context,
      { _, pointer in
        guard let pointer else { return 0 }
        let budget = Unmanaged<PatternBudget>.fromOpaque(pointer).takeUnretainedValue()
        return budget.isSpent() ? Int32(PCRE2_ERROR_CALLOUT) : 0
      }, Unmanaged.passUnretained(budget).toOpaque())
    var bytes = Array(text.utf8)
    let count = bytes.count
    // No version of PCRE2 then sees a null pointer for an empty text.
    bytes.append(0)
    budget.begin(bytes: count)
    defer { budget.end() }
    // A string of Swift is always valid UTF-8.
    let found = pcre2_match_8(
      code, bytes, count, 0, UInt32(PCRE2_NO_UTF_CHECK), match, context)
    if found >= 0 { return .found }
    return found == Int32(PCRE2_ERROR_NOMATCH) ? .notFound : .tooCostly
  }
}
