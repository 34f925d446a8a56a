import Glibc
import PreferenceDeclarations
import PreferenceModel
import PropertyList
import SystemCalls
import TerminalScreen

/// The browser without a screen: a numbered list and a prompt, for screen readers, logs, and
/// terminals that cannot move a cursor. It has no thread: each line is carried out before the next.
struct PlainSession {
  private let store: BrowserStore
  private var table = EntryTable()
  private var changes: [OwnChange] = []
  /// The keys that the numbers of the last list mean, and how many of them were shown.
  private var listed: [EntryID] = []
  private var shown = 0

  /// The keys of a list that are shown at once.
  private static let page = 20
  /// The most characters of a value in a list.
  private static let longest = 80

  static let help = """
    WORDS            list the keys with these words in names, titles, descriptions or values
                     (@modified @changed @forced @declared @drifted @schema @domain:NAME narrow)
    more             go on with the list
    NUMBER           show a key of the list
    set NUMBER VALUE set it; remove NUMBER removes it
    undo             take back the last change that was made here
    history NUMBER   show its changes; undo NUMBER CHANGE takes one back
    view NUMBER      show its whole value
    reveal NUMBER    show a secret
    export FORM NUMBERS
                     print keys as commands, apply, ansible or profile
    help, quit

    """

  init(_ store: BrowserStore) { self.store = store }

  /// Runs until `quit`, or the end of the input.
  /// - Returns: the exit status: 0.
  func run() -> Int32 {
    var session = self
    session.read()
    session.list("")
    while true {
      Browser.write("prefs> ")
      guard let line = readLine() else { break }
      if ["quit", "q", "exit"].contains(line) { return 0 }
      session.obey(line)
    }
    Browser.write("\n")
    return 0
  }

  private mutating func read() {
    do throws(EngineError) {
      let found = store.entries(of: try store.domains())
      if !table.all.isEmpty { table.noteChanges(in: found.entries) }
      table.merge(found.entries, removing: table.all.map(\.id))
      table.merge(found.entries)
      if case .declarations(let declared, let drifted) = store.declarations() {
        table.mark(.declared, Set(declared.keys))
        table.mark(.drifted, drifted)
      }
      for problem in found.problems { say("cannot be read: \(problem)") }
    } catch {
      say("cannot be read: \(error)")
    }
  }

  private func say(_ line: String) {
    Browser.write(Width.shown(line.printable(), isASCII: !Self.isUTF8) + "\n")
  }

  private static let isUTF8 = Terminal.isUTF8

  // MARK: - Lines

