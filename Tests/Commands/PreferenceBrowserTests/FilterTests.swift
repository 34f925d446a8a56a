import PreferenceModel
import PropertyList
import TerminalScreen
import Testing

@testable import PreferenceBrowser

@Suite("The filter and the list of the browser") struct FilterTests {
  static let cases: [(line: String, keys: [String])] = [
    ("", ["TabStyle", "TabWidth", "Token", "TabBar"]),
    ("tabbar", ["TabBar"]), ("WIDTH", ["TabWidth"]), ("columns", ["TabWidth"]),
    ("editor tab", ["TabStyle", "TabWidth"]), ("tab editor", ["TabStyle", "TabWidth"]),
    ("spaces", ["TabStyle"]), ("secret", []), ("@forced", ["TabStyle"]),
    ("@modified tab", ["TabWidth"]), ("@domain:term", ["TabBar"]),
    ("@schema @forced", ["TabStyle"]),
    ("@mod", ["TabStyle", "TabWidth", "Token", "TabBar"]), ("@drifted", []),
    ("tabs", ["TabStyle", "TabBar"]),
  ]

  @Test("what a line shows, and in which order", arguments: cases.indices)
  func filter(_ index: Int) {
    let (line, keys) = Self.cases[index]
    var table = EntryTable()
    table.merge(Example.entries)
    table.filter(Query(line))
    let shown = (0..<table.count).compactMap { table.row($0)?.id.key.string }
    #expect(shown == keys, "\(line)")
  }

