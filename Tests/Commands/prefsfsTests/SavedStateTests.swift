import PreferenceTree
import SystemCalls
import Testing

@testable import FUSEDriver

@Suite("Saved state of a driver")
struct SavedStateTests {
  @Test(
    "old answers are dropped, and no recent one while replies are held", arguments: [false, true])
  func answers(hasHeld: Bool) throws {
    let saved = SavedState(try SharedLog(name: "test"))
    for request in 1...10_000 { saved.add(.done, to: UInt64(request), hasHeld: hasHeld) }
    saved.replace(trees: [])
    let kept = try Estate(saved.log.contents, announced: 0).answers
    #expect(kept[10_000] == .done && kept[9_000] == .done)
    #expect(hasHeld ? kept.count == 10_000 : kept.count < 3000)
  }

  @Test("a whole state has the answers before it; the log grows by 16 MiB, or less where it rests")
  func growth() throws {
    let saved = SavedState(try SharedLog(name: "test"))
    let name = String(repeating: "a", count: 1 << 20)
    saved.add(.done, to: 1, hasHeld: false)
    saved.replace(trees: [])
    #expect(try Estate(saved.log.contents, announced: 0).answers.keys.sorted() == [1])
    #expect(!saved.isLong && saved.idleDeadline == nil)
    var count = 0
    while !saved.isLong, count < 20 {
      count += 1
      saved[.announced] = saved.add([Announcement("", nil, name: name, .created)])
      saved.commit()
      #expect(saved.idleDeadline.map { $0 > .now } == true)
    }
    #expect(count == 16)
    saved.replace(trees: [])
    #expect(!saved.isLong && saved.log.count < 1000)
  }

  @Test("a state that has no room is refused by a successor, until it has room again")
  func full() throws {
    let saved = SavedState(try SharedLog(name: "test", largest: 8 << 20))
    saved[.format] = SavedState.format
    let large = [UInt8](repeating: 1, count: 3 << 20)
    saved.replace(trees: large)
    #expect(saved[.format] == SavedState.format)
    // A whole state that does not fit leaves the old one.
    saved.replace(trees: large + large + large)
    #expect(!saved.isIncomplete && saved.log.count > 3 << 20)
    let name = String(repeating: "a", count: 3 << 20)
    while !saved.isIncomplete {
      // It is made at once, so that no whole state has it.
      saved[.announced] = saved.add([Announcement("", nil, name: name, .created)])
      saved.commit()
    }
    #expect(saved.isIncomplete && saved[.format] == 0)
    // It was tried a moment ago, and is tried again although nothing is added.
    #expect(!saved.isLong && saved.idleDeadline.map { $0 > .now } == true)
    saved.replace(trees: large)
    #expect(!saved.isIncomplete && saved[.format] == SavedState.format)
  }
}
