import TerminalScreen

/// All that the browser shows, as a value. An event changes it, and says what is to be done; drawing
/// makes a grid of it (`Drawing`). Neither waits, and neither asks anything.
///
/// Promises: if any key is shown, one of them is the chosen one. What was typed while an answer is
/// waited for, or before a refusal, is not lost.
struct BrowserState: Sendable {
  /// What inputs are for.
  enum Mode: Equatable, Sendable {
    case filter
    case list
    case editing(Editing)
    case menu(Menu)
    /// A question that `y` answers with yes.
    case asking(String, Effect)
  }

  /// A value that is typed, or the name of a copy.
  struct Editing: Equatable, Sendable {
    let subject: Subject
    var line: LineEditor
    var isName = false
  }

  var size: Grid.Size
  let isASCII: Bool
  /// Which keys are shown, and of when.
  let options: BrowserOptions
  var mode = Mode.filter
  /// Where Escape leads back to from menus and lines.
  var home = Mode.filter
  var filter: LineEditor
  var table = EntryTable()
  var isLoaded = false
  /// The chosen key; nil if none is shown.
  private(set) var chosen: EntryID?
  /// Whether the user has chosen it. Until then it is the best one.
  private var isPinned = false
  /// Which of the shown rows is at the top of the list.
  private(set) var top = 0
  var marked: Set<EntryID> = []
  var details: Details?
  var declared: [EntryID: [String]] = [:]
  /// Secrets that were asked for.
  var revealed: [EntryID: String] = [:]
  /// What the last input or answer has to say, and whether it is a refusal.
  var message: (text: String, isRefusal: Bool)?
  /// The line of the last change, until another key is chosen.
  private(set) var line: String?
  /// What is printed at the end.
  var printed: [String] = []
  var changes: [OwnChange] = []
  /// Whether an answer is waited for, and what was typed meanwhile.
  private(set) var isWaiting = false
  /// How many answers are still to come that nobody waits for any more. They come in the order of
  /// the questions, so they are the next ones.
  private var abandoned = 0
  private var queued: [Input] = []
  /// Whether the key that is asked for is edited in an editor of its own.
  var isForEditor = false
  /// The key whose details were asked for last.
  private var asked: EntryID?

  /// - Parameter filter: the text that stands in the filter at first.
  init(
    _ size: Grid.Size, isASCII: Bool = false, _ options: BrowserOptions = BrowserOptions(),
    filter: String = ""
  ) {
    (self.size, self.isASCII, self.options) = (size, isASCII, options)
    self.filter = LineEditor(filter)
    table.filter(Query(filter))
  }

  /// Carries an event out.
  /// - Returns: what is to be done.
  mutating func handle(_ event: Event) -> [Effect] {
    var effects: [Effect] = []
    let before = chosen
    switch event {
    case .input(let input): effects = handle(input)
    case .size(let size): self.size = size
    case .found(let entries): table.merge(entries)
    case .loaded:
      isLoaded = true
      isPinned = true
    case .changed(let entries, let gone): effects = change(entries, gone)
    default: effects = answer(event)
    }
    stayOnKey()
    // A row that goes by itself, because its key was removed, leaves the line.
    if case .input = event, chosen != before { line = nil }
    if let chosen, chosen != asked {
      asked = chosen
      effects.append(.describe(chosen))
    }
    return effects
  }

