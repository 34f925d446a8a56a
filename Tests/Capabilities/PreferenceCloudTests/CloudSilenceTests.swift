import PreferenceModel
import PropertyList
import SystemCalls
import Testing

@testable import PreferenceCloud

/// Servers that hang and networks that change, by a clock of numbers.
@Suite("Connections that are dead") struct CloudSilenceTests {
  private static let start = Instant(nanoseconds: 1_000_000_000)
  private static let listed = Array(
    #"{"header":{"revision":"7"},"kvs":[{"key":"L3AvYWNjb3VudA==","mod_revision":"2","value":"ZjAwZA=="}]}"#
      .utf8)
  private static let alive = CloudSession.Input.answered(
    status: 200, body: Array(#"{"header":{"revision":"7"}}"#.utf8), date: nil)

  private static func after(_ milliseconds: Int64) -> Instant {
    start.advanced(milliseconds: milliseconds)
  }

  /// The server and the path of each request, without "http://".
  private static func calls(_ commands: [CloudSession.Command]) -> [String] {
    commands.compactMap {
      if case .call(let url, _, _, _) = $0 { String(url.dropFirst(7)) } else { nil }
    }
  }

  /// A session with two servers that listens to the first one since `start`.
  private static func listening() -> CloudSession {
    var session = CloudSession(
      EtcdCoding(prefix: "/p/"), endpoints: ["http://one", "http://two"], password: nil)
    _ = session.handle(.timeout, now: start, random: 0)
    _ = session.perform([.list])
    _ = session.handle(.answered(status: 200, body: listed, date: 5), now: start, random: 0)
    _ = session.perform([.watch(from: 8)])
    _ = session.handle(
      .watched(Array(#"{"result":{"header":{},"created":true}}"#.utf8)), now: start, random: 0)
    return session
  }

  private static func push(_ value: Value = 1) -> Synchroniser.Action {
    let record = CloudRecord(
      value: value, stamp: Stamp(milliseconds: 1, counter: 0, host: "h"), replaced: nil)
    return .push([.init(key: CloudKey("d", "K"), record: record, revision: 0)])
  }

  @Test("a server that sends nothing for 15 s is asked; without an answer the next one is tried")
  func hung() {
    var session = Self.listening()
    #expect(session.deadline == Self.after(15_000))
    #expect(session.handle(.timeout, now: Self.after(14_999), random: 0) == [])
    let asked = session.handle(.timeout, now: Self.after(15_000), random: 0)
    #expect(Self.calls(asked) == ["one/v3/kv/range"])
    #expect(session.deadline == Self.after(20_000))
    let told = session.handle(.timeout, now: Self.after(20_000), random: 0)
    #expect(told == [.silent(milliseconds: 20_000)])
    #expect(session.deadline == Self.after(30_000))
    let ended = session.handle(.timeout, now: Self.after(30_000), random: 0)
    #expect(ended.first == .disconnect && session.isPaused)
    let due = session.deadline ?? Self.start
    #expect(due <= Self.after(30_200))
    _ = session.handle(.timeout, now: due, random: 0)
    #expect(Self.calls(session.perform([.list])) == ["two/v3/kv/range"])
  }

  @Test("a status says since when nothing was heard, and keeps since when it is so")
  func status() throws {
    var status = CloudStatus(isConnected: true, endpoint: "http://one")
    status.silentSince = AbsoluteTime(milliseconds: 5000)
    let since = AbsoluteTime(milliseconds: 1000)
    let read = try #require(CloudStatus.read(status.note(since: since)))
    #expect(read.status == status && read.since == since)
    status.silentSince = nil
    #expect(CloudStatus.read(status.note(since: since))?.status == status)
  }

  @Test("an answer, and any line of the watch, puts the question off; hosts ask at different times")
  func heartbeats() {
    var session = Self.listening()
    _ = session.handle(.timeout, now: Self.after(15_000), random: 0)
    _ = session.handle(.timeout, now: Self.after(20_000), random: 0)
    let answered = session.handle(Self.alive, now: Self.after(21_000), random: 1)
    #expect(answered == [.silent(milliseconds: nil)])
    #expect(session.deadline == Self.after(31_000))
    let line = Array(#"{"result":{"header":{"revision":"9"}}}"#.utf8)
    #expect(session.handle(.watched(line), now: Self.after(30_000), random: 0) == [])
    #expect(session.deadline == Self.after(45_000))
  }

  @Test("after a change of the network a server that does not answer in 2 s has failed")
  func networkChange() {
    var session = Self.listening()
    #expect(session.handle(.networkChanged, now: Self.after(100), random: 0) == [])
    #expect(session.deadline == Self.after(400), "an address and its route are one change")
    let asked = session.handle(.timeout, now: Self.after(400), random: 0)
    #expect(Self.calls(asked) == ["one/v3/kv/range"])
    #expect(session.deadline == Self.after(2400))
    let ended = session.handle(.timeout, now: Self.after(2400), random: 0)
    #expect(ended.first == .disconnect && session.isPaused)
    #expect(session.deadline == Self.after(2600))
    // The server answers: nothing happens.
    session = Self.listening()
    _ = session.handle(.networkChanged, now: Self.after(100), random: 0)
    _ = session.handle(.timeout, now: Self.after(400), random: 0)
    #expect(session.handle(Self.alive, now: Self.after(410), random: 0) == [])
    #expect(session.deadline == Self.after(15_410))
  }

  @Test("a change that is sent after, or was sent before, a change of the network has 2 s too")
  func pushes() {
    for isBefore in [true, false] {
      var session = Self.listening()
      if isBefore { #expect(Self.calls(session.perform([Self.push()])).count == 1) }
      _ = session.handle(.networkChanged, now: Self.after(100), random: 0)
      if !isBefore { #expect(Self.calls(session.perform([Self.push()])).count == 1) }
      #expect(session.deadline == Self.after(2100))
      _ = session.handle(.timeout, now: Self.after(2100), random: 0)
      #expect(session.isPaused)
    }
  }

  @Test("a large change, which a slow line carries for longer, is not cut after 2 s")
  func largePushes() {
    let large = Self.push(.data(Array(repeating: 0, count: 1_000_000)))
    for input: CloudSession.Input in [.networkChanged, .probe] {
      for isBefore in [true, false] {
        var session = Self.listening()
        if isBefore { _ = session.perform([large]) }
        let asked = session.handle(input, now: Self.after(100), random: 0)
        if !isBefore { _ = session.perform([large]) }
        // The question of somebody who waits is on its way before the change.
        if asked.isEmpty { #expect(session.deadline == nil, "the transport sees its progress") }
        if asked.isEmpty { continue }
        #expect(input == .probe && !isBefore && session.deadline == Self.after(2100))
      }
    }
  }

  @Test("a change of the network ends a pause")
  func pauses() {
    var session = Self.listening()
    var now = Self.start
    for _ in 0..<12 {
      _ = session.handle(.failed("no"), now: now, random: 0)
      now = session.deadline ?? now
      _ = session.handle(.timeout, now: now, random: 0)
    }
    _ = session.handle(.failed("no"), now: now, random: 0)
    #expect(session.deadline == now.advanced(milliseconds: 60_000))
    #expect(session.handle(.networkChanged, now: now, random: 0) == [])
    #expect(session.deadline == now.advanced(milliseconds: 300))
  }

  @Test("somebody who waits learns in 2 s that a connection is dead")
  func probes() {
    var session = Self.listening()
    #expect(session.isAnswering(now: Self.after(5000)))
    #expect(
      Self.calls(session.handle(.probe, now: Self.after(5000), random: 0)) == ["one/v3/kv/range"])
    #expect(session.perform([.list]) == [], "one request at a time")
    #expect(session.listsWaiting == 1 && session.deadline == Self.after(7000))
    let listing = session.handle(Self.alive, now: Self.after(5001), random: 0)
    #expect(Self.calls(listing) == ["one/v3/kv/range"])
    #expect(session.deadline == nil, "a long list has its time")
    // A connection that has begun, and had no answer yet.
    session = CloudSession(EtcdCoding(prefix: "/p/"), endpoints: ["http://one"], password: nil)
    _ = session.handle(.timeout, now: Self.start, random: 0)
    _ = session.perform([.list])
    #expect(session.isAnswering(now: Self.after(1999)))
    #expect(!session.isAnswering(now: Self.after(2000)))
  }
}
