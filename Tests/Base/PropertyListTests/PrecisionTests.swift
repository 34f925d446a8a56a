import PropertyList
import Testing

/// Values that text shows with less precision, and what a write of such text does to them.
@Suite("Precision") struct PrecisionTests {
  private static let fraction = Value.date(AbsoluteTime(seconds: 0.25))

  @Test("a real of four bytes keeps four bytes in a binary list")
  func fourBytes() throws {
    let bytes = Document.binary([.single(12.34), 12.34])
    #expect(try Document.read(bytes).value == [.single(12.34), 12.34])
    #expect(bytes.contains(0x22) && bytes.contains(0x23))
  }

  @Test("dates in a container show whole seconds, and the same text gives the same value")
  func fractions() throws {
    let value: Value = ["a": Self.fraction, "b": [Self.fraction, .single(0.1)], "c": 1]
    let text = ValueText.canonical(value)
    #expect(String(decoding: text, as: UTF8.self).contains("<date>2001-01-01T00:00:00Z</date>"))
    #expect(Recogniser.value(of: text, kind: .dictionary, shown: value) == value)
    #expect(ValueText.denotes(text, value))
    let changed = String(decoding: text, as: UTF8.self).replacing("<integer>1", with: "<integer>2")
    #expect(
      Recogniser.value(of: Array(changed.utf8), kind: .dictionary, shown: value)
        == ["a": Self.fraction, "b": [Self.fraction, .single(0.1)], "c": 2])
  }

  @Test("JSON says fractions of seconds, and zero has a sign")
  func exact() {
    let value: Value = ["a": Self.fraction]
    let whole = Recogniser.value(
      of: Array(#"{"a": "2001-01-01T00:00:00Z"}"#.utf8), kind: .dictionary, template: value,
      shown: value)
    #expect(whole == ["a": .date(AbsoluteTime(seconds: 0))])
    let zero = Recogniser.value(of: Array("0.0\n".utf8), kind: .real, shown: .single(-0.0))
    #expect(zero == 0.0)
  }

  @Test(
    "a date on its own shows its fraction, and loses it when it is written without one")
  func ownDate() {
    #expect(ValueText.canonical(Self.fraction) == Array("2001-01-01T00:00:00.25Z\n".utf8))
    let whole = Recogniser.value(
      of: Array("2001-01-01T00:00:00Z\n".utf8), kind: .date, shown: Self.fraction)
    #expect(whole == .date(AbsoluteTime(seconds: 0)))
  }
}
