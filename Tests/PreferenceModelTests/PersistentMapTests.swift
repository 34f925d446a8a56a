import PropertyList
import Testing

@testable import PreferenceModel

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
    for number in 0..<100 {
      map.set(number, for: Key("same \(number)"), hash: 5)
      map.set(number, for: Key("last \(number)"), hash: UInt(number) << 58)
    }
    for number in 0..<100 { map.set(-number, for: Key("same \(number)"), hash: 5) }
    #expect(map.count == 200)
    for number in 0..<100 {
      #expect(map.find(Key("same \(number)"), hash: 5) == -number)
      #expect(map.find(Key("last \(number)"), hash: UInt(number) << 58) == number)
    }
    #expect(map.find("same 1", hash: 6) == nil)
  }
}
