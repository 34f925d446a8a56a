import PropertyList
import SystemCalls
import Testing

@testable import PreferenceTree

@Suite("TextEditor") struct TextEditorTests {
  private typealias Action = TextEditor.Action

  private func at(_ milliseconds: Int64) -> Instant {
    Instant(nanoseconds: 0).advanced(milliseconds: milliseconds)
  }

  private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

  private func editor(_ text: String, _ kind: Kind) -> TextEditor {
    TextEditor(text: bytes(text), rule: .kind(kind))
  }

  /// One call and what it must return.
  private enum Step {
    case write(String, at: Int, Action)
    case append(String, Action)
    case truncate(Int, Action)
    case expire(Action)
    /// The text that the file shows, and whether it is held.
    case shows(String, isHeld: Bool)
  }

  /// Carries out the steps, 10 ms apart; `expire` at the deadline.
  private func run(_ editor: TextEditor, _ steps: [Step]) {
    var now = at(0)
    for (number, step) in steps.enumerated() {
      now = now.advanced(milliseconds: 10)
      switch step {
      case .write(let text, let offset, let action):
        let found = editor.write(bytes(text), at: offset, appending: false, now: now)
        #expect(found == action, "step \(number)")
      case .append(let text, let action):
        let found = editor.write(bytes(text), at: 0, appending: true, now: now)
        #expect(found == action, "step \(number)")
      case .truncate(let size, let action):
        #expect(editor.truncate(to: size, now: now) == action, "step \(number)")
      case .expire(let action):
        now = editor.deadline ?? now
        #expect(editor.expire(now: now) == action, "step \(number)")
      case .shows(let text, let isHeld):
        #expect(editor.text == bytes(text), "step \(number)")
        #expect(editor.isHeld == isHeld, "step \(number)")
      }
    }
  }

  @Test("a whole text is committed with its bytes")
  func whole() {
    run(
      editor("4\n", .integer),
      [
        .truncate(0, .nothing),
        .write(" 8\n", at: 0, .commit(.integer(8), bytes(" 8\n"))),
        .shows(" 8\n", isHeld: false),
      ])
  }

  @Test("text that can never be a value is refused, and its end remembered")
  func refused() {
    let editor = editor("4\n", .integer)
    _ = editor.truncate(to: 0, now: at(0))
    guard case .refuse = editor.write(bytes("x"), at: 0, appending: false, now: at(1)) else {
      Issue.record("it was not refused")
      return
    }
    #expect(editor.memory.droppedEnd == 0)
  }

  @Test("only a write that goes on behind the last one has an end that is remembered")
  func refusedElsewhere() {
    let editor = editor("1234\n", .integer)
    guard case .refuse = editor.write(bytes("x"), at: 1, appending: false, now: at(0)) else {
      Issue.record("it was not refused")
      return
    }
    #expect(editor.memory.droppedEnd == nil)
  }

  @Test("the beginning of a document is held, and dropped when it stays incomplete")
  func held() {
    run(
      editor("[1]\n", .array),
      [
        .truncate(0, .nothing),
        .write("[1,", at: 0, .nothing),
        .shows("[1,", isHeld: true),
        .write(" 2]", at: 3, .commit(.array([.integer(1), .integer(2)]), bytes("[1, 2]"))),
        .shows("[1, 2]", isHeld: false),
        .truncate(0, .nothing),
        .write("[", at: 0, .nothing),
        .expire(.revert("text that stayed incomplete for 5 s was dropped")),
      ])
  }

  @Test("a truncation alone empties a string and leaves other types")
  func truncations() {
    run(
      editor("text\n", .string),
      [.truncate(0, .nothing), .expire(.commit(.string(""), []))])
    run(editor("4\n", .integer), [.truncate(0, .nothing), .expire(.revert(nil))])
  }

  @Test("a truncation that somebody appends behind leaves what was appended")
  func appendedMeanwhile() {
    let log = editor("old\n", .string)
    _ = log.truncate(to: 0, now: at(0))
    #expect(log.keepsTruncation(before: bytes("old\nnew\n")))
    #expect(log.keepsTruncation(before: bytes("old\nnew\nmore\n")))
    #expect(!log.keepsTruncation(before: bytes("other\n")))
    run(log, [.expire(.commit(.string("new\nmore"), bytes("new\nmore\n")))])
    let number = editor("4\n", .integer)
    _ = number.truncate(to: 0, now: at(0))
    #expect(!number.keepsTruncation(before: bytes("4\n2")))
  }

  @Test("the next write at offset 0 starts from empty text, however late")
  func startsEmpty() {
    let first = editor("1234\n", .integer)
    _ = first.truncate(to: 0, now: at(0))
    let second = TextEditor(
      text: bytes("1234\n"), rule: .kind(.integer), memory: first.memory)
    #expect(
      second.write(bytes("5"), at: 0, appending: false, now: at(60_000))
        == .commit(.integer(5), bytes("5")))
  }

  @Test("an old tail counts if the whole is a value's text, else it is cut")
  func oldTail() {
    run(
      editor("[1, 2]\n", .array),
      [
        .write("[3]", at: 0, .commit(.array([.integer(3)]), bytes("[3]"))),
        .expire(.cut),
        .shows("[3]", isHeld: false),
      ])
  }

  @Test("an append to a long string is a splice")
  func splice() {
    let long = String(repeating: "x", count: 8192)
    let editor = TextEditor(
      text: bytes(long + "\n"), rule: .kind(.string),
      committed: .init(kind: .string, count: long.utf8.count))
    let action = editor.write(bytes("y\n"), at: 0, appending: true, now: at(0))
    guard case .splice = action else {
      Issue.record("not a splice: \(action)")
      return
    }
    #expect(editor.isComputed || editor.deadline == nil)
  }

  @Test("numbers that no text can have are EFBIG, not traps")
  func extremes() {
    let editor = editor("text\n", .string)
    #expect(editor.write([1], at: .max, appending: false, now: at(0)) == .tooLarge)
    #expect(editor.write([1], at: -1, appending: false, now: at(0)) == .tooLarge)
    #expect(editor.truncate(to: .max, now: at(0)) == .tooLarge)
    #expect(editor.truncate(to: -1, now: at(0)) == .tooLarge)
    _ = editor.truncate(to: 0, now: Instant(nanoseconds: .max))
    #expect(editor.text.isEmpty)
  }
}
