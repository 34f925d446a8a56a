import SystemCalls
import Testing

@testable import FUSEDriver

@Suite("What other threads make") struct JobTests {
  @Test("it is there when the thread says so, and not before; nobody waits for a busy thread")
  func made() throws {
    let threads = BlockingThreads(name: "prefs-test", most: 1, mostWaiting: 0)
    let (mayEnd, hasTold) = (Monitor(false), Monitor(false))
    let begun = Job<Int>.begin(on: threads, told: { hasTold.change { $0 = true } }) {
      mayEnd.wait { $0 ? 7 : nil } ?? 0
    }
    let job = try #require(begun)
    #expect(job.made == nil)
    let refused = Job<Int>.begin(on: threads, told: {}) { 8 }
    #expect(refused == nil)
    mayEnd.change { $0 = true }
    let isTold = hasTold.wait(until: Instant.now.advanced(milliseconds: 5000)) { $0 ? true : nil }
    #expect(isTold == true && job.made == 7)
  }
}
