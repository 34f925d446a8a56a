@testable import PreferenceClient
import PreferenceModel
import PreferenceProtocol
import PropertyList
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

  @Test("where the connection ends, only the body of a request that was sent is called, and once")
  func unsent() throws {
    let (near, far) = try Socket.pair()
    let link = Link(near, rest: FrameReader(largest: 1 << 20), received: { _ in }, ended: {})
    let calls = Mutex((sent: 0, unsent: 0))
    let sent = link.post(.ping, until: .now) { _ in calls.withLock { $0.sent += 1 } }
    #expect(sent == .sent)
    var frame: [UInt8] = []
    let progress = far.value.receive(into: &frame)
    #expect(progress == .moved(frame.count))
    let other = try WorkerThread(name: "other") {
      // A part of the next request has come: it waits for room.
      _ = far.value.wait(until: nil)
      link.finish()
      far.value.end()
    }
    let large = Request.report(.check([UInt8](repeating: 0, count: 8 << 20)))
    let deadline = Instant.now.advanced(milliseconds: 5000)
    let unsent = link.post(large, until: deadline) { _ in calls.withLock { $0.unsent += 1 } }
    other.join()
    #expect(unsent == .ended)
    #expect(calls.withLock { $0.sent } == 1 && calls.withLock { $0.unsent } == 0)
  }

  @Test("a call that waits for a slow disk goes on while the owner answers pings")
  func slow() throws {
    let (near, far) = try Socket.pair()
    let link = Link(near, rest: FrameReader(largest: 1 << 20), received: { _ in }, ended: {})
    let owner = try WorkerThread(name: "owner") {
      var requests = FrameReader(largest: 1 << 20)
      while far.value.wait(until: Instant.now.advanced(milliseconds: 8000)) {
        if far.value.receive(into: &requests.bytes) == .ended { return }
        while let frame = (try? requests.next()) ?? nil {
          // The call is answered after the ping that asks whether the owner is there.
          guard frame.number != 1 else { continue }
          for number in [frame.number, 1] { _ = far.value.send(Message.done.frame(number)[...]) }
          return
        }
      }
    }
    defer { owner.join() }
    let answer = try link.call(.synchronize(mounts: false), until: Instant(nanoseconds: .max))
    if case .done = answer {} else { Issue.record("\(answer)") }
  }

  @Test("a call waits longer than its deadline for what the owner says that it works at")
  func workedAt() throws {
    let (near, far) = try Socket.pair()
    let link = Link(near, rest: FrameReader(largest: 1 << 20), received: { _ in }, ended: {})
    let owner = try WorkerThread(name: "owner") {
      // The number of the call is 1.
      _ = far.value.send(Message.working(on: 1).frame(0)[...])
      Instant.sleep(milliseconds: 1500)
      _ = far.value.send(Message.done.frame(1)[...])
    }
    defer { owner.join() }
    let answer = try link.call(.ping, until: Instant.now.advanced(milliseconds: 1000))
    #expect(answer == .done)
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
