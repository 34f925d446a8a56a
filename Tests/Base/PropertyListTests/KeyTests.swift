import Testing

@testable import PropertyList

@Suite("Keys") struct KeyTests {
  /// The key of these bytes as a string and in a block. All have one hash, so that their bytes are
  /// compared.
  private func keys(_ bytes: [UInt8]) -> [Key] {
    let block = KeyBlock(capacity: 64)
    let start = bytes.withUnsafeBufferPointer { block.add($0) } ?? 0
    return [
      Key(String(decoding: bytes, as: UTF8.self), hash: 7),
      Key(block, start, bytes.count, hash: 7),
    ]
  }

  @Test(
    "keys are equal if every byte is, in a string and in a block, in a table and on their own",
    arguments: 0...40)
  func equality(_ count: Int) {
    let bytes = (0..<count).map { UInt8(97 + $0 % 26) }
    var others = [bytes + [97], Array(bytes.dropLast())]
    for index in bytes.indices {
      others.append(bytes)
      others[others.count - 1][index] ^= 1
    }
    let same = keys(bytes)
    let different = others.filter { $0 != bytes }.flatMap(keys)
    // With more than eight keys it has an index.
    let more = (0..<ValueDictionary.few).map { Key("more \($0)", hash: 7) }
    for key in same {
      let table = ValueDictionary((more + [key]).map { (key: $0, value: true) })
      #expect(same.allSatisfy { $0 == key && table[$0] == true })
      #expect(different.allSatisfy { $0 != key && table[$0] == nil })
    }
  }
}
