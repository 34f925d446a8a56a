import PreferenceDeclarations
import PropertyList
import TerminalScreen

/// A list of things to choose from, which a typed text narrows.
struct Menu: Equatable, Sendable {
  /// What a choice does.
  enum Action: Equatable, Sendable {
    case set(Subject, Value)
    /// A value that the menu does not have is typed.
    case type(Subject)
    case undo(EntryID, UInt64)
    case export([EntryID], RecordedForm)
    /// Nothing: the menu is read.
    case none
  }

  struct Item: Equatable, Sendable {
    let text: String
    let action: Action
  }

  let title: String
  let items: [Item]
  private(set) var line = LineEditor()
  private(set) var chosen: Int

  init(_ title: String, _ items: [Item], chosen: Int = 0) {
    (self.title, self.items, self.chosen) = (title, items, chosen)
  }

  /// A value's text to be read. What is longer than a row is in several. Cost: O(text).
  init(reading text: String, of key: Key, columns: Int, isASCII: Bool) {
    var items: [Item] = []
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
      var (row, room) = ("", columns - 4)
      for character in line.description.printable() {
        let width =
          character.isASCII ? 1 : Width.columns(of: String(character), isASCII: isASCII)
        if width > room, !row.isEmpty {
          items.append(Item(text: row, action: .none))
          (row, room) = ("", columns - 4)
        }
        row.append(character)
        room -= width
      }
      items.append(Item(text: row, action: .none))
    }
    self.init("\(key)", items)
  }

  /// Whether there is nothing to choose.
  var isRead: Bool { items.allSatisfy { $0.action == .none } }

  /// The items that have every word of the line.
  var shown: [Item] {
    let words = line.text.lowercased().split(separator: " ")
    if words.isEmpty { return items }
    return items.filter { item in
      let text = item.text.lowercased()
      return words.allSatisfy { text.contains($0) }
    }
  }

  /// What the chosen item does; nil if nothing fits the line.
  var action: Action? {
    let shown = shown
    return shown.indices.contains(chosen) ? shown[chosen].action : nil
  }

  /// Moves, or narrows the items.
  mutating func handle(_ input: Input) {
    switch input {
    case .key(.down), .control("n"), .wheel(isUp: false), .key(.tab): move(1)
    case .key(.up), .control("p"), .wheel(isUp: true), .key(.backTab): move(-1)
    case .key(.pageDown): move(10)
    case .key(.pageUp): move(-10)
    default: if line.handle(input) { chosen = 0 }
    }
  }

  private mutating func move(_ count: Int) {
    chosen = max(min(chosen + count, shown.count - 1), 0)
  }

  /// What the keys do.
  static let help: Menu = {
    var lines = [
      "type            finds keys: names, titles, descriptions, values, in any order",
      "Down, Tab       to the list, where letters are commands; / and Tab lead back",
      "Enter           changes the value: toggles a boolean, asks for all others",
      "j k g G         down, up, to the first, to the last; also arrows, Home, End",
      "Ctrl-N Ctrl-P   down, up, also in the filter; PageDown, PageUp, wheel too",
      "e               changes the value in $EDITOR",
      "c               copies the key to another name, or to another domain",
      "Delete, d       removes the value from where it is set",
      "u               takes back the last change that was made here",
      "U               takes back a change of the key, chosen from its history",
      "Space           marks the key",
      "x               the marked keys as commands, declaration, Ansible or profile",
      "y               copies the line that is shown; it is printed at the end, too",
      "r               shows a secret, or hides it again",
      "v               shows the whole value; typing finds lines of it",
      "Ctrl-A Ctrl-E   in a line: to its beginning, to its end",
      "Ctrl-U K W Y    in a line: cut what is before, behind, a word; paste it",
      "Escape          gives up; in the list: to the filter; there: empties it",
      "Ctrl-L          draws the screen again",
      "Ctrl-Z          stops; fg comes back",
      "q, Ctrl-C       leave",
    ]
    lines += Query.narrowings.map { narrowing in
      let blanks = String(repeating: " ", count: max(16 - narrowing.word.count, 1))
      return narrowing.word + blanks + "only keys \(narrowing.meaning)"
    }
    lines.append("@domain:NAME    only keys of domains with this in their names")
    return Menu("Keys", lines.map { Item(text: $0, action: .none) })
  }()
}
