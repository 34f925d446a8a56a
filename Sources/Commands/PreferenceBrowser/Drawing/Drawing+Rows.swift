import PropertyList
import SystemCalls
import TerminalScreen

// The list, and what is known of the chosen key.

extension Drawing {
  /// The columns of a row: where each begins, and how many it has.
  private struct Columns {
    let domain, key, value, source, note: (start: Int, count: Int)

    /// - Parameter width: of the screen.
    init(_ width: Int) {
      let room = max(width - 3, 1)
      // A narrow screen has no domains, which stand below, and no rules.
      let shares = width < 60 ? [0, 45, 33, 22, 0] : [25, 25, 20, 13, 17]
      var start = 3
      var all: [(Int, Int)] = []
      for share in shares {
        let count = room * share / 100
        all.append((start, max(count - 1, 0)))
        start += count
      }
      (domain, key, value) = (all[0], all[1], all[2])
      (source, note) = (all[3], (all[4].0, share(of: all[4], width)))
      func share(of last: (Int, Int), _ width: Int) -> Int { last.1 == 0 ? 0 : width - last.0 }
    }
  }

  static func drawList(_ state: BrowserState, _ layout: Layout, _ grid: inout Grid) {
    let columns = Columns(grid.size.columns)
    if state.table.count == 0, let row = layout.list.first {
      grid.put("   " + emptiness(of: state), row: row, column: 0, style: .dim)
    }
    for (offset, row) in layout.list.enumerated() {
      guard let entry = state.table.row(state.top + offset) else { return }
      draw(entry, state, columns, row, &grid)
    }
  }

  private static func emptiness(of state: BrowserState) -> String {
    if !state.isLoaded { return "reading the preferences" }
    return state.table.all.isEmpty ? "there are no preferences yet" : "no key fits"
  }

  private static func draw(
    _ entry: Entry, _ state: BrowserState, _ columns: Columns, _ row: Int, _ grid: inout Grid
  ) {
    let isChosen = entry.id == state.chosen
    if isChosen { grid.put(">", row: row, column: 0) }
    if state.marked.contains(entry.id) { grid.put("+", row: row, column: 1) }
    let domain = cut(entry.id.domain.string, columns.domain.count)
    let forced = entry.marks.contains(.forced)
    let drifted = entry.marks.contains(.drifted)
    let note = forced ? "forced" : drifted ? "drifted" : entry.note
    let texts = [
      (domain, columns.domain), (entry.id.key.string, columns.key),
      (state.revealed[entry.id] ?? entry.value, columns.value), (entry.source, columns.source),
      (note, columns.note),
    ]
    for (text, column) in texts where column.count > 0 {
      grid.put(text, row: row, column: column.start, columns: column.count)
    }
    if entry.marks.contains(.modified), columns.value.count > 0 {
      let value = columns.value.start..<columns.value.start + columns.value.count
      grid.paint(row: row, columns: value, .bold)
    }
    if isChosen { grid.paint(row: row, columns: 0..<grid.size.columns, .reversed) }
  }

  /// The end of a domain's name, which tells more than its beginning.
  private static func cut(_ name: String, _ columns: Int) -> String {
    name.count <= columns || columns < 2 ? name : "~" + name.suffix(columns - 1)
  }

  static func drawDetails(_ state: BrowserState, _ rows: Range<Int>, _ grid: inout Grid) {
    guard !rows.isEmpty, let id = state.chosen, let entry = state.table[id] else { return }
    drawTitle(entry, state.details, rows.lowerBound, &grid)
    guard let details = state.details else { return }
    let lines = lines(of: details, entry, state, rows.count - 1, grid.size.columns)
    for (row, line) in zip(rows.dropFirst(), lines) { grid.put(line, row: row, column: 0) }
  }

  private static func drawTitle(
    _ entry: Entry, _ details: Details?, _ row: Int, _ grid: inout Grid
  ) {
    let key = grid.put(" \(entry.id.key)", row: row, column: 0, style: .bold)
    let known = details?.title ?? ""
    let title = known.isEmpty ? entry.id.domain.string : known.printable()
    let end = grid.put("  " + title, row: row, column: key)
    guard let rule = details?.rule, !rule.isEmpty else { return }
    let start = max(grid.size.columns - Width.columns(of: rule, isASCII: grid.isASCII) - 1, end + 2)
    grid.put(rule, row: row, column: start)
  }

  /// The lines about the chosen key, as many as there is room for.
  private static func lines(
    of details: Details, _ entry: Entry, _ state: BrowserState, _ room: Int, _ columns: Int
  ) -> [String] {
    let about = wrapped(details.about, columns - 2).prefix(room < 11 ? 2 : 8)
    var lines = room > 3 ? about.map { " " + $0 } : []
    if let problem = details.problem { lines.append(" " + problem) }
    for (index, holder) in details.holders.enumerated() {
      let value =
        entry.marks.contains(.secret) ? state.revealed[entry.id] ?? ValueLine.mask : holder.value
      let shown = index > 0 && entry.marks.contains(.secret) ? ValueLine.mask : value
      let words = [padded(holder.source, 9), padded(String(shown.prefix(60)), 9), holder.file]
      lines.append(" \(index == 0 ? "*" : " ") " + words.joined(separator: " "))
      if index == 0, shown.count > 60 {
        lines.append("             \(state.home == .filter ? "Tab, v" : "v"): the whole value")
      }
    }
    if details.holders.isEmpty { lines.append("   not set") }
    lines += details.changes.map { "   " + $0 }
    if let names = state.declared[entry.id] {
      lines.append("   declared by " + names.joined(separator: ", "))
    }
    return lines
  }

  private static func padded(_ text: String, _ columns: Int) -> String {
    text + String(repeating: " ", count: max(columns - Width.columns(of: text), 0))
  }

  /// A text in lines of at most `width` columns.
  static func wrapped(_ text: String, _ columns: Int) -> [String] {
    var lines: [String] = []
    for word in text.split(whereSeparator: \.isWhitespace).map(String.init) {
      let width = Width.columns(of: word)
      if let last = lines.last, Width.columns(of: last) + width < columns {
        lines[lines.count - 1] = "\(last) \(word)"
      } else {
        lines.append(word)
      }
    }
    return lines
  }
}
