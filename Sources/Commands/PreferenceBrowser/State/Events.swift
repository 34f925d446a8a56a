import PreferenceDeclarations
import PreferenceModel
import PropertyList
import TerminalScreen

/// What happens to a `BrowserState`.
enum Event: Sendable {
  case input(Input)
  case size(Grid.Size)
  /// Rows that were read.
  case found([Entry])
  /// All rows were read.
  case loaded
  /// Keys that have changed, and keys that are gone.
  case changed([Entry], gone: [EntryID])
  /// What declarations declare, and what is not so.
  case declarations([EntryID: [String]], drifted: Set<EntryID>)
  case described(Details)
  /// A key that can be edited.
  case opened(Subject)
  /// What was asked for is refused: what, why, and what to do.
  case refused(String)
  /// A change was made.
  case made(OwnChange?, line: String, message: String)
  /// A change that was made here is taken back, or cannot be any more; and what is to be said of it.
  indirect case undone(OwnChange, Event)
  case history(EntryID, [(number: UInt64, text: String)])
  /// The whole text of a value, of several lines.
  case viewed(EntryID, String)
  /// A text that is printed at the end.
  case exported(String, message: String)
  case revealed(EntryID, String)
  /// A sentence for people.
  case note(String)
}

/// What a `BrowserState` wants done.
enum Effect: Equatable, Sendable {
  case quit
  case suspend
  case redraw
  case describe(EntryID)
  case open(EntryID)
  case set(Subject, Value)
  case remove(EntryID)
  /// Sets the second key, which must not be set yet, to the value of the first one.
  case copyKey(EntryID, EntryID)
  /// Edits a value in an editor of its own.
  case edit(Subject)
  case undo(OwnChange)
  case undoNumber(EntryID, UInt64)
  case askHistory(EntryID)
  case view(EntryID)
  case copy(String)
  case export([EntryID], RecordedForm)
  case reveal(EntryID)
}

/// A key that is edited: what it has now, and what it may have.
struct Subject: Equatable, Sendable {
  let id: EntryID
  /// Its value; nil if it has none.
  let value: Value?
  /// Where a change of it goes, and what that place has now: a change expects it.
  let location: Location
  let expected: Value?
  let kind: Kind
  /// What may stand there.
  let rule: String
  /// The values that it may have, with titles.
  var choices: [Choice] = []
  var allowsOthers = true
  var isSecret = false

  struct Choice: Equatable, Sendable {
    let value: Value
    let text: String
  }

  /// The value as it stands in a line; nil if it does not fit into one.
  var line: String? {
    guard let value else { return kind == .array || kind == .dictionary ? nil : "" }
    return ValueLine.editable(value)
  }
}

/// What is known of the chosen key.
struct Details: Equatable, Sendable {
  /// A place that has the key.
  struct Holder: Equatable, Sendable {
    let source: String
    let value: String
    let file: String
  }

  let id: EntryID
  var title = ""
  var rule = ""
  var about = ""
  /// The places that have it, the one that counts first.
  var holders: [Holder] = []
  /// Its last changes, the newest first.
  var changes: [String] = []
  /// What could not be found out.
  var problem: String?
}

/// A change that was made here, and can be taken back.
struct OwnChange: Equatable, Sendable {
  /// What a place had before, and what it has since.
  struct Step: Equatable, Sendable {
    let location: Location
    let before: StoredValue?
    let after: Value?
  }

  let id: EntryID
  let steps: [Step]
}
