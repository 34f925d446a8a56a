import SystemCalls
import Testing

@testable import PreferenceModel
@testable import PropertyList

@Suite("MetadataTable") struct MetadataTableTests {
  private func metadata(_ time: Int) -> Metadata {
    Metadata(text: nil, modified: Timestamp(nanoseconds: Int64(time)))
  }

  @Test(
    "a table holds what a dictionary holds after random changes",
    arguments: [(keys: 1, hashes: 1), (12, 1), (12, 3), (300, 40), (5000, 5000)])
  func random(_ size: (keys: Int, hashes: Int)) {
    let keys = (0..<size.keys).map {
      Key("key \($0)", hash: UInt32(truncatingIfNeeded: $0 % size.hashes) &* 0x9E37_79B9)
    }
    var (table, dictionary) = (MetadataTable(), [Key: Metadata]())
    for step in 0..<6 * size.keys {
      let key = keys[Int.random(in: 0..<size.keys)]
      let new = Int.random(in: 0..<3) == 0 ? nil : metadata(step)
      table[key] = new
      dictionary[key] = new
    }
    #expect(table.count == dictionary.count)
    #expect(keys.allSatisfy { table[$0] == dictionary[$0] })
    #expect(Set(table.keys) == Set(dictionary.keys))
    let (listed, values) = (Array(dictionary.keys), Array(dictionary.values))
    #expect(MetadataTable(keys: listed, values: values) == table)
    let kept = table.compactMap { key, one in
      one.modified.nanoseconds % 2 == 0 ? metadata(-key.utf8Count) : nil
    }
    let expected = dictionary.filter { $0.value.modified.nanoseconds % 2 == 0 }
    #expect(kept.count == expected.count)
    #expect(expected.keys.allSatisfy { kept[$0] == metadata(-$0.utf8Count) })
  }

  @Test("a copy stays as it was")
  func copies() {
    var table = MetadataTable()
    table["K"] = metadata(1)
    let copy = table
    table["K"] = metadata(2)
    table["L"] = metadata(3)
    #expect(copy["K"] == metadata(1))
    #expect(copy["L"] == nil)
    #expect(copy != table)
  }

  @Test("a key that occurs twice, and lists of different lengths, make no table")
  func refusals() {
    #expect(MetadataTable(keys: ["K", "L", "K"], values: [1, 2, 3].map(metadata)) == nil)
    #expect(MetadataTable(keys: ["K"], values: []) == nil)
    #expect(MetadataTable(keys: [], values: [])?.count == 0)
  }
}
