/// What comes from a terminal.
package enum Input: Hashable, Sendable {
  /// A printable character, with its marks.
  case text(String)
  /// A key without a character.
  case key(Name)
  /// A key that is held with Ctrl, by its small letter.
  case control(Character)
  /// A key that is held with Alt, or follows Escape.
  case alt(Character)
  /// A text that was pasted, as it is.
  case paste(String)
  /// The mouse's wheel, by one step.
  case wheel(isUp: Bool)

  /// A key's name.
  package enum Name: Hashable, Sendable {
    case enter, tab, backTab, escape, backspace, delete, insert
    case up, down, left, right, home, end, pageUp, pageDown, help
  }
}
