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
}
