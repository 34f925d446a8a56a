import PropertyList
import SystemCalls
import Testing

@testable import PreferenceStore

@Suite("Values before the changes of the last seconds") struct RecentChangesTests {
  private func moment(_ number: Int) -> Instant { Instant(nanoseconds: Int64(number + 1)) }

  @Test("a list is an earlier state if all of its keys have the values of one moment")
  func earlierState() {
    // K was 1, 2 and 3, and L was 1 and 2; L was changed between the changes of K.
    var recent = RecentChanges()
    recent.note("K", before: 1, now: moment(0))
    recent.note("L", before: 1, now: moment(1))
    recent.note("K", before: 2, now: moment(2))
    let present: [Key: Value] = ["K": 3, "L": 2]
    let states: [([Key: Value], Bool)] = [
      (["K": 1, "L": 1], true), (["K": 2, "L": 1], true), (["K": 2, "L": 2], true),
      (["K": 1, "L": 2], false), (["K": 3, "L": 1], false), (["K": 4, "L": 1], false),
      (["L": 1], false),
    ]
    for (list, isEarlier) in states {
      let differing = Set(present.keys.filter { list[$0] != present[$0] })
      let found = recent.isEarlierState(
        differing, { list[$0] }, present: { present[$0] }, now: moment(3))
      #expect(found == isEarlier, "\(list)")
    }
  }

  @Test("a state before the last thousands of changes is one, too")
  func manyChanges() {
    var recent = RecentChanges()
    let keys = (0..<3000).map { Key("key \($0)") }
    for (number, key) in keys.enumerated() { recent.note(key, before: nil, now: moment(number)) }
    let set = Set(keys.prefix(1500))
    func isEarlier(_ list: Set<Key>) -> Bool {
      recent.isEarlierState(
        Set(keys).subtracting(list), { list.contains($0) ? 1 : nil }, present: { _ in 1 },
        now: moment(3000))
    }
    #expect(isEarlier(set) && isEarlier([]))
    #expect(!isEarlier(set.union(keys.suffix(1))))
  }
}