  @Test("a name comes before a text, and a whole name before its beginning")
  func ranking() {
    let entries = [
      ("d", "Font", "a size"), ("d", "MySize", ""), ("d", "Size", ""), ("size", "A", ""),
      ("d", "SizeOf", ""),
    ]
    .map {
      Entry(EntryID(DomainName($0), Key($1)), value: "", source: "user", texts: $2, marks: [])
    }
    var table = EntryTable()
    table.merge(entries)
    table.filter(Query("size"))
    #expect(
      (0..<5).compactMap { table.row($0)?.id.key.string } == [
        "Size", "SizeOf", "MySize", "A", "Font",
      ])
  }

  @Test("a longer line finds the same as if it were typed at once")
  func narrowing() {
    var typed = EntryTable()
    typed.merge(Example.entries)
    let line = "tab @schema wid"
    for count in 1...line.count { typed.filter(Query(String(line.prefix(count)))) }
    var whole = EntryTable()
    whole.merge(Example.entries)
    whole.filter(Query(line))
    #expect(typed.shown == whole.shown && whole.count == 1)
  }

  @Test("a key is declared as long as a declaration has it, also when it is read again or new")
  func declared() {
    let new = Entry(EntryID("a", "New"), value: "1", source: "user", marks: [.set])
    var state = Example.state()
    state.type("@declared")
    #expect(state.table.count == 0)
    _ = state.handle(.declarations([Example.width: ["desk"], new.id: ["desk"]], drifted: []))
    #expect(state.table.count == 1)
    _ = state.handle(.changed([Example.entries[1], new], gone: []))
    #expect(state.table.count == 2)
    _ = state.handle(.declarations([new.id: ["desk"]], drifted: [new.id]))
    #expect(state.table.count == 1 && state.screen.contains("drifted"))
    _ = state.handle(.declarations([:], drifted: []))
    #expect(state.table.count == 0)
  }

  @Test("what has changed since the browser was opened is found; what is only read again is not")
  func changed() {
    var state = Example.state()
    state.type("@changed")
    #expect(state.table.count == 0)
    let new = Entry(Example.width, value: "9", source: "user", marks: [.set])
    _ = state.handle(.changed([new, Example.entries[0]], gone: []))
    #expect(state.table.count == 1 && state.chosen == Example.width)
    _ = state.handle(.changed([new], gone: []))
    #expect(state.table.count == 1)
    _ = state.handle(.changed([], gone: [Example.width]))
    #expect(state.table.count == 0)
  }

  @Test("a change behind what a row shows is one; a row that was not read yet has not changed")
  func changedBehind() {
    func entry(_ end: String) -> Entry {
      let text = String(repeating: "x", count: 600) + end
      return Entry(
        Example.width, value: ValueLine.short(.string(text)), whole: .string(text), source: "user",
        marks: [.set])
    }
    var state = BrowserState(Grid.Size(rows: 24, columns: 80))
    state.type("@changed")
    _ = state.handle(.changed([entry("a")], gone: []))
    _ = state.handle(.found(Example.entries.filter { $0.id != Example.width }))
    _ = state.handle(.loaded)
    _ = state.handle(.changed([entry("a")], gone: []))
    #expect(state.table.count == 0)
    _ = state.handle(.changed([entry("b")], gone: []))
    #expect(state.table.count == 1)
  }

  @Test("the cursor stays on its key while others come and go")
  func live() {
    var state = Example.state()
    state.type(.key(.tab), .key(.down))
    #expect(state.chosen == Example.width)
    let first = Entry(EntryID("a", "First"), value: "1", source: "user", marks: [.set])
    _ = state.handle(.changed([first], gone: [Example.style]))
    #expect(state.chosen == Example.width)
    _ = state.handle(.changed([], gone: [Example.width]))
    #expect(state.chosen == Example.entries[2].id)
  }

  @Test("keys that come before an answer are for what the answer makes")
  func queue() {
    var state = Example.state()
    state.type("tabw")
    state.type(.key(.enter), .control("u"), .text("9"))
    #expect(state.isWaiting && state.filter.text == "tabw")
    let subject = Example.integer()
    _ = state.handle(.opened(subject))
    #expect(state.screen.contains("\n TabWidth: 9 "))
    #expect(state.type(.key(.enter)) == [.set(subject, 9)])
  }

  @Test(
    "the line of a removal stays after its row has gone, until another key is chosen; u and y work")
  func lines() {
    var state = Example.state()
    state.type("tabw")
    state.type(.key(.tab))
    #expect(state.type(.key(.delete)) == [.remove(Example.width)])
    let step = OwnChange.Step(location: Location(.user, Example.editor), before: nil, after: nil)
    let change = OwnChange(id: Example.width, steps: [step])
    let line = "defaults delete com.example.editor TabWidth"
    _ = state.handle(.made(change, line: line, message: "removed"))
    _ = state.handle(.changed([], gone: [Example.width]))
    #expect(state.chosen == nil)
    #expect(state.screen.contains("\n \(line)\n removed; u takes it back"))
    #expect(state.type("y") == [.copy(line)] && state.printed == [line])
    #expect(state.type("u") == [.undo(change)])
    _ = state.handle(.refused("refused: the store does not answer"))
    // It is not taken back, so it is still the last one.
    #expect(state.type("u") == [.undo(change)])
    _ = state.handle(.undone(change, .made(nil, line: "", message: "taken back")))
    #expect(state.shownLine == nil && state.type("u").isEmpty)
  }

  @Test("an answer that is not waited for any more changes nothing")
  func late() {
    var state = Example.state()
    state.type(.key(.enter), .key(.escape))
    _ = state.handle(.opened(Example.integer()))
    #expect(state.mode == .filter && !state.isWaiting)
  }

  static let edits: [(name: String, inputs: [Input], text: String)] = [
    (
      "the beginning and the end", [.control("a"), .text("x"), .control("e"), .text("y")],
      "xone twoy"
    ),
    ("a word is cut and pasted", [.control("w"), .control("a"), .control("y")], "twoone "),
    ("the rest is cut", [.control("a"), .alt("f"), .control("k")], "one"),
    ("all before the cursor is cut", [.key(.left), .control("u")], "o"),
    ("by characters", [.key(.left), .key(.backspace), .key(.delete)], "one t"),
    ("by words", [.alt("b"), .alt("d"), .alt("\u{8}")], ""),
    ("a mark joins its character", [.text("\u{301}"), .key(.backspace)], "one tw"),
  ]

  @Test("the keys of readline", arguments: edits.indices)
  func line(_ index: Int) {
    var line = LineEditor("one two")
    for input in Self.edits[index].inputs { _ = line.handle(input) }
    #expect(line.text == Self.edits[index].text, "\(Self.edits[index].name)")
  }

  static let values: [(line: String, kind: Kind, value: Value?)] = [
    ("8", .integer, 8), ("8x", .integer, nil), ("1.5", .real, 1.5), ("true", .boolean, true),
    (" a ", .string, " a "), ("0aFF", .data, .data([0x0A, 0xFF])), ("0a f", .data, nil),
    ("soon", .date, nil),
  ]

  @Test("values of lines", arguments: values.indices)
  func value(_ index: Int) {
    let (line, kind, value) = Self.values[index]
    #expect((try? ValueLine.value(of: line, as: kind).get()) == value)
  }

  @Test("values as short texts")
  func short() {
    #expect(ValueLine.short("") == "\"\"")
    #expect(ValueLine.short("a\u{1B}\n") == "a\\u{1B}\\u{A}")
    #expect(ValueLine.short(.data([1, 2])) == "2 bytes 0102")
    #expect(ValueLine.short(.string(String(repeating: "日", count: 1_000_000))).utf8.count <= 512)
    #expect(ValueLine.editable("a\nb") == nil && ValueLine.editable("a") == "a")
  }
}
