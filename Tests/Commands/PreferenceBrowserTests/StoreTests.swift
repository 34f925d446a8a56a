import PreferenceDeclarations
import PreferenceHistory
import PreferenceModel
import PreferenceSearch
import PropertyList
import StoreAccess
import SystemCalls
import Testing

@testable import PreferenceBrowser

/// What the browser reads and changes, over places in memory.
@Suite("The store of the browser") struct StoreTests {
  /// Answers nothing.
  private final class NoReports: ReportService {
    func report(_ report: OwnerReport) throws(EngineError) -> Value { [] }
  }

  private let places = MemoryPlaces()
  private let store: BrowserStore
  private let id = EntryID("d", "K")

  init() throws {
    let layout = StoreLayout(
      userDirectory: "/nowhere/user", systemDirectory: "/nowhere/etc",
      stateDirectory: "/nowhere/state", hostIdentifier: "H", userName: "ada")
    let owner = NoReports()
    store = BrowserStore(BrowserOptions(), places, owner, HistoryReader(owner), layout)
    try set(.user, "K", 8)
  }

  private func set(_ place: Place, _ key: Key, _ value: Value) throws {
    _ = try places.apply(
      [.edit(Location(place, "d"), .set(key, value, .unknown))], by: Author.unique())
  }

  private func own(_ key: Key = "K") throws -> Value? {
    try places.find(key, at: Location(.user, "d"))?.value
  }

  private func entry() throws -> Entry? { try store.entry(id, Secrecy(places)) }

  @Test("a key is set, and the line of that is a command; undo brings the value back")
  func change() throws {
    let subject = try store.subject(id)
    #expect(subject.value == 8 && subject.kind == .integer && subject.line == "8")
    guard case .made(let change?, let line, "set") = try store.set(subject, 9, isShown: false)
    else {
      Issue.record("it is not set")
      return
    }
    #expect(try own() == 9)
    #expect(line == "defaults write d K -int 9")
    guard case .made(nil, let back, let message) = try store.undo(change) else { return }
    #expect(back == "defaults write d K -int 8" && message == "taken back: K is 8")
    #expect(try own() == 8)
    // Once more: the value is not what the change has left.
    let error = #expect(throws: EngineError.self) { try store.undo(change) }
    #expect(error?.sentence.contains("it is now 8; U takes changes") == true)
  }

