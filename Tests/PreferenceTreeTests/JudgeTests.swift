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
    var whole = Judge(kind: item.kind)
    whole.feed(text[...])
    var pieces = Judge(kind: item.kind)
    for index in text.indices { pieces.feed(text[index...index]) }
    #expect(whole.judgement(of: text).shape == item.judgement)
    #expect(pieces.judgement(of: text).shape == item.judgement)
  }

  @Test("a new key's text is always a value's; the type of a removed key goes before")
  func inferred() {
    var judge = Judge(preferred: nil)
    judge.feed([UInt8]("12".utf8)[...])
    #expect(judge.isInferred)
    #expect(judge.judgement(of: Array("12".utf8)).shape == .complete)
    #expect(judge.value(of: Array("12".utf8)) == .integer(12))
    var preferring = Judge(preferred: .string)
    preferring.feed([UInt8]("12".utf8)[...])
    #expect(preferring.value(of: Array("12".utf8)) == .string("12"))
  }

  @Test("which types an empty text is a value of")
  func empty() {
    #expect(Judge(kind: .string).emptyValue == .string(""))
    #expect(Judge(kind: .data).emptyValue == .data([]))
    for kind in [Kind.integer, .real, .boolean, .date, .array, .dictionary] {
      #expect(Judge(kind: kind).emptyValue == nil)
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
