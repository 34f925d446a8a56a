/// A screen as a value: rows of cells, and where the cursor is.
package struct Grid: Equatable, Sendable {
  /// A size in rows and columns, at least 1 each and 1,000 at most.
  package struct Size: Equatable, Sendable {
    package let rows: Int
    package let columns: Int

    package init(rows: Int, columns: Int) {
      self.rows = min(max(rows, 1), 1000)
      self.columns = min(max(columns, 1), 1000)
    }
  }

  package let size: Size
  /// Whether the terminal is shown nothing but ASCII.
  package let isASCII: Bool
  /// Where the cursor is; nil if it is hidden.
  package var cursor: (row: Int, column: Int)?
  private(set) var cells: [Cell]

  /// An empty screen.
  package init(_ size: Size, isASCII: Bool = false) {
    (self.size, self.isASCII) = (size, isASCII)
    cells = Array(repeating: .blank, count: size.rows * size.columns)
  }

  func cell(_ row: Int, _ column: Int) -> Cell { cells[row * size.columns + column] }

  /// Puts a text into a row, from a column on. What is beyond the columns, or the row's end, is cut
  /// off; a `~` stands in the last column then. A wide character is never halved. Rows that the grid
  /// does not have are ignored. Cost: O(text), as far as it is shown.
  /// - Returns: the column behind the text.
  @discardableResult
  package mutating func put(
    _ text: String, row: Int, column: Int, columns: Int = .max, style: Style = .plain
  ) -> Int {
    let end = column + min(columns, size.columns - column)
    guard (0..<size.rows).contains(row), column >= 0, column < end else { return column }
    // No cell has more than 16 scalars.
    let beginning = text.unicodeScalars.prefix((end - column + 1) * 16)
    let shown = Width.cells(of: String(String.UnicodeScalarView(beginning)), isASCII: isASCII)
    var next = column
    for (index, cell) in shown.enumerated() {
      let isLast = index == shown.count - 1
      if next + cell.width > end || (!isLast && next + cell.width == end) {
        while next < end { set(.blank, row, &next, style) }
        next = end - 1
        set(Cell(text: "~", width: 1), row, &next, style)
        return end
      }
      set(cell, row, &next, style)
    }
    return next
  }

  /// Gives a part of a row a style, and keeps its text.
  package mutating func paint(row: Int, columns: Range<Int>, _ style: Style) {
    guard (0..<size.rows).contains(row) else { return }
    for column in columns.clamped(to: 0..<size.columns) {
      cells[row * size.columns + column].style = style
    }
  }

  private mutating func set(_ cell: Cell, _ row: Int, _ column: inout Int, _ style: Style) {
    let index = row * size.columns + column
    if cells[index].width == 0 { cells[index - 1] = .blank }
    var cell = cell
    cell.style = style
    cells[index] = cell
    if cell.width == 2 {
      cells[index + 1] = .second
      cells[index + 1].style = style
    }
    column += cell.width
    if column < size.columns, cells[row * size.columns + column].width == 0 {
      cells[row * size.columns + column] = .blank
    }
  }

  /// The rows as text, without blanks at their ends.
  package var text: String {
    (0..<size.rows).map { row in
      let line = (0..<size.columns).map { cell(row, $0).text }.joined()
      return String(line.reversed().drop { $0 == " " }.reversed())
    }.joined(separator: "\n")
  }

  package static func == (left: Grid, right: Grid) -> Bool {
    left.size == right.size && left.cells == right.cells
      && left.cursor?.row == right.cursor?.row && left.cursor?.column == right.cursor?.column
  }
}
