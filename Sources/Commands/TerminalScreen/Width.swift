/// How many columns of a terminal text takes.
package enum Width {
  /// What a scalar is on a screen.
  enum Role {
    /// It takes that many columns: 1 or 2.
    case base(Int)
    /// It is drawn onto the character before it.
    case mark
    /// It takes no column, and terminals do not agree about what it does. It is left out.
    case invisible
  }

  /// Cost: a binary search, except for ASCII.
  static func role(of scalar: Unicode.Scalar) -> Role {
    if scalar.value < 0x300 { return scalar.value == 0xAD ? .invisible : .base(1) }
    if contains(WidthTable.marks, scalar.value) { return .mark }
    if contains(WidthTable.invisible, scalar.value) { return .invisible }
    return .base(contains(WidthTable.wide, scalar.value) ? 2 : 1)
  }

  private static func contains(_ ends: [UInt32], _ value: UInt32) -> Bool {
    var (low, high) = (0, ends.count / 2)
    while low < high {
      let middle = (low + high) / 2
      if value > ends[2 * middle + 1] { low = middle + 1 } else { high = middle }
    }
    return 2 * low < ends.count && ends[2 * low] <= value
  }

  /// Whether terminals disagree about the columns of the scalar, or move it: pictures, and scripts
  /// that are written from right to left.
  static func isDoubtful(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0x590..<0x900, 0xFB1D..<0xFE00, 0xFE70..<0xFF00, 0x10800..<0x11000, 0x1E800...: true
    default: false
    }
  }

  /// The columns of a text as `Grid.put` shows it. Cost: O(text).
  package static func columns(of text: String, isASCII: Bool = false) -> Int {
    cells(of: text, isASCII: isASCII).reduce(0) { $0 + $1.width }
  }

  /// A text as `Grid.put` shows it, for a line that is not of a grid.
  package static func shown(_ text: String, isASCII: Bool) -> String {
    cells(of: text, isASCII: isASCII).map(\.text).joined()
  }

  /// The most bytes of a cell: further marks on one character are left out.
  private static let mostBytes = 15

  /// The text as cells without a style. Control characters, and in a locale without UTF-8 whatever
  /// is not ASCII, are shown as `\u{1B}`: so no cell has anything that a terminal obeys.
  static func cells(of text: some StringProtocol, isASCII: Bool) -> [Cell] {
    var cells: [Cell] = []
    for scalar in text.unicodeScalars {
      if (0x20..<0x7F).contains(scalar.value) {
        cells.append(Cell(text: String(scalar), width: 1))
        continue
      }
      let isControl = scalar.value < 0x20 || (0x7F..<0xA0).contains(scalar.value)
      if isControl || isASCII {
        let escape = "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
        cells += escape.unicodeScalars.map { Cell(text: String($0), width: 1) }
        continue
      }
      switch role(of: scalar) {
      case .base(let width):
        cells.append(Cell(text: String(scalar), width: width, isDoubtful: isDoubtful(scalar)))
      case .mark where cells.isEmpty: cells.append(Cell(text: "\u{25CC}", width: 1))
      case .mark:
        let last = cells.count - 1
        if cells[last].text.utf8.count + 4 <= mostBytes {
          cells[last].text.unicodeScalars.append(scalar)
        }
        cells[last].isDoubtful = true
      case .invisible: break
      }
    }
    return cells
  }
}
