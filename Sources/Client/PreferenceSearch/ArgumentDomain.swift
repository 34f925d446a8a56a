import PropertyList

/// The argument domain: `-key value` pairs of a command line.
public enum ArgumentDomain {
  /// Returns the values of the pairs. A word that begins with `-` names a key, and the next word is
  /// its value. A key without value (the next word begins with `-`, or there is none) is dropped,
  /// as are other words.
  ///
  /// A value that begins with `{`, `[`, `(`, `<` or `"` is read as an old-style or XML list if it
  /// is one. Every other value is a string, numbers and JSON too (NSUserDefaults,
  /// NSArgumentDomain).
  public static func parse(_ arguments: [String]) -> ValueDictionary {
    var values: ValueDictionary = [:]
    var rest = arguments[...]
    while let name = rest.popFirst() {
      guard name.hasPrefix("-"), let text = rest.first, !text.hasPrefix("-") else { continue }
      rest.removeFirst()
      values[Key(String(name.dropFirst()))] = value(of: text)
    }
    return values
  }

  private static func value(of text: String) -> Value {
    let blanks: Set<Character> = [" ", "\t", "\n", "\r"]
    let trimmed = text.drop { blanks.contains($0) }.reversed().drop { blanks.contains($0) }
      .reversed()
    let string = String(trimmed)
    guard let first = string.first, "{[(<\"".contains(first),
      let value = try? Document.readArgument(Array(string.utf8))
    else { return .string(string) }
    return value
  }
}
