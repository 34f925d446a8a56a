import Testing

@testable import PreferenceSearch
@testable import PropertyList

@Suite("Answers that readers keep") struct AnswerTableTests {
  private func value(_ answer: AnswerTable.Answer) -> Value?? {
    switch answer {
    case .value(let value): .some(value)
    case .nothing: .some(nil)
    case .unknown: nil
    }
  }

  @Test(
    "the table answers as a dictionary does, also where hashes are equal",
    arguments: [false, true])
  func asDictionary(_ collide: Bool) {
    var table = AnswerTable()
    var dictionary: [Key: Value?] = [:]
    for number in 0..<3000 {
      let chosen = number * 7919 % 499
      let key = collide ? Key("key \(chosen)", hash: UInt32(chosen % 3)) : Key("key \(chosen)")
      switch number % 4 {
      case 0:
        table.forget(key)
        dictionary[key] = nil
      case 1:
        table.note(nil, for: key)
        dictionary[key] = .some(nil)
      default:
        table.note(.integer(WideInteger(Int64(number))), for: key)
        dictionary[key] = .integer(WideInteger(Int64(number)))
      }
      #expect(value(table.find(key)) == dictionary[key])
    }
    let changes = table.changes
    table.forget()
    #expect(table.changes > changes)
    #expect(value(table.find("key 1")) == nil)
  }

  @Test("the table has the last of 200,000 answers")
  func bounded() {
    var table = AnswerTable()
    for number in 0..<200_000 { table.note(nil, for: Key("\(number)")) }
    #expect(value(table.find("199999")) == .some(nil))
  }

  @Test("the filter never denies a key that is there, and denies most others")
  func filter() {
    let filter = KeyFilter()
    let hashes = (0..<1000).map { Key("key \($0)").hash }
    for hash in hashes { filter.insert(hash) }
    #expect(hashes.allSatisfy { !filter.lacks($0) })
    #expect(!filter.lacks(1), "a filter that is not complete denies no key")
    filter.complete()
    #expect(hashes.allSatisfy { !filter.lacks($0) })
    let others = (0..<1000).filter { filter.lacks(Key("other \($0)").hash) }
    #expect(others.count > 900)
  }

  @Test("equal keys have equal hashes, however their text was built")
  func hashes() {
    for text in ["", "a", "exactly8", "a key of more than sixteen bytes", "é", "e\u{301}"] {
      let built = text.unicodeScalars.reduce(into: "") { $0.unicodeScalars.append($1) }
      #expect(Key(text) == Key(built))
      #expect(Key(text).hash == Key(built).hash)
    }
    #expect(Key("é") != Key("e\u{301}"))
  }
}
