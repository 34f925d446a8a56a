import Testing

@testable import SystemCalls

/// Polling stops for all threads of a process, so these tests run one after the other.
@Suite("Polling", .serialized) struct PollingTests {
  @Test("a thread polls for 200 us, and lets others run after each look")
  func patience() {
    // A busy machine may have stopped the polling of an earlier test.
    Instant.sleep(milliseconds: 150)
    var yields = 0
    let start = Instant.now
    for _ in 0..<20 {
      #expect(Polling.looksAgain(since: start, now: start) { yields += 1 })
    }
    #expect(yields == 20)
    let late = start.advanced(nanoseconds: 200_000)
    #expect(!Polling.looksAgain(since: start, now: late) { yields += 1 })
    #expect(Polling.looksAgain(since: late, now: late) { yields += 1 })
  }

  @Test("when others need the processors, no thread polls for 100 ms")
  func busy() {
    Instant.sleep(milliseconds: 150)
    let start = Instant.now
    #expect(Polling.looksAgain(since: start, now: start) {})
    #expect(!Polling.looksAgain(since: start, now: start) { Instant.sleep(milliseconds: 2) })
    let then = Instant.now
    #expect(!Polling.looksAgain(since: then, now: then) {})
    let later = then.advanced(milliseconds: 101)
    #expect(Polling.looksAgain(since: later, now: later) {})
    // For the tests that follow.
    Instant.sleep(milliseconds: 110)
  }
}
