import Glibc
import PreferenceModel
import PropertyList
import Synchronization
import SystemCalls
import TerminalScreen

/// A browser in a terminal: the loop that waits for inputs, signals and answers, has the state take
/// them, and shows it.
///
/// Threads: the main one alone touches the state and the terminal. `prefs-read` reads rows and
/// details, `prefs-change` makes changes; both add events and signal the wake-up. Lock: `arrived`.
final class Session {
  private let store: BrowserStore
  private let terminal: Terminal
  private var state: BrowserState
  private var parser = InputParser()
  private let inbox: Inbox
  private let reader: WorkQueue
  private let writer: WorkQueue
  /// How it ended; nil if it goes on.
  private var status: Int32?

  /// Events for the main thread.
  private final class Inbox: Sendable {
    let wakeup: Wakeup
    private let events = Mutex<[Event]>([])
    /// What others have changed, and whether somebody looks at it soon.
    private let changes = Mutex<[Changeset]>([])
    /// The key whose details are wanted.
    let wanted = Mutex<EntryID?>(nil)

    init() throws(SystemError) { wakeup = try Wakeup() }

    func add(_ event: Event) {
      events.withLock { $0.append(event) }
      wakeup.signal()
    }

    func takeAll() -> [Event] {
      events.withLock { events in
        defer { events = [] }
        return events
      }
    }

    /// Adds a change.
    /// - Returns: whether it is the first one since `takeChanges`.
    func note(_ change: Changeset) -> Bool {
      changes.withLock { changes in
        changes.append(change)
        return changes.count == 1
      }
    }

    func takeChanges() -> [Changeset] {
      changes.withLock { changes in
        defer { changes = [] }
        return changes
      }
    }
  }

  init(_ store: BrowserStore) throws(SystemError) {
    self.store = store
    terminal = try Terminal()
    inbox = try Inbox()
    reader = try WorkQueue(name: "prefs-read")
    writer = try WorkQueue(name: "prefs-change")
    state = BrowserState(terminal.size, isASCII: terminal.isASCII, store.options)
  }

  /// Runs until the user leaves, or a signal ends it.
  /// - Returns: the exit status.
  func run() -> Int32 {
    terminal.enter()
    // The first screen does not wait for a list.
    terminal.show(Drawing.grid(of: state))
    observe()
    load()
    while status == nil {
      wait()
      terminal.show(Drawing.grid(of: state))
    }
    terminal.leave()
    for text in state.printed { Browser.write(text.hasSuffix("\n") ? text : text + "\n") }
    return status ?? 0
  }

  // MARK: - Waiting

  private func wait() {
    var entries = (terminal.descriptors + [inbox.wakeup.number]).map {
      pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
    }
    let count = poll(&entries, nfds_t(entries.count), parser.isWaiting ? 50 : -1)
    if count == 0 { return take(parser.endWait()) }
    guard count > 0 else { return }
    if entries[1].revents != 0 {
      while let event = terminal.nextSignal() { obey(event) }
    }
    if entries[0].revents != 0 {
      // A terminal that is gone leaves no one to ask.
      if let bytes = terminal.read() { take(parser.feed(bytes)) } else { status = 1 }
    }
    if entries[2].revents != 0 {
      inbox.wakeup.clear()
      for event in inbox.takeAll() { handle(event) }
    }
  }

  private func take(_ inputs: [Input]) {
    for input in inputs where status == nil { handle(.input(input)) }
  }

  private func obey(_ event: Terminal.Event) {
    switch event {
    case .changed: handle(.size(terminal.size))
    case .stop: terminal.suspend()
    case .end(let signal): status = 128 + signal
    }
  }

  private func handle(_ event: Event) {
    for effect in state.handle(event) { carryOut(effect) }
  }

  // MARK: - Effects

