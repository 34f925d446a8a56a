import PreferenceDeclarations
import PreferenceModel
import PropertyList
import TerminalScreen

// What inputs mean.

extension BrowserState {
  /// Carries out an input that is not one of every mode.
  mutating func obey(_ input: Input) -> [Effect] {
    switch mode {
    case .filter: return obeyInFilter(input)
    case .list: return obeyInList(input)
    case .editing(let editing): return obey(input, editing)
    case .menu(let menu): return obey(input, menu)
    case .asking(_, let effect):
      mode = home
      guard input == .text("y") || input == .text("Y") else { return [] }
      return wait(for: effect)
    }
  }

  private mutating func obeyInFilter(_ input: Input) -> [Effect] {
    switch input {
    case .key(.down): go(to: .list, by: 1)
    case .key(.tab): go(to: .list)
    case .key(.enter): return open()
    case .key(.help): mode = .menu(Menu.help)
    case .key(.escape):
      filter = LineEditor()
      refilter()
    default:
      if movement(input) { return [] }
      let old = filter.text
      if filter.handle(input), filter.text != old { refilter() }
    }
    return []
  }

  private mutating func go(to home: Mode, by count: Int = 0) {
    (mode, self.home) = (home, home)
    // The first row is the chosen one as soon as there is a list to move in.
    move(by: count)
  }

  /// Moves in the list by what moves in the filter too.
  private mutating func movement(_ input: Input) -> Bool {
    let page = max(Layout(size).list.count - 1, 1)
    switch input {
    case .control("n"), .wheel(isUp: false): move(by: input == .control("n") ? 1 : 3)
    case .control("p"), .key(.up): move(by: -1)
    case .wheel(isUp: true): move(by: -3)
    case .key(.pageDown): move(by: page)
    case .key(.pageUp): move(by: -page)
    default: return false
    }
    return true
  }

  private mutating func obeyInList(_ input: Input) -> [Effect] {
    if movement(input) { return [] }
    switch input {
    case .key(.down), .text("j"): move(by: 1)
    case .text("k"): move(by: -1)
    case .key(.home), .text("g"): move(by: -table.count)
    case .key(.end), .text("G"): move(by: table.count)
    case .key(.tab), .key(.backTab), .key(.escape), .text("/"): (mode, home) = (.filter, .filter)
    case .text("?"), .key(.help): mode = .menu(Menu.help)
    case .text("q"): return [.quit]
    case .key(.enter): return open()
    default: return command(input)
    }
    return []
  }

  /// A command about the chosen key.
  private mutating func command(_ input: Input) -> [Effect] {
    if input == .text("y") { return copyLine() }
    if input == .text("u") { return undoLast() }
    guard let id = chosen, let entry = table[id] else { return [] }
    switch input {
    case .text(" "):
      if marked.remove(id) == nil { marked.insert(id) }
      move(by: 1)
    case .text("x"): exportMenu(id)
    case .text("v"): return wait(for: .view(id))
    case .text("r") where entry.marks.contains(.secret):
      if revealed.removeValue(forKey: id) == nil { return [.reveal(id)] }
    case .text("r"): message = ("the value of \(id.key) is not a secret", false)
    case .text("e"), .key(.delete), .text("d"), .text("U"), .text("c"):
      return changing(input, entry)
    default: break
    }
    return []
  }

  /// The line of a shell that the screen shows: of the last change, or what explains the chosen
  /// key.
  var shownLine: String? {
    if let line { return line }
    return chosen.map { options.command(showing: $0).printableShellLine }
  }

  private mutating func copyLine() -> [Effect] {
    guard let line = shownLine else { return [] }
    printed.append(line)
    message = ("copied; it is printed at the end, too", false)
    return [.copy(line)]
  }

  private mutating func exportMenu(_ id: EntryID) {
    let keys = marked.isEmpty ? [id] : marked.sorted()
    let names: [(RecordedForm, String)] = [
      (.commands, "commands for a shell"), (.apply, "a declaration, for prefs apply --as"),
      (.ansible, "tasks of Ansible"), (.profile, "a configuration profile"),
    ]
    let items = names.map { Menu.Item(text: $1, action: .export(keys, $0)) }
    mode = .menu(Menu(keys.count == 1 ? "Print 1 key as" : "Print \(keys.count) keys as", items))
  }

  // MARK: - Changes

  /// Returns true if changes are possible; otherwise sets the message that says why not.
  private mutating func mayChange() -> Bool {
    guard let readOnly = options.readOnly else { return true }
    message = (readOnly, true)
    return false
  }

