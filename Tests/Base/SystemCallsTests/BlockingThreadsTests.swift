import Glibc
import Testing

@testable import SystemCalls

@Suite("Threads for work that may wait for ever")
struct BlockingThreadsTests {
  @Test("bodies that hang delay no other, until they take all threads")
  func hanging() {
    let threads = BlockingThreads(name: "test", most: 3, mostWaiting: 1)
    let gate = Monitor(false)
    let done = Monitor(0)
    for _ in 0..<2 {
      #expect(threads.run { _ = gate.wait { $0 ? true : nil } })
    }
    for _ in 0..<20 {
      // The third thread runs them one after the other.
      let before = done.withLock { $0 }
      #expect(threads.run { done.change { $0 += 1 } })
      #expect(
        done.wait(until: .now.advanced(milliseconds: 5000)) { $0 > before ? true : nil } == true)
      waitUntilIdle(threads)
    }
    #expect(threads.run { _ = gate.wait { $0 ? true : nil } })
    #expect(threads.run { done.change { $0 = 100 } })
    #expect(!threads.run {})
    gate.change { $0 = true }
    // The one that had to wait runs as soon as there is a thread.
    #expect(done.wait(until: .now.advanced(milliseconds: 5000)) { $0 == 100 ? true : nil } == true)
  }

  @Test("a body that comes after another one does not wait for it, whichever thread polls")
  func pairs() {
    let threads = BlockingThreads(name: "test", most: 2)
    let finished = Monitor((first: 0, second: 0))
    for round in 1...5000 {
      #expect(
        threads.run {
          _ = finished.wait(until: .now.advanced(milliseconds: 5000)) {
            $0.second == round ? true : nil
          }
          finished.change { $0.first = round }
        })
      #expect(threads.run { finished.change { $0.second = round } })
      let isOver = finished.wait(until: .now.advanced(milliseconds: 1000)) {
        $0.first == round ? true : nil
      }
      guard isOver == true else {
        Issue.record("round \(round): the second body waits for the first")
        return
      }
    }
  }

  @Test("each body that many threads give is run once")
  func many() throws {
    let threads = BlockingThreads(name: "test", most: 8)
    let done = Monitor([Int: Int]())
    let givers = try (0..<4).map { giver in
      try WorkerThread(name: "giver") {
        for number in 0..<500 {
          while !threads.run({ done.change { $0[giver * 500 + number, default: 0] += 1 } }) {
            sched_yield()
          }
        }
      }
    }
    for giver in givers { giver.join() }
    _ = done.wait(until: .now.advanced(milliseconds: 5000)) { $0.count == 2000 ? true : nil }
    #expect(done.withLock { $0.count } == 2000)
    #expect(done.withLock { $0.values.allSatisfy { $0 == 1 } })
  }

  @Test("a body is freed after it has run")
  func letsGo() {
    final class Token: Sendable {}
    let threads = BlockingThreads(name: "test", most: 1)
    let done = Monitor(false)
    weak var token: Token?
    do {
      let kept = Token()
      token = kept
      #expect(threads.run { done.change { $0 = withExtendedLifetime(kept) { true } } })
    }
    _ = done.wait { $0 ? true : nil }
    waitUntilIdle(threads)
    #expect(token == nil)
  }

  /// Waits until the bodies have returned, which is a moment after they set `done`.
  private func waitUntilIdle(_ threads: BlockingThreads) {
    let end = Instant.now.advanced(milliseconds: 5000)
    while !threads.hasIdle, Instant.now < end { Instant.sleep(milliseconds: 1) }
  }
}
