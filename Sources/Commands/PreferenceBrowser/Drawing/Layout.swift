import TerminalScreen

/// Which rows of a screen show what.
struct Layout: Equatable {
  /// The rows of the list.
  let list: Range<Int>
  /// The rows about the chosen key, below a rule; empty if there is no room.
  let details: Range<Int>
  /// The row of the filter; nil if there is no room.
  let filter: Int?
  /// The row of a line that is edited, or of a command.
  let line: Int?
  /// The row of messages.
  let message: Int

  init(_ size: Grid.Size) {
    let rows = size.rows
    filter = rows > 2 ? 1 : nil
    message = rows - 1
    line = rows > 4 ? rows - 2 : nil
    let first = min(filter.map { $0 + 1 } ?? 1, rows - 1)
    let end = line ?? message
    let about = rows < 10 ? 0 : min(max((rows - 4) * 2 / 5, 3), 20)
    details = (end - about)..<end
    list = first..<max(about == 0 ? end : end - about - 1, first)
  }
}