  @Test("a change that somebody else has made meanwhile is not lost")
  func meanwhile() throws {
    let subject = try store.subject(id)
    try set(.user, "K", 10)
    let error = #expect(throws: EngineError.self) {
      try store.set(subject, 9, isShown: false)
    }
    #expect(error?.sentence.contains("it is now 10") == true)
    #expect(try own() == 10)
  }

  @Test("a key is removed from where it is set, and its domain with the last one")
  func remove() throws {
    guard case .made(let change?, let line, let message) = try store.remove(id) else {
      Issue.record("it is not removed")
      return
    }
    #expect(try own() == nil && line == "defaults delete d K" && message == "removed")
    #expect(try !places.exists(Location(.user, "d")))
    _ = try store.undo(change)
    #expect(try own() == 8)
  }

  @Test("a key is copied to a name that is not set yet")
  func copyKey() throws {
    let new = EntryID("e", "Other")
    guard case .made(let change?, let line, "set") = try store.copy(id, to: new, isShown: false)
    else {
      Issue.record("it is not copied")
      return
    }
    #expect(line == "defaults write e Other -int 8")
    #expect(try places.find("Other", at: Location(.user, "e"))?.value == 8)
    let error = #expect(throws: EngineError.self) { try store.copy(new, to: id, isShown: false) }
    #expect(error?.sentence == "it is set already")
    _ = try store.undo(change)
    #expect(throws: EngineError.self) { try store.copy(new, to: EntryID("f", "K"), isShown: false) }
    try set(.user, "Password", "hunter2")
    let secret = EntryID("d", "Password")
    #expect(throws: EngineError.self) { try store.copy(secret, to: new, isShown: false) }
    _ = try store.copy(secret, to: new, isShown: true)
  }

  @Test("a key that is set elsewhere is not removed, and the refusal says where")
  func removeElsewhere() throws {
    _ = try places.apply(
      [.edit(Location(.user, .global), .set("G", 1, .unknown))], by: Author.unique())
    let error = #expect(throws: EngineError.self) { try store.remove(EntryID("d", "G")) }
    #expect(error?.sentence == "it is not set; programs read what global has")
  }

  @Test("a forced key is refused, with who forces it")
  func forced() throws {
    try set(.managed, "K", 1)
    #expect(try entry()?.marks.isSuperset(of: [.forced, .set]) == true)
    let error = #expect(throws: EngineError.self) { try store.subject(id) }
    #expect(error?.sentence == "an administrator has set it in /nowhere/etc/managed/d.plist")
    let holders = store.details(of: id).holders
    #expect(holders.map(\.source) == ["managed", "user"] && holders.map(\.value) == ["1", "8"])
  }

  @Test("secrets are masked in rows, details, lines and exports")
  func secrets() throws {
    let secret = EntryID("d", "Password")
    try set(.user, "Password", "hunter2")
    let entry = try store.entry(secret, Secrecy(places))
    #expect(entry?.value == ValueLine.mask && entry?.marks.contains(.secret) == true)
    #expect(String(decoding: entry?.searched ?? [], as: UTF8.self).contains("hunter2") == false)
    #expect(store.details(of: secret).holders.map(\.value) == [ValueLine.mask])
    let line = store.line(secret, Location(.user, "d"), "hunter2", isShown: false)
    #expect(line == "defaults write d Password -string '(secret)'")
    for (shown, text) in [([], ""), ([secret], "defaults write d Password -string hunter2\n")] {
      let event = try store.export([secret], as: .commands, shown: Set(shown))
      guard case .exported(text, _) = event else {
        Issue.record("\(event)")
        return
      }
    }
  }

  @Test("a secret that somebody else has changed meanwhile is masked in the refusal, too")
  func changedSecret() throws {
    try set(.user, "Password", "hunter2")
    let subject = try store.subject(EntryID("d", "Password"))
    try set(.user, "Password", "swordfish")
    let error = #expect(throws: EngineError.self) { try store.set(subject, "x", isShown: false) }
    #expect(error?.sentence.contains("it is now \(ValueLine.mask)") == true)
  }

  @Test("the whole text of a value: JSON, data as digits, and no secret unless it is shown")
  func whole() throws {
    func text(_ key: Key, isShown: Bool = false) throws -> String {
      let id = EntryID("d", key)
      guard case .viewed(id, let text) = try store.text(of: id, isShown: isShown) else { return "" }
      return text
    }
    try set(.user, "A", ["x", 1])
    try set(.user, "D", .data([0, 255]))
    try set(.user, "Big", .string(String(repeating: "x", count: 3 << 20)))
    try set(.user, "Password", "hunter2")
    #expect(try text("A") == "[\n  \"x\",\n  1\n]")
    #expect(try text("D") == "00ff")
    #expect(try text("Big").hasSuffix("xx\n... and 1048576 more bytes"))
    let refusal = #expect(throws: EngineError.self) { try text("Password") }
    #expect(refusal?.sentence == "it is a secret; r shows it")
    #expect(throws: EngineError.self) { try text("Missing") }
    #expect(try text("Password", isShown: true) == "hunter2")
  }

  @Test("exports have nothing that a terminal obeys", arguments: RecordedForm.allCases)
  func exports(_ form: RecordedForm) throws {
    try set(.user, "K", "a\u{9B}31m\nb\u{202E}c")
    guard case .exported(let text, _) = try store.export([id], as: form, shown: []) else { return }
    #expect(
      text.unicodeScalars.allSatisfy { $0 == "\n" || String($0).printable() == String($0) }
        || text.contains("\t"))
    #expect(!text.isEmpty)
  }

  @Test("what others change is read again: a key, a key that goes, and a key of other domains")
  func changed() throws {
    _ = store.entries(of: ["d"])
    try set(.user, "K", 9)
    let set = Changeset.Item(Location(.user, "d"), .set("K", 9, .unknown))
    guard case .changed(let entries, let gone) = store.changed([Changeset([set])]) else {
      return
    }
    #expect(entries.map(\.value) == ["9"] && gone.isEmpty)
    _ = try places.apply([.edit(Location(.user, "d"), .remove("K"))], by: Author.unique())
    let removal = Changeset.Item(Location(.user, "d"), .remove("K"))
    guard case .changed(let rest, let left) = store.changed([Changeset([removal])]) else {
      return
    }
    #expect(rest.isEmpty && Set(left) == [id])
  }
}
