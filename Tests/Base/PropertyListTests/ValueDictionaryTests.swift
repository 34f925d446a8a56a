import Testing

@testable import PropertyList

@Suite("Dictionaries of values")
struct ValueDictionaryTests {
  private func key(_ number: Int) -> Key { Key("a key of some length, \(number)") }

  private func value(_ number: Int) -> Value { .integer(WideInteger(Int64(number))) }

  @Test(
    "a dictionary holds what Swift's holds after random changes",
    arguments: [(keys: 4, hashes: 4), (12, 1), (12, 3), (300, 40), (5000, 5000)])
  func random(_ size: (keys: Int, hashes: Int)) {
    let keys = size.keys
    func key(_ number: Int) -> Key {
      let hash = UInt32(truncatingIfNeeded: number % size.hashes) &* 0x9E37_79B9
      return Key("a key of some length, \(number)", hash: hash)
    }
    var generator = SystemRandomNumberGenerator()
    var (ours, theirs) = (ValueDictionary(), [Key: Value]())
    for step in 0..<4 * keys {
      let key = key(Int.random(in: 0..<keys, using: &generator))
      let isRemoved = Int.random(in: 0..<3, using: &generator) == 0
      let new = isRemoved ? nil : value(step)
      #expect(ours[key] == theirs[key])
      ours[key] = new
      theirs[key] = new
      if ours.count != theirs.count { break }
    }
    #expect(ours.count == theirs.count)
    #expect((0..<keys).allSatisfy { ours[key($0)] == theirs[key($0)] })
    #expect(Set(ours.keys) == Set(theirs.keys))
    #expect(ours == ValueDictionary(theirs.map { ($0.key, $0.value) }))
    #expect(ours.sortedItems.map(\.key) == theirs.keys.sorted())
    var sorted = ours
    sorted.sort()
    #expect(sorted.keys == theirs.keys.sorted() && sorted == ours)
    #expect((0..<keys).allSatisfy { sorted[key($0)] == theirs[key($0)] })
  }

  @Test("keys keep the order in which they were added", arguments: [3, 8, 9, 100])
  func order(_ count: Int) {
    var dictionary = ValueDictionary()
    for number in (0..<count).reversed() { dictionary[key(number)] = value(number) }
    dictionary[key(0)] = "again"
    #expect(dictionary.keys == (0..<count).reversed().map(key))
    #expect(dictionary.sortedItems.map(\.key) == dictionary.keys.sorted())
  }

  @Test(
    "the last value of a repeated key counts, and the first one of a binary list",
    arguments: [3, 8, 9, 100])
  func repeated(_ count: Int) {
    let pairs = (0..<count).map {
      ValueDictionary.Item(key: key($0 % (count - 1)), value: value($0))
    }
    #expect(ValueDictionary(unique: pairs) == nil)
    let dictionary = ValueDictionary(pairs)
    let first = ValueDictionary(firstOf: count) { (pairs[$0].key, pairs[$0].value) }
    #expect(first == ValueDictionary(Array(pairs.dropLast())))
    #expect(dictionary.count == count - 1)
    #expect(dictionary[key(0)] == value(count - 1))
    #expect(ValueDictionary(unique: Array(pairs.dropLast()))?.count == count - 1)
  }

  @Test("the order of keys does not matter for equality, and copies are independent")
  func equality() {
    let one: ValueDictionary = ["a": 1, "b": 2, "c": 3]
    var other: ValueDictionary = ["c": 3, "a": 1, "b": 2]
    #expect(one == other)
    other["b"] = true
    #expect(one != other && one["b"] == 2)
    #expect(one.merging(["b": true, "d": 4]) == ["a": 1, "b": true, "c": 3, "d": 4])
    #expect(other.removeValue(forKey: "b") == true && other.removeValue(forKey: "b") == nil)
    #expect(one.mapValues { .array([$0]) } == ["a": [1], "b": [2], "c": [3]])
    #expect(one != ["a": 1, "b": 2] && ValueDictionary().isEmpty)
  }

  @Test("a table finds keys whose hashes are equal, also after removals")
  func collisions() {
    var index = KeyIndex(capacity: 64)
    var places: [Int?] = []
    let hashes = (0..<64).map { UInt32($0 % 3) << 16 | UInt32($0 % 2) }
    for number in 0..<64 {
      guard case .free(let slot) = index.probe(hashes[number], { places[$0] == number }) else {
        Issue.record("\(number) is not there yet")
        return
      }
      index.fill(slot, hashes[number], position: number)
      places.append(number)
    }
    for number in stride(from: 0, to: 64, by: 3) {
      index.remove(hashes[number], position: number) { hashes[$0] }
      places[number] = nil
    }
    for number in 0..<64 {
      let probe = index.probe(hashes[number]) { places[$0] == number }
      if case .found(let position) = probe {
        #expect(position == number && places[number] != nil)
      } else {
        #expect(places[number] == nil)
      }
    }
  }

  @Test(
    "a hash depends on every byte and on the seed", arguments: [1, 2, 3, 4, 7, 8, 15, 16, 17, 40])
  func hash(_ count: Int) {
    let bytes = [UInt8](repeating: 0x61, count: count)
    var hashes: Set<UInt64> = [hash(bytes, 1), hash(bytes, 2), hash(bytes + [0x61], 1)]
    for position in 0..<count {
      for bit in 0..<7 {
        var other = bytes
        other[position] ^= 1 << UInt8(bit)
        hashes.insert(hash(other, 1))
      }
    }
    #expect(hashes.count == 3 + 7 * count)
  }

  private func hash(_ bytes: [UInt8], _ seed: UInt64) -> UInt64 {
    bytes.withUnsafeBufferPointer { KeyHash.of($0, seed: seed) }
  }
}