  /// What comes back from what was asked for.
  private mutating func answer(_ event: Event) -> [Effect] {
    switch event {
    case .declarations(let declared, let drifted):
      self.declared = declared
      table.mark(.declared, Set(declared.keys))
      table.mark(.drifted, drifted)
    case .described(let details): if details.id == chosen { self.details = details }
    case .opened(let subject): return resume { $0.edit(subject) }
    case .refused(let sentence):
      message = (sentence, true)
      return resume { _ in [] }
    case .made(let change, let line, let sentence):
      if let change { changes.append(change) }
      self.line = line.isEmpty ? nil : line
      let key = home == .filter ? "Tab, then u" : "u"
      message = (change == nil ? sentence : "\(sentence); \(key) takes it back", false)
      return resume { state in
        state.mode = state.home
        return []
      }
    case .undone(let change, let event):
      if let index = changes.lastIndex(of: change) { changes.remove(at: index) }
      return answer(event)
    case .history(let id, let items):
      return resume { state in
        let items = items.map { Menu.Item(text: $0.text, action: .undo(id, $0.number)) }
        state.mode = .menu(Menu("Take back which change of \(id.key)?", items))
        return []
      }
    case .viewed(let id, let text):
      return resume { state in
        let (columns, isASCII) = (state.size.columns, state.isASCII)
        state.mode = .menu(Menu(reading: text, of: id.key, columns: columns, isASCII: isASCII))
        return []
      }
    case .exported(let text, let sentence):
      printed.append(text)
      message = (sentence, false)
      return resume { _ in [] }
    case .revealed(let id, let text): revealed[id] = text
    case .note(let sentence): message = (sentence, true)
    case .input, .size, .found, .loaded, .changed: break
    }
    return []
  }

  // MARK: - Waiting for answers

  /// Asks for something whose answer decides what the next inputs mean.
  mutating func wait(for effect: Effect) -> [Effect] {
    isWaiting = true
    return [effect]
  }

  /// Takes the inputs that have come meanwhile. An answer that nobody waits for any more changes
  /// nothing.
  private mutating func resume(
    _ body: (inout BrowserState) -> [Effect]
  ) -> [Effect] {
    if abandoned > 0 {
      abandoned -= 1
      return []
    }
    guard isWaiting else { return [] }
    isWaiting = false
    var effects = body(&self)
    let answer = message
    while !isWaiting, !queued.isEmpty { effects += handle(queued.removeFirst()) }
    // What was typed before the answer was there has not answered it.
    if message == nil { message = answer }
    return effects
  }

  private mutating func handle(_ input: Input) -> [Effect] {
    switch input {
    case .control("c"): return [.quit]
    case .control("z"): return [.suspend]
    case .control("l"): return [.redraw]
    case .key(.escape) where isWaiting:
      (isWaiting, queued, message) = (false, [], nil)
      abandoned += 1
      mode = home
      return []
    case _ where isWaiting:
      queued.append(input)
      return []
    default:
      message = nil
      return obey(input)
    }
  }

  // MARK: - The chosen row

  /// Narrows the list to what the filter asks for.
  mutating func refilter() {
    table.filter(Query(filter.text))
    choose(0)
  }

  /// Chooses the row at that position, or the nearest one.
  mutating func choose(_ position: Int) {
    lastPosition = max(min(position, table.count - 1), 0)
    chosen = table.row(lastPosition)?.id
  }

  /// Moves from the chosen row by a number of rows.
  mutating func move(by count: Int) {
    isPinned = true
    choose(max(min(position + count, table.count - 1), 0))
  }

  /// Where the chosen row is; 0 if none is.
  var position: Int { chosen.flatMap { table.position(of: $0) } ?? 0 }

  /// Where the chosen row was last, for when it goes.
  private var lastPosition = 0

  private mutating func stayOnKey() {
    if isPinned, let chosen, let position = table.position(of: chosen) {
      lastPosition = position
    } else {
      choose(isPinned ? lastPosition : 0)
    }
    let rows = max(Layout(size).list.count, 1)
    let position = min(lastPosition, max(table.count - 1, 0))
    top = min(max(top, position - rows + 1), position)
    top = max(min(top, table.count - rows), 0)
    if details?.id != chosen { details = nil }
  }

  private mutating func change(_ entries: [Entry], _ gone: [EntryID]) -> [Effect] {
    table.noteChanges(in: entries, isLoaded: isLoaded)
    table.merge(entries, removing: gone)
    marked.subtract(gone)
    for id in gone { revealed[id] = nil }
    let changed = Set(entries.map(\.id))
    if let chosen, changed.contains(chosen) || gone.contains(chosen) { asked = nil }
    return changed.filter { revealed[$0] != nil }.sorted().map { .reveal($0) }
  }
}
