import Testing

@testable import PreferenceModel

@Suite("Numbers as bytes") struct ByteCodingTests {
  static let numbers: [(number: UInt64, bytes: [UInt8])] = [
    (0, [0]), (1, [1]), (127, [127]), (128, [128, 1]), (300, [0xAC, 2]), (1 << 14, [128, 128, 1]),
    (.max, [UInt8](repeating: 0xFF, count: 9) + [1]),
  ]

  @Test("a number takes a byte for each seven bits", arguments: numbers)
  func variable(_ number: UInt64, _ bytes: [UInt8]) throws {
    var writer = ByteWriter()
    writer.append(variable: number)
    #expect(writer.bytes == bytes)
    var reader = ByteReader(bytes[...])
    #expect(try reader.variable() == number && reader.isAtEnd)
  }

  @Test(
    "bytes that are no number are refused",
    arguments: [[], [128], [UInt8](repeating: 128, count: 10), [UInt8](repeating: 128, count: 20)])
  func wrong(_ bytes: [UInt8]) {
    var reader = ByteReader(bytes[...])
    #expect(throws: ByteReader.Exhausted.self) { try reader.variable() }
  }
}
