@testable import PreferenceClient
import PreferenceProtocol
import Synchronization
import SystemCalls
import Testing

@Suite("The thread of a connection") struct LinkTests {
  /// How often the calling thread has slept so far; -1: unknown.
  private static func sleeps() -> Int {
    let text = (try? Files.contents("/proc/thread-self/status", limit: 1 << 16)) ?? []
    let lines = String(decoding: text, as: UTF8.self).split(separator: "\n")
    let line = lines.first { $0.hasPrefix("voluntary_ctxt_switches:") }
    return line?.split(separator: "\t").last.flatMap { Int($0) } ?? -1
  }

  private static func spin(microseconds: Int64) {
    let start = Instant.now
    while Instant.now.nanoseconds(after: start) < microseconds * 1000 {}
  }

  @Test("it does not wake up for each of many messages that follow each other")
  func rows() throws {
    let count = 500
    let (near, far) = try Socket.pair()
    let seen = Mutex((messages: 0, first: -1, last: -1))
    let link = Link(
      near, rest: FrameReader(largest: 1 << 20),
      received: { _ in
        seen.withLock { seen in
          seen.messages += 1
          if seen.messages == 1 { seen.first = Self.sleeps() }
          if seen.messages == count { seen.last = Self.sleeps() }
        }
      }, ended: {})
    try link.start()
    defer { link.stop() }
    let frame = Message.done.frame(0)
    let start = Instant.now
    for _ in 0..<count {
      #expect(far.value.send(frame[...]) == .moved(frame.count))
      Self.spin(microseconds: 100)
    }
    for _ in 0..<5000 where seen.withLock({ $0.messages }) < count {
      Instant.sleep(microseconds: 1000)
    }
    let microseconds = Int(Instant.now.nanoseconds(after: start) / 1000)
    let (messages, first, last) = seen.withLock { $0 }
    #expect(messages == count && first >= 0)
    // Messages that come with longer pauses, on a busy machine, may wake it up one by one.
    #expect(last - first < 20 + microseconds / 200)
  }
}
