/// How a cell looks. A meaning never depends on a colour alone.
package struct Style: Hashable, Sendable {
  /// The eight colours that every terminal with colours has.
  package enum Color: UInt8, Sendable { case red = 1, green, yellow, blue, magenta, cyan }

  /// The colour; nil means the terminal's own.
  package var color: Color?
  package var isBold = false
  package var isDim = false
  package var isReversed = false

  /// As the terminal shows text by itself.
  package static let plain = Style()
  package static let bold = Style(isBold: true)
  package static let dim = Style(isDim: true)
  package static let reversed = Style(isReversed: true)

  package init(
    _ color: Color? = nil, isBold: Bool = false, isDim: Bool = false, isReversed: Bool = false
  ) {
    (self.color, self.isBold, self.isDim, self.isReversed) = (color, isBold, isDim, isReversed)
  }

  /// The bytes that set this style, whatever was set before.
  func sequence(isColored: Bool) -> String {
    var numbers = ["0"]
    if isBold { numbers.append("1") }
    if isDim { numbers.append("2") }
    if isReversed { numbers.append("7") }
    if isColored, let color { numbers.append("3\(color.rawValue)") }
    return "\u{1B}[\(numbers.joined(separator: ";"))m"
  }
}

/// One column of a row, or the first of two that a wide character takes.
struct Cell: Hashable, Sendable {
  /// A character with its marks; empty means the second column of the character before.
  var text: String
  /// The columns that it takes; 0 for the second one of a wide character.
  var width: Int
  /// Whether terminals may disagree about its columns.
  var isDoubtful = false
  var style = Style.plain

  static let blank = Cell(text: " ", width: 1)
  static let second = Cell(text: "", width: 0)
}
