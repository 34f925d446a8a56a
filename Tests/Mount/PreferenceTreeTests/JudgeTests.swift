import PropertyList
import Testing

@testable import PreferenceTree

@Suite("Judge") struct JudgeTests {
  struct Case: CustomTestStringConvertible, Sendable {
    var kind: Kind
    var text: String
    var judgement: Judgement.Shape
    var testDescription: String { "\(kind) \(text)" }
  }

  static let cases = [
    Case(kind: .integer, text: "42\n", judgement: .complete),
    Case(kind: .integer, text: "-", judgement: .incomplete),
    Case(kind: .integer, text: "4x", judgement: .impossible),
    Case(kind: .boolean, text: "tru", judgement: .incomplete),
    Case(kind: .boolean, text: "maybe", judgement: .impossible),
    Case(kind: .array, text: "[1,", judgement: .incomplete),
    Case(kind: .array, text: "{", judgement: .impossible),
    Case(kind: .string, text: "anything", judgement: .complete),
    Case(kind: .string, text: "a\u{0}b", judgement: .impossible),
    Case(kind: .data, text: "a\u{0}b", judgement: .complete),
  ]

  @Test("a text is judged the same in one piece and byte by byte", arguments: cases)
  func judgements(_ item: Case) {
    let text = Array(item.text.utf8)
    var whole = Judge(.kind(item.kind))
    whole.feed(text[...])
    var pieces = Judge(.kind(item.kind))
    for index in text.indices { pieces.feed(text[index...index]) }
    let judgements = [whole.judgement(of: text).shape, pieces.judgement(of: text).shape]
    #expect(judgements == [item.judgement, item.judgement])
  }

  @Test("a new key's text is always a value's; the type of a removed key goes before")
  func inferred() {
    var judge = Judge(.inferred(preferred: nil))
    judge.feed([UInt8]("12".utf8)[...])
    // A judge is not copied, which #expect would do.
    let (isInferred, text) = (judge.isInferred, Array("12".utf8))
    let (judgement, value) = (judge.judgement(of: text), judge.value(of: text))
    #expect(isInferred && judgement.shape == .complete && value == .integer(12))
    var preferring = Judge(.inferred(preferred: .string))
    preferring.feed([UInt8]("12".utf8)[...])
    let preferred = preferring.value(of: text)
    #expect(preferred == .string("12"))
  }

  @Test("which types an empty text is a value of")
  func empty() {
    func emptyValue(_ kind: Kind) -> Value? { Judge(.kind(kind)).emptyValue }
    #expect(emptyValue(.string) == .string("") && emptyValue(.data) == .data([]))
    for kind in [Kind.integer, .real, .boolean, .date, .array, .dictionary] {
      #expect(emptyValue(kind) == nil)
    }
  }
}

extension Judgement {
  /// A judgement without its reason.
  enum Shape: Sendable { case complete, incomplete, impossible }

  var shape: Shape {
    switch self {
    case .complete: .complete
    case .incomplete: .incomplete
    case .impossible: .impossible
    }
  }
}
