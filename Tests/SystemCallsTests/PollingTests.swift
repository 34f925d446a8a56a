import Testing

@testable import SystemCalls

/// Polling stops for all threads of a process, so these tests run one after the other.
@Suite("Polling", .serialized) struct PollingTests {
  @Test("a thread polls for 200 us, and lets others run after every fourth look")
  func patience() {
    // A busy machine may have stopped the polling of an earlier test.
    Instant.sleep(milliseconds: 150)
    var polling = Polling()
    var yields = 0
    let start = Instant.now
    for _ in 0..<20 {
      #expect(polling.looksAgain(since: start, now: start) { yields += 1 })
    }
    #expect(yields == 5)
    let late = start.advanced(microseconds: 200)
    #expect(!polling.looksAgain(since: start, now: late) { yields += 1 })
    #expect(polling.looksAgain(since: late, now: late) { yields += 1 })
  }

  @Test("when others need the processors, no thread polls for 100 ms")
  func busy() {
    Instant.sleep(milliseconds: 150)
    var (first, second) = (Polling(), Polling())
    let start = Instant.now
    let answers = (0..<4).map { _ in
      first.looksAgain(since: start, now: start) { Instant.sleep(milliseconds: 2) }
    }
    #expect(answers == [true, true, true, false])
    let then = Instant.now
    #expect(!second.looksAgain(since: then, now: then) {})
    let later = then.advanced(milliseconds: 101)
    #expect(second.looksAgain(since: later, now: later) {})
    // For the tests that follow.
    Instant.sleep(milliseconds: 110)
  }
}
