extension String {
  /// The text with control characters written as `\u{A}`, for a line that people or programs read:
  /// so a name in it neither ends the line early, nor moves a terminal's cursor, nor hides a part of
  /// it (ESC, C1 controls, line separators, marks of direction).
  /// - Parameter most: bytes after which the rest is cut off, and `...` stands.
  public func printable(atMost most: Int = .max) -> String {
    var text = ""
    for character in unicodeScalars {
      switch character.value {
      case 0..<0x20, 0x7F..<0xA0, 0x2028, 0x2029, 0x202A...0x202E, 0x2066...0x2069:
        text += "\\u{\(String(character.value, radix: 16, uppercase: true))}"
      default: text.unicodeScalars.append(character)
      }
      if text.utf8.count >= most { return text + "..." }
    }
    return text
  }
}
