extension Grid {
  /// The bytes that make a terminal which shows `old` show this grid; nothing if they are the same.
  /// Only cells that differ are sent. If `old` is nil (not known) or has a different size,
  /// the screen is cleared first.
  package func difference(from old: Grid?, isColored: Bool) -> [UInt8] {
    var output = Output(isColored: isColored)
    let known = old?.size == size ? old : nil
    if known == self { return [] }
    if known == nil { output.text += "\u{1B}[0m\u{1B}[2J" }
    for row in 0..<size.rows { add(row, known, to: &output) }
    return output.end(cursor)
  }

  private func add(_ row: Int, _ old: Grid?, to output: inout Output) {
    var known = old
    if let old, old.isDoubtful(row), !hasSameRow(row, as: old) {
      // Where the terminal has put its characters is not known.
      output.clear(row: row, column: 0)
      known = Grid(size)
    }
    let end = lastColumn(of: row, from: known)
    var column = 0
    while column < end.column {
      let cell = cell(row, column)
      let columns = max(cell.width, 1)
      if known?.cell(row, column) != cell
        || (columns == 2 && known?.cell(row, column + 1).width != 0)
      {
        output.add(cell, row: row, column: column)
      }
      column += columns
    }
    if end.isCleared { output.clear(row: row, column: end.column) }
  }

  private func isDoubtful(_ row: Int) -> Bool {
    (0..<size.columns).contains { cell(row, $0).isDoubtful }
  }

  private func hasSameRow(_ row: Int, as other: Grid) -> Bool {
    (0..<size.columns).allSatisfy { cell(row, $0) == other.cell(row, $0) }
  }

  /// The column behind the last one that is to be sent, and whether the rest of the row is to be
  /// cleared, which costs less than blanks.
  private func lastColumn(of row: Int, from known: Grid?) -> (column: Int, isCleared: Bool) {
    var end = size.columns
    while end > 0, cell(row, end - 1) == .blank { end -= 1 }
    guard let known else { return (end, false) }
    let isBlank = (end..<size.columns).allSatisfy { known.cell(row, $0) == .blank }
    return (end, !isBlank)
  }

  /// What is sent, and what the terminal's state is then.
  private struct Output {
    let isColored: Bool
    var text = ""
    /// Where the terminal's cursor is; nil if it is not known.
    var position: (row: Int, column: Int)?
    var style: Style?

    mutating func add(_ cell: Cell, row: Int, column: Int) {
      move(row, column)
      set(cell.style)
      text += cell.text
      // At the right edge terminals differ, too.
      position = cell.isDoubtful ? nil : (row, column + cell.width)
    }

    mutating func clear(row: Int, column: Int) {
      move(row, column)
      set(.plain)
      text += "\u{1B}[K"
    }

    private mutating func move(_ row: Int, _ column: Int) {
      if let position, position.row == row, position.column == column { return }
      text += "\u{1B}[\(row + 1);\(column + 1)H"
      position = (row, column)
    }

    private mutating func set(_ new: Style) {
      if style == new { return }
      text += new.sequence(isColored: isColored)
      style = new
    }

    mutating func end(_ cursor: (row: Int, column: Int)?) -> [UInt8] {
      if style != .plain { set(.plain) }
      if let cursor {
        text += "\u{1B}[\(cursor.row + 1);\(cursor.column + 1)H\u{1B}[?25h"
      } else {
        text += "\u{1B}[?25l"
      }
      return Array(text.utf8)
    }
  }
}
