import Testing

@testable import FUSEDriver

@Suite("Polling") struct PollingTests {
  /// Gives requests, each after the pause of the way in which the loop waits, and returns the part
  /// of them for which it polled.
  private func serve(
    _ count: Int, _ polling: inout Polling, whilePolling: Int64, whileSleeping: Int64
  ) -> Double {
    var polled = 0
    for _ in 0..<count {
      let polls = polling.patience > 0
      polled += polls ? 1 : 0
      polling.note(polls ? whilePolling : whileSleeping)
    }
    return Double(polled) / Double(count)
  }

  @Test("the loop polls on a quiet machine, sleeps on a busy one, and follows a change")
  func follows() {
    var polling = Polling()
    #expect(serve(20_000, &polling, whilePolling: 50_000, whileSleeping: 110_000) > 0.95)
    _ = serve(5_000, &polling, whilePolling: 80_000, whileSleeping: 50_000)
    #expect(serve(20_000, &polling, whilePolling: 80_000, whileSleeping: 50_000) < 0.05)
    _ = serve(5_000, &polling, whilePolling: 50_000, whileSleeping: 110_000)
    #expect(serve(20_000, &polling, whilePolling: 50_000, whileSleeping: 110_000) > 0.95)
  }

  @Test("pauses of the client's own do not count, and no number does harm")
  func pauses() {
    var polling = Polling()
    for pause in [Int64.max, 3_600_000_000_000, 20_000_000] {
      for _ in 0..<5000 { polling.note(pause) }
      #expect(polling.patience > 0)
    }
    for _ in 0..<5000 { polling.note(.min) }
    #expect(serve(20_000, &polling, whilePolling: 50_000, whileSleeping: 110_000) > 0.9)
  }
}
