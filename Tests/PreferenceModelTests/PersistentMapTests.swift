import Testing

@testable import PreferenceModel
@testable import PropertyList

@Suite("PersistentMap") struct PersistentMapTests {
  @Test("a map holds what a dictionary holds, and copies stay as they were")
  func asDictionary() {
    var map = PersistentMap<Int>()
    var dictionary: [Key: Int] = [:]
    var copies: [(map: PersistentMap<Int>, dictionary: [Key: Int])] = []
    for number in 0..<30000 {
      let key = Key("key \(number * 7919 % 10007)")
      map.set(number, for: key)
      dictionary[key] = number
      if number % 5000 == 0 { copies.append((map, dictionary)) }
    }
    for (map, dictionary) in copies + [(map, dictionary)] {
      var found: [Key: Int] = [:]
      map.forEach { found[$0] = $1 }
      #expect(found == dictionary)
      #expect(map.count == dictionary.count)
      for (key, number) in dictionary where map[key] != number { Issue.record("\(key)") }
    }
    #expect(map["none"] == nil)
  }

  @Test("keys are found whose hashes are equal or differ in few bits")
  func collisions() {
    var map = PersistentMap<Int>()
    let same = (0..<100).map { Key("same \($0)", hash: 5) }
    let last = (0..<100).map { Key("last \($0)", hash: UInt32($0) << 25) }
    for number in 0..<100 {
      map.set(number, for: same[number])
      map.set(number, for: last[number])
    }
    for number in 0..<100 { map.set(-number, for: same[number]) }
    #expect(map.count == 200)
    for number in 0..<100 {
      #expect(map[same[number]] == -number)
      #expect(map[last[number]] == number)
    }
    #expect(map[Key("same 1", hash: 6)] == nil)
  }
}
