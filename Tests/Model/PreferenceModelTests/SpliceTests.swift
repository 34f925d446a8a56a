import PreferenceModel
import PropertyList
import SystemCalls
import Testing

@Suite("Splices") struct SpliceTests {
  /// A splice as pwrite(2) makes it, or, at the end, as a write after ftruncate(2) does.
  private static func splice(
    of base: Int, at offset: Int, _ bytes: [UInt8], cutting: Bool
  ) throws -> Splice {
    let end = offset + bytes.count
    let count = cutting ? end : max(base, end)
    return try #require(
      Splice(base: base, offset: offset, bytes: bytes, count: count, isBare: true))
  }

  @Test("random splices make what the same writes make of an array, and leave earlier values alone")
  func random() throws {
    var generator = SystemRandomNumberGenerator()
    for size in [0, 1, 16_383, 16_384, 16_385, 100_000] {
      var model = [UInt8](repeating: 7, count: size)
      var value = StoredValue(
        .data(model), Metadata(text: nil, modified: Timestamp(nanoseconds: 0)))
      var earlier: [(value: StoredValue, bytes: [UInt8])] = []
      for _ in 0..<100 {
        let offset = Int.random(in: 0...model.count, using: &generator)
        let length = [1, 100, 16_384, 40_000].randomElement(using: &generator) ?? 1
        let bytes = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ offset) }
        let splice = try Self.splice(
          of: model.count, at: offset, bytes, cutting: Bool.random(using: &generator))
        earlier.append((value, model))
        #expect(value.accepts(splice))
        value = value.applying(splice)
        model = Array(model.prefix(splice.count))
        if model.count < splice.count {
          model += Array(repeating: 0, count: splice.count - model.count)
        }
        model.replaceSubrange(offset..<offset + bytes.count, with: bytes)
        #expect(value.byteCount == model.count)
      }
      #expect(value.value == .data(model))
      for (value, bytes) in earlier where value.value != .data(bytes) {
        Issue.record("an earlier value has changed")
      }
    }
  }
}