  private mutating func changing(_ input: Input, _ entry: Entry) -> [Effect] {
    guard mayChange() else { return [] }
    switch input {
    case .text("e"):
      isForEditor = true
      return wait(for: .open(entry.id))
    case .text("U"): return wait(for: .askHistory(entry.id))
    case .text("c"):
      askName(entry.id)
      return []
    default:
      guard entry.marks.contains(.required) else { return wait(for: .remove(entry.id)) }
      mode = .asking(
        "The schema says that \(entry.id.key) is required. Remove it? y or n", .remove(entry.id))
      return []
    }
  }

  /// Asks for the name of a copy.
  private mutating func askName(_ id: EntryID) {
    let subject = Subject(
      id: id, value: nil, location: Location(.user, id.domain), expected: nil, kind: .string,
      rule: "domain and key")
    let line = LineEditor("\(id.domain.string) \(id.key.string)")
    mode = .editing(Editing(subject: subject, line: line, isName: true))
  }

  /// Copies a key to the name that was typed.
  private mutating func copy(_ editing: Editing) -> [Effect] {
    let text = editing.line.text.drop { $0 == " " }
    // Only a domain that is known may have blanks in its name.
    let domains = Set(table.all.map(\.id.domain.string)).union(["Apple Global Domain"])
    let known = domains.filter { text.hasPrefix($0 + " ") }.max { $0.count < $1.count }
    let name = known ?? String(text.prefix { $0 != " " })
    let key = text.dropFirst(name.count + 1)
    guard !key.isEmpty else {
      message = ("refused: type a domain, a blank and a key", true)
      return []
    }
    let new = EntryID(DomainName(named: name), Key(String(key)))
    return wait(for: .copyKey(editing.subject.id, new))
  }

  private mutating func undoLast() -> [Effect] {
    guard mayChange() else { return [] }
    guard let last = changes.last else {
      message = ("nothing was changed here yet; U takes back older changes", true)
      return []
    }
    return wait(for: .undo(last))
  }

  /// Asks for what an edit of the chosen key needs.
  private mutating func open() -> [Effect] {
    guard let chosen, mayChange() else { return [] }
    return wait(for: .open(chosen))
  }

  /// Begins an edit, as the type of the key asks for it.
  mutating func edit(_ subject: Subject) -> [Effect] {
    defer { isForEditor = false }
    if isForEditor { return wait(for: .edit(subject)) }
    if !subject.choices.isEmpty {
      chooseValue(subject)
    } else if subject.kind == .boolean {
      return wait(for: .set(subject, .boolean(subject.value != true)))
    } else if let line = subject.line {
      mode = .editing(Editing(subject: subject, line: LineEditor(subject.isSecret ? "" : line)))
    } else {
      return wait(for: .edit(subject))
    }
    return []
  }

  private mutating func chooseValue(_ subject: Subject) {
    var items = subject.choices.map {
      Menu.Item(text: $0.text, action: .set(subject, $0.value))
    }
    if subject.allowsOthers { items.append(Menu.Item(text: "another one", action: .type(subject))) }
    let present = subject.choices.firstIndex { $0.value == subject.value }
    mode = .menu(Menu("\(subject.id.key): which value?", items, chosen: present ?? 0))
  }

  private mutating func obey(_ input: Input, _ editing: Editing) -> [Effect] {
    var editing = editing
    switch input {
    case .key(.escape):
      mode = home
      return []
    case .key(.enter) where editing.isName: return copy(editing)
    case .key(.enter):
      switch ValueLine.value(of: editing.line.text, as: editing.subject.kind) {
      case .success(let value): return wait(for: .set(editing.subject, value))
      case .failure(let refusal):
        message = ("refused: " + refusal.sentence, true)
        return []
      }
    default:
      _ = editing.line.handle(input)
      mode = .editing(editing)
      return []
    }
  }

  private mutating func obey(_ input: Input, _ menu: Menu) -> [Effect] {
    var menu = menu
    switch input {
    case .key(.escape): mode = home
    case .key(.enter):
      guard let action = menu.action else { return [] }
      mode = home
      return carryOut(action)
    default:
      menu.handle(input)
      mode = .menu(menu)
    }
    return []
  }

  private mutating func carryOut(_ action: Menu.Action) -> [Effect] {
    switch action {
    case .set(let subject, let value): return wait(for: .set(subject, value))
    case .type(let subject):
      mode = .editing(Editing(subject: subject, line: LineEditor(subject.line ?? "")))
      return []
    case .undo(let id, let number): return wait(for: .undoNumber(id, number))
    case .export(let keys, let form): return wait(for: .export(keys, form))
    case .none: return []
    }
  }
}
