import PreferenceModel
import PropertyList
import TerminalScreen

@testable import PreferenceBrowser

/// The state that most tests begin with: four keys, of which one is forced, and one only a schema has.
enum Example {
  static let editor: DomainName = "com.example.editor"
  static let width = EntryID(editor, "TabWidth")
  static let style = EntryID(editor, "TabStyle")

  static let entries = [
    Entry(
      style, value: "spaces", source: "managed", note: "one of spaces, tabs",
      texts: "Style of a tab. What the Tab key inserts.", marks: [.set, .forced, .known]),
    Entry(
      width, value: "8", source: "user", note: "1 to 16",
      texts: "Width of a tab Columns of a tab.", marks: [.set, .modified, .known]),
    Entry(
      EntryID(editor, "Token"), value: ValueLine.mask, source: "user", marks: [.set, .secret]),
    Entry(
      EntryID("com.example.term", "TabBar"), value: "true", source: "schema", texts: "Show tabs",
      marks: [.set, .known]),
  ]

  static let details = Details(
    id: style, title: "Style of a tab", rule: "string, one of spaces, tabs",
    about: "What the Tab key inserts.",
    holders: [
      .init(
        source: "managed", value: "spaces",
        file: "/etc/preferences/managed/com.example.editor.plist"),
      .init(source: "user", value: "tabs", file: "~/.config/com.example.editor.plist"),
    ],
    changes: ["2026-11-20T10:00:00Z (none) -> tabs  mount, /usr/bin/vim"])

  /// A state that has read these rows.
  static func state(
    _ rows: Int = 24, _ columns: Int = 80, entries: [Entry] = entries,
    options: BrowserOptions = BrowserOptions()
  ) -> BrowserState {
    var state = BrowserState(Grid.Size(rows: rows, columns: columns), options)
    _ = state.handle(.found(entries))
    _ = state.handle(.loaded)
    return state
  }

  static func integer(_ value: Value? = 8, choices: [Subject.Choice] = []) -> Subject {
    Subject(
      id: width, value: value, location: Location(.user, editor), expected: value, kind: .integer,
      rule: "integer, 1 to 16", choices: choices)
  }
}

extension BrowserState {
  /// Types inputs, and returns what is to be done.
  @discardableResult
  mutating func type(_ inputs: Input...) -> [Effect] {
    inputs.flatMap { handle(.input($0)) }
  }

  /// Types a text, character by character.
  @discardableResult
  mutating func type(_ text: String) -> [Effect] {
    text.flatMap { handle(.input(.text(String($0)))) }
  }

  /// What the screen shows.
  var screen: String { Drawing.grid(of: self).text }
}
