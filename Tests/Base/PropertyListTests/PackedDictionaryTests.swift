import PropertyList
import Testing

@Suite("Packed dictionaries") struct PackedDictionaryTests {
  /// A list of every kind of value and key.
  private static func sample(_ count: Int) -> ValueDictionary {
    ValueDictionary(
      (0..<count).map { number in
        let key = number % 7 == 0 ? "Schlüssel \(number) 日本" : "a key of some length \(number)"
        let values: [Value] = [
          .integer(WideInteger(Int64(number) - 50)), .string("text \(number)"),
          .boolean(number % 2 == 0), .real(Double(number) / 3), .string("größer \(number) 🎈"),
          .date(AbsoluteTime(seconds: Double(number))),
          .string(String(repeating: "x", count: number)),
          number % 2 == 0 ? .data([1, 2, UInt8(truncatingIfNeeded: number)]) : ["a": ["b"]],
          [.string("item \(number)"), 1, true, .data([]), "größer"], [], [:],
          ["a key of some length": 2.5, "date": .date(AbsoluteTime(seconds: 1)), "ü": 1],
          ["name": .string("value \(number)"), "enabled": false, "": "x"],
          .array((0..<number % 40).map { .integer(WideInteger(Int64($0))) }),
          .dictionary(["a": .string(String(repeating: "y", count: number % 130))]),
        ]
        return (Key(key), values[number % values.count])
      })
  }

  @Test("every key has the value that reading the whole list gives", arguments: [4096, 9000])
  func same(_ count: Int) throws {
    var whole = Self.sample(count)
    let packed = try #require(try PackedDictionary(Document.binary(.dictionary(whole))))
    // Lists are written in sorted order.
    whole.sort()
    #expect(packed.keys == whole.keys && packed.count == count && packed.unpacked == whole)
    for (key, value) in whole { #expect(packed[key] == value) }
    for key in ["", "a key of some length", "a key of some length 1x", "Schlüssel 7"] {
      #expect(packed[Key(key)] == nil)
    }
  }

  @Test("the samples", arguments: Samples.exact.indices)
  func samples(_ index: Int) throws {
    let value = Samples.exact[index].value
    guard case .dictionary(let whole) = value,
      let packed = try PackedDictionary(Document.binary(value), least: 1)
    else { return }
    #expect(packed.unpacked == whole)
    for (key, value) in whole { #expect(packed[key] == value) }
  }

  /// Lists that are read as before, and why.
  static let others: [(name: String, bytes: [UInt8])] = [
    ("few keys", Document.binary(.dictionary(sample(4095)))),
    ("an array", Document.binary(.array(Array(repeating: 1, count: 5000)))),
    ("XML", Array("<plist><dict></dict></plist>".utf8)),
    (
      "values that are costly to decode",
      Document.binary(.dictionary(ValueDictionary((0..<5000).map { (Key("\($0)"), [["a"]]) })))
    ),
    ("no bytes", []),
  ]

  @Test("a list that gains nothing is not packed", arguments: others.indices)
  func notPacked(_ index: Int) throws {
    #expect(try PackedDictionary(Self.others[index].bytes) == nil, "\(Self.others[index].name)")
  }

  @Test("a list that is damaged anywhere is refused, as when it is read as a whole")
  func damaged() {
    let bytes = Document.binary(.dictionary(Self.sample(30)))
    var refused = 0
    for position in bytes.indices {
      var damaged = bytes
      damaged[position] ^= position % 3 == 0 ? 0xFF : 0x51
      let whole = try? Document.read(damaged).value
      do {
        guard let packed = try PackedDictionary(damaged, least: 1) else { continue }
        #expect(whole == .dictionary(packed.unpacked), "byte \(position)")
        for key in packed.keys { #expect(packed[key] == packed.unpacked[key]) }
      } catch {
        refused += 1
        #expect(whole == nil, "byte \(position)")
      }
    }
    #expect(refused > 400)
  }
}
