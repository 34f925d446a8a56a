import Foundation
import PreferenceModel
import PropertyList
import Support
import TerminalScreen
import Testing

@testable import PreferenceBrowser

/// What states look like, at several sizes.
@Suite("Screens of the browser") struct ScreenTests {
  @Test("what a filter finds, and the first key below it")
  func found() {
    var state = Example.state()
    state.type("tab")
    _ = state.handle(.described(Example.details))
    #expect(
      state.screen == """
         prefs                                                              3 of 4 keys
         / tab
        >  com.example.editor TabStyle           spaces         managed   forced
           com.example.editor TabWidth           8              user      1 to 16
           com.example.term   TabBar             true           schema








        --------------------------------------------------------------------------------
         TabStyle  Style of a tab                           string, one of spaces, tabs
         What the Tab key inserts.
         * managed   spaces    /etc/preferences/managed/com.example.editor.plist
           user      tabs      ~/.config/com.example.editor.plist
           2026-11-20T10:00:00Z (none) -> tabs  mount, /usr/bin/vim



         prefs explain com.example.editor TabStyle
         Down: the list   Enter: change   F1: help   Ctrl-C: leave
        """)
  }

  @Test("a small screen has no domains")
  func small() {
    var state = Example.state(12, 40)
    state.type("tab")
    _ = state.handle(.described(Example.details))
    #expect(
      state.screen == """
         prefs                      3 of 4 keys
         / tab
        >  TabStyle        spaces      managed
           TabWidth        8           user
           TabBar          true        schema

        ----------------------------------------
         TabStyle  Style of a tab  string, one ~
         * managed   spaces    /etc/preferences~
           user      tabs      ~/.config/com.ex~
         prefs explain com.example.editor TabSt~
         Down: the list   Enter: change   F1: h~
        """)
  }

  @Test("a large screen has the same, with more room")
  func large() {
    var state = Example.state(60, 200)
    state.type("tab")
    _ = state.handle(.described(Example.details))
    let rows = state.screen.split(separator: "\n", omittingEmptySubsequences: false)
    #expect(rows.count == 60 && rows.allSatisfy { $0.count <= 200 })
    #expect(rows[2].hasPrefix(">  com.example.editor") && rows[2].hasSuffix("forced"))
    #expect(rows[37] == String(repeating: "-", count: 200)[...])
    #expect(rows[38].hasSuffix("string, one of spaces, tabs"))
    #expect(rows[40] == " * managed   spaces    /etc/preferences/managed/com.example.editor.plist")
  }

  @Test("a refused value stays where it was typed, with the reason below")
  func refused() {
    var state = Example.state()
    state.type("tabw")
    #expect(state.type(.key(.enter)) == [.open(Example.width)])
    _ = state.handle(.opened(Example.integer()))
    let line = state.screen.split(separator: "\n")
    #expect(
      line[line.count - 2]
        == " TabWidth: 8                                                   integer, 1 to 16")
    state.type(.control("u"), .text("x"), .key(.enter))
    #expect(state.screen.contains(" TabWidth: x "))
    #expect(state.screen.hasSuffix("\n refused: the text is not an integer"))
    state.type(.control("u"))
    state.type("17")
    #expect(state.type(.key(.enter)) == [.set(Example.integer(), 17)])
    state.type("4")
    _ = state.handle(.refused("refused: 17 is more than 16"))
    #expect(state.screen.contains(" TabWidth: 174 "))
    #expect(state.screen.hasSuffix("\n refused: 17 is more than 16"))
    state.type(.key(.escape))
    #expect(state.mode == .filter && state.filter.text == "tabw")
  }

  @Test("an answer that was given up answers no later question")
  func givenUp() {
    let subject = Subject(
      id: Example.style, value: true, location: Location(.user, Example.editor), expected: true,
      kind: .boolean, rule: "boolean")
    var state = Example.state()
    state.type("tabstyle")
    #expect(state.type(.key(.enter)) == [.open(Example.style)])
    state.type(.key(.escape), .control("u"))
    state.type("tabwidth")
    #expect(state.type(.key(.enter)) == [.open(Example.width)])
    // It would toggle a key that is not chosen any more.
    #expect(state.handle(.opened(subject)).isEmpty && state.isWaiting)
    _ = state.handle(.opened(Example.integer()))
    #expect(!state.isWaiting && state.screen.contains(" TabWidth: 8 "))
  }

  @Test("a refusal that is longer than a row takes several, and hides nothing that is edited")
  func longRefusal() {
    let text =
      "refused: com.example.editor TabStyle: an administrator has set it in /etc/preferences"
    var state = Example.state(24, 50)
    state.type(.key(.enter))
    _ = state.handle(.refused(text))
    let end =
      "\n refused: com.example.editor TabStyle: an\n administrator has set it in /etc/preferences"
    #expect(state.screen.hasSuffix(end))
    state.type(.key(.enter))
    _ = state.handle(.opened(Example.integer()))
    state.type(.key(.enter))
    _ = state.handle(.refused(text))
    #expect(
      state.screen.hasSuffix(
        end + "\n TabWidth: 8                     integer, 1 to 16"
          + "\n Enter: set it   Escape: give up"))
  }

  @Test("an empty store, a store that is being read, and a filter that fits nothing say so")
  func empty() {
    #expect(Example.state(entries: []).screen.contains("\n   there are no preferences yet\n"))
    let reading = BrowserState(Grid.Size(rows: 24, columns: 80))
    #expect(reading.screen.contains("reading, 0 of 0 keys"))
    var state = Example.state()
    state.type("nothing")
    #expect(state.screen.contains("0 of 4 keys") && state.screen.contains("\n   no key fits\n"))
  }

  @Test("menus: the help, which typing searches, and the values of a key")
  func menus() {
    var state = Example.state()
    state.type(.key(.tab), .text("?"))
    #expect(state.screen.contains("\n > type            finds keys"))
    #expect(Menu.help.items.allSatisfy { $0.text.count <= 77 }, "80 columns have room for 77")
    state.type("undo")
    state.type(.control("u"))
    state.type("history")
    #expect(state.screen.contains("\n > U               takes back a change of the key"))
    #expect(!state.screen.contains("finds keys"))
    state.type(.key(.escape), .key(.enter))
    let choices = [Subject.Choice(value: 2, text: "2"), Subject.Choice(value: 8, text: "8  wide")]
    let subject = Example.integer(choices: choices)
    _ = state.handle(.opened(subject))
    #expect(state.screen.contains("\n   2\n > 8  wide\n   another one\n"))
    #expect(state.type(.key(.up), .key(.enter)) == [.set(subject, 2)])
  }

  @Test("the whole value, which typing searches; nothing in it is obeyed, or lost at the edge")
  func reading() {
    var state = Example.state(24, 40)
    state.type(.key(.tab))
    #expect(state.type("v") == [.view(Example.style)])
    let wide = String(repeating: "日", count: 20)
    let long = (0..<9).map { "\($0)23456789" }.joined()
    _ = state.handle(.viewed(Example.style, "one\n\u{1B}[2J two\n\(long)\n\(wide)"))
    #expect(
      state.screen.hasPrefix(
        """
         prefs                      4 of 4 keys
         TabStyle
         > one
           \\u{1B}[2J two
           \(long.prefix(36))
           \(long.dropFirst(36).prefix(36))
           \(long.dropFirst(72))
           \(wide.prefix(18))
           日日

        """))
    #expect(state.screen.hasSuffix("\n type to find a line   Escape: back"))
    state.type("two")
    #expect(state.screen.contains("\n > \\u{1B}[2J two\n\n"))
    #expect(state.type(.key(.escape)).isEmpty && state.mode == .list)
  }

  @Test("rows of a value that is read are as wide as the screen, whatever its characters take")
  func rowsOfReading() {
    func rows(_ text: String, isASCII: Bool = false) -> [String] {
      Menu(reading: text, of: "K", columns: 40, isASCII: isASCII).items.map(\.text)
    }
    let accents = String(repeating: "é", count: 20)
    #expect(rows(accents) == [accents])
    // Each is \u{E9} there.
    #expect(rows(accents, isASCII: true).map(\.count) == [6, 6, 6, 2])
    let mixed = String(repeating: "x", count: 34) + "日日"
    #expect(rows(mixed) == [String(mixed.dropLast()), "日"] && rows("\n") == ["", ""])
  }

  @Test("a value that is cut says how the whole one is shown")
  func cutValue() {
    var state = Example.state()
    var details = Example.details
    details.holders = [.init(source: "user", value: String(repeating: "x", count: 99), file: "f")]
    _ = state.handle(.described(details))
    #expect(state.screen.contains("\n             Tab, v: the whole value\n"))
  }

  @Test("c asks for the name of a copy, and keeps it when it is refused")
  func copy() {
    var state = Example.state()
    state.type(.key(.tab), .text("c"))
    let line = " copy to: com.example.editor TabStyle"
    #expect(state.screen.contains("\n\(line)    "))
    #expect(state.screen.hasSuffix("\n Enter: copy it   Escape: give up"))
    state.type(.control("u"))
    state.type("com.example.term")
    #expect(state.type(.key(.enter)).isEmpty)
    #expect(state.screen.hasSuffix("\n refused: type a domain, a blank and a key"))
    state.type(" Tab Style")
    let new = EntryID("com.example.term", "Tab Style")
    #expect(state.type(.key(.enter)) == [.copyKey(Example.style, new)])
    _ = state.handle(.refused("refused: it is set already"))
    #expect(state.screen.contains("\n copy to: com.example.term Tab Style "))
  }

  @Test(
    "the names of a copy",
    arguments: [
      ("-g K", EntryID(.global, "K")), ("Apple Global Domain My Key", EntryID(.global, "My Key")),
      ("My App Big Font", EntryID("My App", "Big Font")), ("My Font", EntryID("My", "Font")),
      (" d.plist K", EntryID("d", "K")),
    ])
  func copyNames(_ line: String, _ new: EntryID) {
    let id = EntryID("My App", "Font")
    var state = Example.state(entries: [Entry(id, value: "1", source: "user", marks: [.set])])
    state.type(.key(.tab), .text("c"), .control("u"))
    state.type(line)
    #expect(state.type(.key(.enter)) == [.copyKey(id, new)])
  }

  @Test("a question")
  func question() {
    let entry = Entry(Example.width, value: "8", source: "user", marks: [.set, .required])
    var state = Example.state(entries: [entry])
    state.type(.key(.tab), .key(.delete))
    #expect(state.screen.contains(" The schema says that TabWidth is required. Remove it? y or n"))
    #expect(state.type("n").isEmpty && state.mode == .list)
    state.type(.key(.delete))
    #expect(state.type("y") == [.remove(Example.width)])
  }

  @Test(
    "read only: every change says why not", arguments: [Input.key(.enter), .text("d"), .text("u")])
  func readOnly(_ input: Input) {
    var options = BrowserOptions()
    options.moment = .number(7)
    var state = Example.state(options: options)
    state.type(.key(.tab))
    #expect(!state.screen.contains("Enter: change"))
    #expect(state.type(input).isEmpty)
    #expect(state.screen.hasPrefix(" prefs at 7, read only "))
    #expect(state.screen.hasSuffix("\n refused: this is the past, which cannot be changed"))
  }

  @Test("the head says whose keys are shown, and the line shows the key of that user")
  func head() {
    var options = BrowserOptions()
    (options.user, options.domain) = ("ada", Example.editor)
    var state = Example.state(options: options)
    #expect(state.screen.hasPrefix(" prefs com.example.editor of ada, read only "))
    #expect(state.screen.contains("\n prefs explain --for ada com.example.editor TabStyle\n"))
    options.moment = .number(7)
    state = Example.state(options: options)
    #expect(state.screen.contains("\n prefs read --at 7 com.example.editor TabStyle\n"))
    options = BrowserOptions()
    options.place = .host
    #expect(Example.state(options: options).screen.hasPrefix(" prefs in host "))
  }

  @Test("every size has a screen")
  func sizes() {
    for rows in 1...12 {
      for columns in [1, 2, 3, 9, 30, 61] {
        var state = Example.state(rows, columns)
        state.type("t")
        _ = state.handle(.described(Example.details))
        let lines = state.screen.split(separator: "\n", omittingEmptySubsequences: false)
        #expect(lines.count == rows && lines.allSatisfy { $0.count <= columns })
      }
    }
  }

  @Test("a secret is masked until it is asked for, also while it is typed")
  func secret() {
    let id = Example.entries[2].id
    var state = Example.state()
    state.type("token")
    state.type(.key(.tab))
    #expect(state.screen.contains(" (secret) "))
    #expect(state.type("r") == [.reveal(id)])
    _ = state.handle(.revealed(id, "abc"))
    #expect(state.screen.contains(" abc "))
    state.type("r")
    #expect(!state.screen.contains(" abc "))
    state.type(.key(.enter))
    let subject = Subject(
      id: id, value: "abc", location: .init(.user, Example.editor), expected: "abc", kind: .string,
      rule: "string", isSecret: true)
    _ = state.handle(.opened(subject))
    state.type("new")
    #expect(state.screen.contains("\n Token: *** ") && !state.screen.contains("new"))
    #expect(state.type(.key(.enter)) == [.set(subject, "new")])
  }

  @Test("the picture in the README is what the browser shows")
  func picture() throws {
    var state = Example.state(12, 84)
    state.type("tab")
    _ = state.handle(.described(Example.details))
    let page = try String(
      contentsOf: Program.package.appendingPathComponent("README.md"), encoding: .utf8)
    for line in state.screen.split(separator: "\n") { #expect(page.contains(line)) }
  }

  @Test("a keystroke costs little: at most 2 kB for another list; nothing where nothing changes")
  func bytes() {
    let entries = (0..<500).map { number in
      Entry(
        EntryID(DomainName("com.example.application\(number % 20)"), Key("Key\(number)")),
        value: "value \(number * 7919)", source: "user", note: "0 to 100", marks: [.set, .modified])
    }
    var state = Example.state(entries: entries)
    var old = Drawing.grid(of: state)
    for text in ["1", "7", "3"] {
      state.type(text)
      let new = Drawing.grid(of: state)
      #expect(new.difference(from: old, isColored: true).count <= 2048)
      old = new
    }
    _ = state.handle(.changed([entries[0]], gone: []))
    #expect(Drawing.grid(of: state).difference(from: old, isColored: true).isEmpty)
  }
}