  private mutating func obey(_ line: String) {
    let words = line.split(separator: " ", maxSplits: 2).map(String.init)
    let isAboutKey = words.count > 1 && Int(words[1]) != nil
    let id = isAboutKey ? key(words[1]) : nil
    let name = words.first ?? ""
    // Without a number these are words that are looked for.
    let needsKey =
      ["set", "remove", "history", "view", "reveal"].contains(name)
      || name == "undo" && words.count == 3
    do throws(EngineError) {
      switch (needsKey && !isAboutKey ? "" : name, words.count) {
      case ("help", 1), ("?", 1): Browser.write(Self.help)
      case ("more", 1): showMore()
      case ("undo", 1): try undo()
      case (let word, 1) where Int(word) != nil: if let id = key(word) { show(id) }
      case ("set", 3): if let id { try set(id, words[2]) }
      case ("remove", 2):
        if let id { try change { store throws(EngineError) in try store.remove(id) } }
      case ("history", 2): if let id { try showHistory(id) }
      case ("undo", 3):
        guard let id, let number = UInt64(words[2]) else { return }
        try change { store throws(EngineError) in try store.undo(number, of: id) }
      case ("view", 2):
        if let id, case .viewed(_, let text) = try store.text(of: id, isShown: false) {
          for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            say(String(line))
          }
        }
      case ("reveal", 2):
        if let id, case .revealed(_, let text) = try store.revealed(id) { say(text) }
      case ("export", 3): try export(words[1], words[2])
      default:
        read()
        list(line)
      }
    } catch {
      say("refused: \(error)")
    }
  }

  /// The key with a number of the last list; nil, with a message, if there is none.
  private func key(_ word: String) -> EntryID? {
    if let number = Int(word), listed.indices.contains(number - 1) { return listed[number - 1] }
    let numbers = listed.isEmpty ? "it is empty" : "it has 1 to \(listed.count)"
    if Int(word) != nil { say("the list has no number \(word); \(numbers)") }
    return nil
  }

  private mutating func list(_ line: String) {
    table.filter(Query(line))
    listed = (0..<table.count).compactMap { table.row($0)?.id }
    shown = 0
    say("\(listed.count) of \(table.all.count) keys; help says what can be typed")
    showMore()
  }

  private mutating func showMore() {
    for (index, id) in listed.enumerated().dropFirst(shown).prefix(Self.page) {
      guard let entry = table[id] else { continue }
      // Where the screen is read aloud, a long value must not hide the next ones.
      let end = entry.value.count > Self.longest ? "..." : ""
      let value = entry.marks.contains(.set) ? entry.value.prefix(Self.longest) + end : "not set"
      let forced = entry.marks.contains(.forced) ? ", forced" : ""
      say("\(index + 1). \(id.domain) \(id.key): \(value) (\(entry.source)\(forced))")
    }
    shown = min(shown + Self.page, listed.count)
    if shown < listed.count { say("\(listed.count - shown) more; type more") }
  }

  private func show(_ id: EntryID) {
    let details = store.details(of: id)
    let title = details.title.isEmpty ? "" : ": \(details.title)"
    say("\(id.domain) \(id.key)\(title) (\(details.rule))")
    for line in details.about.split(separator: "\n") { say(String(line)) }
    for (index, holder) in details.holders.enumerated() {
      say("\(index == 0 ? "read" : "hidden"): \(holder.value), \(holder.source), \(holder.file)")
    }
    if details.holders.isEmpty { say("not set") }
    for change in details.changes { say("changed: \(change)") }
    if let problem = details.problem { say(problem) }
  }

  private func showHistory(_ id: EntryID) throws(EngineError) {
    for change in try store.changes(of: id, atMost: 100) { say("\(change.number): \(change.text)") }
  }

  // MARK: - Changes

  /// Makes a change, and says what it did.
  private mutating func change(
    _ body: (BrowserStore) throws(EngineError) -> Event
  ) throws(EngineError) {
    if let readOnly = store.options.readOnly { return say(readOnly) }
    guard case .made(let change, let line, let message) = try body(store) else { return }
    if let change { changes.append(change) }
    say(line.isEmpty ? message : "\(message): \(line)")
  }

  private mutating func set(_ id: EntryID, _ text: String) throws(EngineError) {
    if let readOnly = store.options.readOnly { return say(readOnly) }
    let subject = try store.subject(id)
    let isContainer = subject.kind == .array || subject.kind == .dictionary
    let value =
      isContainer
      ? Recogniser.value(of: Array(text.utf8), kind: subject.kind).map { .success($0) }
        ?? .failure(ValueLine.Refusal(sentence: "the text is not \(subject.kind.phrase), as JSON"))
      : ValueLine.value(of: text, as: subject.kind)
    switch value {
    case .success(let value):
      try change { store throws(EngineError) in try store.set(subject, value, isShown: false) }
    case .failure(let refusal): say("refused: \(refusal.sentence)")
    }
  }

  private mutating func undo() throws(EngineError) {
    guard let last = changes.last else { return say("nothing was changed here yet") }
    do throws(EngineError) {
      try change { store throws(EngineError) in try store.undo(last) }
    } catch {
      if error.reason == .changedMeanwhile { changes.removeLast() }
      throw error
    }
    changes.removeLast()
  }

  private func export(_ name: String, _ numbers: String) throws(EngineError) {
    guard let form = RecordedForm(rawValue: name) else {
      return say("\(name) is not a form; the forms are commands, apply, ansible and profile")
    }
    let ids = numbers.split(separator: " ").compactMap { key(String($0)) }
    guard case .exported(let text, _) = try store.export(ids, as: form, shown: []) else { return }
    Browser.write(text)
  }
}
