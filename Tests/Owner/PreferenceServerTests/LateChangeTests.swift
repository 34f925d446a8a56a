@testable import PreferenceClient
import PreferenceModel
import PropertyList
import Support
import Synchronization
import SystemCalls
import Testing

private let user = Location(.user, "d")
private let author = Author(number: 5)

@Suite("Changes whose callers have given up") struct LateChangeTests {
  @Test("a change that the owner makes too late for its caller is told to its author")
  func madeLate() throws {
    try withSandbox { sandbox in
      let mayGoOn = Monitor(false)
      let served = try ServedStore(
        sandbox, observer: { _ in _ = mayGoOn.wait(until: nil) { $0 ? true : nil } })
      defer { served.end() }
      let client = try served.client(7)
      defer { client.close() }
      let heard = Mutex<[Notice]>([])
      client.observe(except: author) { notice in heard.withLock { $0.append(notice) } }
      let origin = Origin(client: 7, serial: 1)
      #expect(throws: Link.late) {
        try client.apply(
          [.set("K", "d", 1, .unknown)], by: author, origin: origin,
          until: Instant.now.advanced(milliseconds: 300))
      }
      #expect(heard.withLock { $0.isEmpty })
      mayGoOn.change { $0 = true }
      let end = Instant.now.advanced(milliseconds: 5000)
      while Instant.now < end, heard.withLock({ $0.isEmpty }) { Instant.sleep(milliseconds: 10) }
      #expect(heard.withLock { $0.map(\.events) } == [[KeyEvent("d", "K", .created)]])
      #expect(try client.find("K", at: user)?.value == 1)
      // Its next change is its own again.
      _ = try client.apply([.set("K", "d", 2, .unknown)], by: author)
      #expect(heard.withLock { $0.count } == 1)
    }
  }

  @Test("a change whose answer is late, but not its notice, was made")
  func answeredLate() throws {
    try withServedStore { served in
      let mayGoOn = Monitor(false)
      served.places.observe(except: nil) { _ in _ = mayGoOn.wait(until: nil) { $0 ? true : nil } }
      let client = try served.client(7)
      defer { client.close() }
      let made = try client.apply(
        [.set("K", "d", 1, .unknown)], by: author, origin: Origin(client: 7, serial: 1),
        until: Instant.now.advanced(milliseconds: 300))
      #expect(made.items.contains { $0.edit.key == "K" })
      mayGoOn.change { $0 = true }
      #expect(try client.find("K", at: user)?.value == 1)
      let next = try client.apply([.remove("K", "d")], by: author)
      let removed = next.items.compactMap { item -> Value? in
        if case .value(let stored) = item.before { stored.value } else { nil }
      }
      #expect(removed == [1])
    }
  }

  @Test("a command waits for work that the owner has begun: no change is refused and made")
  func longWork() throws {
    try withSandbox { sandbox in
      let served = try ServedStore(sandbox, observer: { _ in Instant.sleep(milliseconds: 800) })
      defer { served.end() }
      let number = UInt64.random(in: 1 ... .max)
      let command = try served.client(number, isBrief: true)
      defer { command.close() }
      let changeset = try command.apply(
        [.edit(Location(.user, "d"), .set("K", 1, .canonical))], by: .unique(),
        origin: Origin(client: number, serial: 1),
        until: Instant.now.advanced(milliseconds: 300))
      #expect(changeset.items.count >= 1)
      #expect(try command.find("K", at: Location(.user, "d"))?.value == 1)
    }
  }
}
