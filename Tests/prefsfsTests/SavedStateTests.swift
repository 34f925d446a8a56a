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

  @Test("what is committed while a whole state is written is in it, and in the log before")
  func parts() throws {
    let saved = SavedState(try SharedLog(name: "test"))
    let requests = { try Estate(saved.log.contents, announced: 0).answers.keys.sorted() }
    let commit = { (request: UInt64) in
      saved.add(.done, to: request, hasHeld: true)
      saved.commit()
    }
    commit(1)
    saved.beginReplacing()
    commit(2)
    saved.replace(part: [])
    #expect(try requests() == [1, 2] && saved.isReplacing)
    commit(3)
    saved.replace(part: nil)
    commit(4)
    #expect(try requests() == [1, 2, 3, 4] && !saved.isReplacing)
  }

  @Test("a request that adds little writes no part of a whole state, but for every 2 KiB")
  func pace() throws {
    let saved = SavedState(try SharedLog(name: "test"))
    saved.beginReplacing()
    var parts = 0
    for request in 1...10_000 {
      saved.add(.done, to: UInt64(request), hasHeld: false)
      saved.commit()
      if saved.isPartDue {
        saved.replace(part: [])
        parts += 1
      }
    }
    let added = saved.log.count
    #expect(parts >= added / 2048 && parts <= added / 2048 + 1)
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
    #expect(!saved.isIncomplete && !saved.isReplacing && saved.log.count > 3 << 20)
    for request in 1...10_000 where !saved.isIncomplete {
      saved.remember(large, change: 1, of: UInt64(request))
    }
    #expect(saved.isIncomplete && saved[.format] == 0)
    // It was tried a moment ago, and is tried again although nothing is added.
    #expect(!saved.isLong && saved.idleDeadline.map { $0 > .now } == true)
    saved.beginReplacing()
    #expect(saved.isPartDue && saved.idleDeadline == nil)
    saved.replace(part: [])
    #expect(saved.isPartDue)
    saved.replace(trees: large)
    #expect(!saved.isIncomplete && saved[.format] == SavedState.format)
  }
}