  private func carryOut(_ effect: Effect) {
    let (store, inbox) = (store, inbox)
    switch effect {
    case .quit: status = 0
    case .suspend:
      terminal.suspend()
      handle(.size(terminal.size))
    case .redraw: terminal.forget()
    case .copy(let text): copy(text)
    case .edit(let subject): edit(subject)
    case .describe(let id): describe(id)
    case .reveal(let id):
      reader.add { if let event = try? store.revealed(id) { inbox.add(event) } }
    case .open(let id): ask { () throws(EngineError) in .opened(try store.subject(id)) }
    case .set(let subject, let value): set(subject, value)
    case .remove(let id): ask { () throws(EngineError) in try store.remove(id) }
    case .copyKey(let id, let new):
      let isShown = state.revealed[id] != nil
      ask { () throws(EngineError) in try store.copy(id, to: new, isShown: isShown) }
    case .undo(let change):
      ask { () throws(EngineError) in
        do throws(EngineError) {
          return .undone(change, try store.undo(change))
        } catch  where error.reason == .changedMeanwhile {
          return .undone(change, Self.refusal(error))
        }
      }
    case .undoNumber(let id, let number):
      ask { () throws(EngineError) in try store.undo(number, of: id) }
    case .askHistory(let id):
      ask { () throws(EngineError) in
        let changes = try store.changes(of: id, atMost: 500)
        if changes.isEmpty {
          throw EngineError(.noSuchKey, key: id.key, "the history has no change of it")
        }
        return .history(id, changes)
      }
    case .view(let id):
      let isShown = state.revealed[id] != nil
      ask { () throws(EngineError) in try store.text(of: id, isShown: isShown) }
    case .export(let ids, let form):
      let shown = Set(state.revealed.keys)
      ask { () throws(EngineError) in try store.export(ids, as: form, shown: shown) }
    }
  }

  /// Has a thread find the answer to what the state waits for.
  private func ask(_ body: @escaping @Sendable () throws(EngineError) -> Event) {
    let inbox = inbox
    writer.add {
      do throws(EngineError) {
        inbox.add(try body())
      } catch {
        inbox.add(Self.refusal(error))
      }
    }
  }

  private static func refusal(_ error: EngineError) -> Event {
    .refused("refused: \(error)".printable())
  }

  private func set(_ subject: Subject, _ value: Value) {
    let (store, isShown) = (store, state.revealed[subject.id] != nil)
    ask { () throws(EngineError) in try store.set(subject, value, isShown: isShown) }
  }

  /// Reads the details of a key, unless another one is chosen by then.
  private func describe(_ id: EntryID) {
    let (store, inbox) = (store, inbox)
    inbox.wanted.withLock { $0 = id }
    reader.add {
      guard inbox.wanted.withLock({ $0 == id }) else { return }
      inbox.add(.described(store.details(of: id)))
    }
  }

  private func copy(_ text: String) {
    terminal.copy(Base64.encode(Array(text.utf8.prefix(Self.mostCopied))))
  }

  /// The most bytes that are put on a clipboard; terminals take no more than some 100,000.
  private static let mostCopied = 64_000

  private func edit(_ subject: Subject) {
    terminal.leave()
    let outcome = ExternalEditor(subject: subject) { [store] in
      store.objection(to: $0, of: subject.id)
    }.run()
    // Ctrl-C in the editor was not for this program.
    while let event = terminal.nextSignal() {
      if case .end(let signal) = event, signal != SIGINT, signal != SIGQUIT { obey(event) }
    }
    terminal.enter()
    handle(.size(terminal.size))
    switch outcome {
    case .value(let value): set(subject, value)
    case .unchanged: handle(.refused("nothing was changed"))
    case .failed(let sentence): handle(.refused("refused: \(sentence)".printable()))
    }
  }

  // MARK: - Rows

  /// The domains that are read at once.
  private static let batch = 32

  private func load() {
    let (store, inbox, reader) = (store, inbox, reader)
    reader.add {
      do throws(EngineError) {
        Self.load(try store.domains()[...], store, inbox, reader)
      } catch {
        inbox.add(.note("not everything can be read: \(error)".printable()))
        inbox.add(.loaded)
      }
    }
  }

  /// Reads some domains and leaves the others to a later turn, so that changes come in between.
  private static func load(
    _ domains: ArraySlice<DomainName>, _ store: BrowserStore, _ inbox: Inbox, _ reader: WorkQueue
  ) {
    let found = store.entries(of: Array(domains.prefix(batch)))
    inbox.add(.found(found.entries))
    for problem in found.problems { inbox.add(.note("cannot be read: \(problem)".printable())) }
    let rest = domains.dropFirst(batch)
    if !rest.isEmpty { return reader.add { load(rest, store, inbox, reader) } }
    inbox.add(.loaded)
    inbox.add(store.declarations())
  }

  private func observe() {
    let (store, inbox, reader) = (store, inbox, reader)
    store.engine.observe(except: nil) { notice in
      guard inbox.note(notice.changeset) else { return }
      reader.add {
        let changes = inbox.takeChanges()
        inbox.add(store.changed(changes))
        inbox.add(store.declarations())
      }
    }
  }
}
