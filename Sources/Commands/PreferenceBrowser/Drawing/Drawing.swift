import TerminalScreen

/// Draws a state: a pure function. Cost: O(the screen).
enum Drawing {
  /// The screen of a state.
  static func grid(of state: BrowserState) -> Grid {
    var grid = Grid(state.size, isASCII: state.isASCII)
    let layout = Layout(state.size)
    drawHead(state, &grid)
    if case .menu(let menu) = state.mode {
      draw(menu, state, layout, &grid)
    } else {
      drawFilter(state, layout, &grid)
      drawList(state, layout, &grid)
      drawRule(layout, &grid)
      drawDetails(state, layout.details, &grid)
    }
    drawBottom(state, layout, &grid)
    return grid
  }

  private static func drawHead(_ state: BrowserState, _ grid: inout Grid) {
    let end = grid.put(" " + state.options.head, row: 0, column: 0, style: .bold)
    var right = "\(state.table.count) of \(state.table.all.count) keys"
    if !state.marked.isEmpty { right = "\(state.marked.count) marked, " + right }
    if !state.isLoaded { right = "reading, " + right }
    let column = grid.size.columns - right.count - 1
    if column > end { grid.put(right, row: 0, column: column) }
  }

  private static func drawFilter(_ state: BrowserState, _ layout: Layout, _ grid: inout Grid) {
    guard let row = layout.filter else { return }
    grid.put("/", row: row, column: 1, style: state.mode == .filter ? .bold : .plain)
    if state.filter.isEmpty {
      let hint = "type to find a key; @modified @changed @forced @schema"
      grid.put(hint, row: row, column: 3, style: .dim)
    }
    draw(state.filter, row: row, column: 3, isActive: state.mode == .filter, &grid)
  }

  /// Draws a line, as much of it as has room around its cursor.
  private static func draw(
    _ line: LineEditor, row: Int, column: Int, columns: Int = .max, isActive: Bool,
    isMasked: Bool = false, _ grid: inout Grid
  ) {
    let room = min(columns, grid.size.columns - column)
    guard room > 1 else { return }
    let characters = isMasked ? line.characters.map { _ in "*" } : line.characters
    let widths = characters.map { Width.columns(of: String($0), isASCII: grid.isASCII) }
    var (start, before) = (line.cursor, 0)
    while start > 0, before + widths[start - 1] < room {
      (start, before) = (start - 1, before + widths[start - 1])
    }
    grid.put(String(characters[start...]), row: row, column: column, columns: room)
    if isActive { grid.cursor = (row, column + before) }
  }

  private static func drawRule(_ layout: Layout, _ grid: inout Grid) {
    guard !layout.details.isEmpty else { return }
    let line = String(repeating: "-", count: grid.size.columns)
    grid.put(line, row: layout.details.lowerBound - 1, column: 0, style: .dim)
  }

  private static func drawBottom(_ state: BrowserState, _ layout: Layout, _ grid: inout Grid) {
    defer { drawMessage(state, layout, &grid) }
    guard let row = layout.line ?? (isEditing(state) ? layout.message : nil) else { return }
    switch state.mode {
    case .editing(let editing):
      let head = "\(editing.isName ? "copy to" : "\(editing.subject.id.key)"): "
      let column = grid.put(
        " " + head, row: row, column: 0, columns: grid.size.columns / 3, style: .bold)
      let rule = editing.subject.rule
      let side = grid.size.columns - rule.count - 1
      let isBeside = side > column + 20
      if isBeside { grid.put(rule, row: row, column: side, style: .dim) }
      draw(
        editing.line, row: row, column: column, columns: isBeside ? side - column - 1 : .max,
        isActive: true, isMasked: editing.subject.isSecret, &grid)
    case .asking(let question, _): grid.put(" " + question, row: row, column: 0, style: .bold)
    case .menu: break
    case .filter, .list:
      if let line = state.shownLine { grid.put(" " + line, row: row, column: 0, style: .dim) }
    }
  }

  private static func isEditing(_ state: BrowserState) -> Bool {
    switch state.mode {
    case .editing, .asking: true
    case .filter, .list, .menu: false
    }
  }

  private static func drawMessage(_ state: BrowserState, _ layout: Layout, _ grid: inout Grid) {
    guard let message = state.message else {
      grid.put(" " + hint(state), row: layout.message, column: 0, style: .dim)
      return
    }
    let style = message.isRefusal ? Style(.red, isBold: true) : .plain
    let lines = wrapped(message.text, grid.size.columns - 2).prefix(3)
    // What does not fit into one row stands over those above, and all of it above what is edited.
    var end = layout.message
    if lines.count > 1, isEditing(state), let line = layout.line {
      grid.put(" " + hint(state), row: end, column: 0, style: .dim)
      end = line - 1
    }
    let blanks = String(repeating: " ", count: grid.size.columns)
    for (row, line) in zip((0...end).reversed(), lines.reversed()) {
      grid.put(blanks, row: row, column: 0)
      grid.put(" " + line, row: row, column: 0, style: style)
    }
  }

  private static func hint(_ state: BrowserState) -> String {
    if state.isWaiting { return "asking prefsd; Escape gives up" }
    let isReadOnly = state.options.readOnly != nil
    return switch state.mode {
    case .filter where isReadOnly: "Down: the list   F1: help   Ctrl-C: leave"
    case .filter: "Down: the list   Enter: change   F1: help   Ctrl-C: leave"
    case .list where isReadOnly: "x: export   y: copy the line   /: find   ?: help   q: leave"
    case .list:
      "Enter: change  Delete: remove  u: undo  x: export  /: find  ?: help  q: leave"
    case .editing(let editing):
      "Enter: \(editing.isName ? "copy" : "set") it   Escape: give up"
    case .menu(let menu) where menu.isRead: "type to find a line   Escape: back"
    case .menu: "Enter: choose   Escape: give up"
    case .asking: "y: yes   any other key: no"
    }
  }

  private static func draw(
    _ menu: Menu, _ state: BrowserState, _ layout: Layout, _ grid: inout Grid
  ) {
    if let row = layout.filter {
      let column = grid.put(" \(menu.title) ", row: row, column: 0, style: .bold)
      draw(menu.line, row: row, column: column, isActive: true, &grid)
    }
    let rows = layout.list.lowerBound..<layout.message
    let shown = menu.shown
    if shown.isEmpty { grid.put("   nothing fits", row: rows.lowerBound, column: 0, style: .dim) }
    let top = max(min(menu.chosen - rows.count / 2, shown.count - rows.count), 0)
    for (row, index) in zip(rows, top..<max(shown.count, top)) {
      let isChosen = index == menu.chosen
      grid.put((isChosen ? " > " : "   ") + shown[index].text, row: row, column: 0)
      if isChosen { grid.paint(row: row, columns: 0..<grid.size.columns, .reversed) }
    }
  }
}
