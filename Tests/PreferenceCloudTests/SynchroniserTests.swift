import PreferenceModel
import PropertyList
import Testing

@testable import PreferenceCloud

/// Hosts that keep their keys the same over a server, with a network that loses, repeats and delays
/// messages, clocks that are wrong, and ends at any moment.
@Suite("Synchronisation of hosts") struct SynchroniserTests {
  @Test(
    "whatever is lost, delayed and restarted, all hosts agree, and no acknowledged set is lost",
    arguments: 1...40)
  func storm(_ seed: Int) {
    var world = World(seed: UInt64(seed), hosts: 2 + seed % 7, keys: 1 + seed % 5)
    for _ in 0..<600 { world.step() }
    world.heal()
    world.check(seed)
  }

  // MARK: - Single steps

  private static let key = CloudKey("d", "K")

  private static func record(
    _ value: Value?, _ time: Int64, _ host: String = "other"
  ) -> CloudRecord {
    CloudRecord(
      value: value, stamp: Stamp(milliseconds: time, counter: 0, host: host), replaced: nil)
  }

  private static func connected(_ records: [CloudKey: CloudState.Known] = [:]) -> Synchroniser {
    var machine = Synchroniser(CloudState(host: "here"))
    _ = machine.handle(.connected, wall: 1)
    _ = machine.handle(.listed(records, revision: 5, account: "a"), wall: 1)
    return machine
  }

  @Test("at the first connection the server's value wins, and the local one is in the log")
  func first() {
    var machine = Synchroniser(CloudState(host: "here"))
    #expect(machine.handle(.set([Self.key: "local"]), wall: 900) == [])
    _ = machine.handle(.connected, wall: 901)
    let actions = machine.handle(
      .listed([Self.key: .init(Self.record("theirs", 1), revision: 3)], revision: 7, account: "a"),
      wall: 902)
    #expect(actions == [.edit([Self.key: "theirs"]), .watch(from: 8)])
    #expect(machine.state.losers.map(\.value) == ["local"])
    #expect(machine.state.pending.isEmpty)
  }

  @Test("the keys of one change are one push, compared with what is known")
  func oneTransaction() {
    var machine = Self.connected([Self.key: .init(Self.record(1, 1), revision: 4)])
    let other = CloudKey("d", "L")
    let actions = machine.handle(.set([Self.key: 2, other: 3]), wall: 10)
    guard case .push(let pushes)? = actions.first else {
      Issue.record("no push: \(actions)")
      return
    }
    #expect(pushes.map(\.key) == [Self.key, other])
    #expect(pushes.map(\.revision) == [4, 0])
    #expect(pushes.map(\.record.value) == [2, 3])
    #expect(machine.handle(.set([other: 4]), wall: 11) == [], "one push at a time")
    let next = machine.handle(.pushed(revision: 6), wall: 12)
    #expect(next.count == 1 && machine.state.known[Self.key]?.revision == 6)
  }

  @Test("the later stamp wins a refused push, and the loser is in the log", arguments: [5, 50])
  func refused(_ theirs: Int64) {
    var machine = Self.connected()
    _ = machine.handle(.set([Self.key: "ours"]), wall: 20)
    let actions = machine.handle(
      .refused([Self.key: .init(Self.record("theirs", theirs), revision: 6)], revision: 6), wall: 21
    )
    if theirs > 20 {
      #expect(actions == [.edit([Self.key: "theirs"])])
      #expect(machine.state.losers.map(\.value) == ["ours"])
    } else {
      guard case .push(let pushes)? = actions.first else {
        Issue.record("no push: \(actions)")
        return
      }
      #expect(pushes.map(\.revision) == [6])
      #expect(machine.state.losers.map(\.value) == ["theirs"])
    }
  }

  @Test("a clock that is a minute and more ahead of the server's is cut")
  func clocks() {
    var machine = Self.connected()
    let actions = machine.handle(.set([Self.key: 1]), wall: 10_000_000, server: 1000)
    guard case .push(let pushes)? = actions.first else {
      Issue.record("no push: \(actions)")
      return
    }
    #expect(pushes.map(\.record.stamp.milliseconds) == [1000])
    var clock = HybridClock(host: "h")
    clock.hear(Stamp(milliseconds: .max, counter: .max, host: "x"))
    let next = clock.stamp(at: 5)
    #expect(next.milliseconds == .max && next.counter == 0, "numbers from outside do not trap")
  }

  @Test("an edit that comes back through the watch is no edit")
  func noEcho() {
    var machine = Self.connected()
    let actions = machine.handle(.set([Self.key: 1]), wall: 10)
    guard case .push(let pushes)? = actions.first else {
      Issue.record("no push: \(actions)")
      return
    }
    #expect(machine.handle(.changed([Self.key: pushes[0].record], revision: 6), wall: 11) == [])
    #expect(machine.handle(.pushed(revision: 6), wall: 12) == [])
    #expect(machine.state.pending.isEmpty && machine.state.losers.isEmpty)
  }

  @Test("a state and a record come back from their bytes; other bytes are refused")
  func coding() throws {
    var machine = Self.connected([Self.key: .init(Self.record([1, "x"], 1), revision: 4)])
    _ = machine.handle(.set([Self.key: ["a": .real(2)], CloudKey("e", ""): nil]), wall: 10)
    _ = machine.handle(
      .refused([Self.key: .init(Self.record("won", 99), revision: 6)], revision: 6), wall: 21)
    let state = machine.state
    #expect(state.losers.count == 1 && state.pending.count == 1)
    #expect(CloudState(state.saved, host: "here") == state)
    #expect(CloudState(state.saved, host: "copy").pending == state.pending)
    let broken = SavedState()
    #expect(CloudState(broken, host: "here") == CloudState(host: "here"))
    let bytes = Self.record([1, "x"], 1).bytes
    for index in bytes.indices {
      var changed = bytes
      changed[index] ^= 0xFF
      _ = CloudRecord(changed)
      _ = CloudRecord(Array(bytes.prefix(index)))
    }
    #expect(CloudRecord([]) == nil && CloudRecord(Document.binary(["version": 2])) == nil)
  }

  @Test("the record of a removal is deleted after 30 days, by one who knows of nothing newer")
  func purge() {
    let day: Int64 = 86_400_000
    var machine = Self.connected([
      Self.key: .init(Self.record(nil, 0), revision: 3),
      CloudKey("d", "L"): .init(Self.record(1, 0), revision: 4),
      CloudKey("d", "M"): .init(Self.record(nil, 5 * day), revision: 5),
    ])
    #expect(machine.handle(.tick, wall: 0, server: 30 * day) == [])
    #expect(machine.handle(.tick, wall: 0, server: 31 * day) == [.purge([Self.key: 3])])
    #expect(machine.handle(.changed([Self.key: nil], revision: 9), wall: 0) == [])
    #expect(machine.state.known[Self.key] == nil)
    #expect(machine.handle(.tick, wall: 0, server: 31 * day) == [])
    let body = String(
      decoding: EtcdCoding(prefix: "/p/").purge(Self.key, revision: 3), as: UTF8.self)
    #expect(body.contains("request_delete_range") && body.contains("\"mod_revision\""))
  }
}
