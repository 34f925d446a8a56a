import PreferenceModel
import PropertyList
import SystemCalls
import Testing

@testable import PreferenceCloud

/// Requests, refusals, pauses and other servers, without a network.
@Suite("Session with the servers of a cloud") struct CloudSessionTests {
  private static let start = Instant(nanoseconds: 1_000_000_000)
  private static let key = CloudKey("d", "K")
  private static let listed = Array(
    #"{"header":{"revision":"7"},"kvs":[{"key":"L3AvYWNjb3VudA==","mod_revision":"2","value":"ZjAwZA=="}]}"#
      .utf8)

  private static func session(user: String? = nil, servers: Int = 1) -> CloudSession {
    CloudSession(
      EtcdCoding(user: user, prefix: "/p/"),
      endpoints: (0..<servers).map { "http://127.0.0.1:\($0 + 1)/" }, password: "secret")
  }

  private static func after(_ milliseconds: Int64) -> Instant {
    start.advanced(milliseconds: milliseconds)
  }

  /// Paths of the requests that the commands send, with the token of each.
  private static func calls(_ commands: [CloudSession.Command]) -> [String] {
    commands.compactMap {
      if case .call(let url, _, let token, _) = $0 { "\(url) \(token ?? "-")" } else { nil }
    }
  }

  private static func answer(_ status: Int, _ text: String) -> CloudSession.Input {
    .answered(status: status, body: Array(text.utf8), date: nil)
  }

  /// A session that has been connected and listed.
  private static func listedSession(user: String? = nil) -> CloudSession {
    var session = session(user: user)
    _ = session.handle(.timeout, now: start, random: 0)
    if user != nil {
      _ = session.handle(answer(200, #"{"header":{},"token":"t1"}"#), now: start, random: 0)
    }
    _ = session.perform([.list])
    _ = session.handle(
      .answered(status: 200, body: listed, date: 5), now: start, random: 0)
    return session
  }

  @Test("a user is authenticated first; a token that the server forgot is renewed once")
  func tokens() {
    var session = Self.session(user: "ada")
    var commands = session.handle(.timeout, now: Self.start, random: 0)
    #expect(Self.calls(commands) == ["http://127.0.0.1:1/v3/auth/authenticate -"])
    commands = session.handle(
      Self.answer(200, #"{"header":{},"token":"t1"}"#), now: Self.start, random: 0)
    #expect(commands == [.event(.connected, server: nil)])
    #expect(Self.calls(session.perform([.list])) == ["http://127.0.0.1:1/v3/kv/range t1"])
    let old = #"{"error":"etcdserver: invalid auth token","code":16}"#
    commands = session.handle(Self.answer(401, old), now: Self.start, random: 0)
    #expect(Self.calls(commands) == ["http://127.0.0.1:1/v3/auth/authenticate -"])
    commands = session.handle(
      Self.answer(200, #"{"header":{},"token":"t2"}"#), now: Self.start, random: 0)
    #expect(Self.calls(commands) == ["http://127.0.0.1:1/v3/kv/range t2"])
    commands = session.handle(Self.answer(401, old), now: Self.start, random: 0)
    #expect(commands.contains(.disconnect) && session.isPaused)
  }

  @Test("after a failure the next server is tried; pauses grow to a minute, cut by a random part")
  func pauses() throws {
    var session = Self.session(servers: 2)
    var now = Self.start
    var pauses: [Int] = []
    var servers: [String] = []
    for _ in 0..<12 {
      _ = session.handle(.timeout, now: now, random: 0)
      servers += Self.calls(session.perform([.list])).map { String($0.prefix(18)) }
      _ = session.handle(.failed("no"), now: now, random: 0)
      let due = try #require(session.deadline)
      #expect(session.handle(.timeout, now: now, random: 0) == [])
      pauses.append(due.milliseconds(after: now))
      now = due
    }
    #expect(pauses.prefix(4) == [200, 400, 800, 1600] && pauses.max() == 60_000)
    #expect(
      servers.prefix(3) == ["http://127.0.0.1:1", "http://127.0.0.1:2", "http://127.0.0.1:1"])
    _ = session.handle(.timeout, now: now, random: 0)
    _ = session.perform([.list])
    _ = session.handle(.failed("no"), now: now, random: 1)
    let shortest = try #require(session.deadline).milliseconds(after: now)
    #expect((5900...6000).contains(shortest), "the range grows with failures")
  }

  @Test(
    "a list alone does not make a connection a good one: a server that refuses pushes is paused")
  func refusedPushes() throws {
    var session = Self.session()
    var now = Self.start
    var pauses: [Int] = []
    for _ in 0..<6 {
      _ = session.handle(.timeout, now: now, random: 0)
      _ = session.perform([.list])
      _ = session.handle(.answered(status: 200, body: Self.listed, date: 5), now: now, random: 0)
      let record = CloudRecord(
        value: 1, stamp: Stamp(milliseconds: 1, counter: 0, host: "h"), replaced: nil)
      _ = session.perform([.push([.init(key: Self.key, record: record, revision: 0)])])
      let full = #"{"error":"etcdserver: mvcc: database space exceeded","code":8}"#
      let commands = session.handle(Self.answer(429, full), now: now, random: 0)
      #expect(
        commands.contains {
          if case .status(let status) = $0 {
            status.error?.contains("space exceeded") == true
          } else {
            false
          }
        })
      let due = try #require(session.deadline)
      pauses.append(due.milliseconds(after: now))
      now = due
    }
    #expect(pauses == [200, 400, 800, 1600, 3200, 6400])
  }

  @Test("the server's clock is that of the same answer: an earlier one is not repeated")
  func serverTimes() {
    var session = Self.listedSession()
    for date: Int64? in [70_000, nil] {
      _ = session.perform([.list])
      let commands = session.handle(
        .answered(status: 200, body: Self.listed, date: date), now: Self.start, random: 0)
      let times = commands.compactMap { if case .event(_, let server) = $0 { server } else { nil } }
      #expect(times == [date].compactMap { $0 } && commands.count == 1)
    }
  }

  @Test("a server that refuses whatever it is sent ends the connection")
  func endlessRefusals() {
    var session = Self.listedSession()
    let record = CloudRecord(
      value: 1, stamp: Stamp(milliseconds: 1, counter: 0, host: "h"), replaced: nil)
    var count = 0
    while !session.isPaused, count < 1000 {
      _ = session.perform([.push([.init(key: Self.key, record: record, revision: 0)])])
      _ = session.handle(
        Self.answer(200, #"{"header":{"revision":"9"}}"#), now: Self.start, random: 0)
      count += 1
    }
    #expect(count == 30)
  }

  @Test(
    "an answer that is garbage, cut or of something else ends the connection, and is no event",
    arguments: [
      "", "{", "[]", "<html>", "null", #"{"header":{}}"#, #"{"header":{"revision":"x"}}"#,
      #"{"error":"what?"}"#,
    ])
  func garbage(_ body: String) {
    var session = Self.session()
    _ = session.handle(.timeout, now: Self.start, random: 0)
    _ = session.perform([.list])
    let commands = session.handle(Self.answer(200, body), now: Self.start, random: 0)
    #expect(commands.first == .disconnect && session.isPaused)
    #expect(commands.contains(.event(.disconnected, server: nil)))
    // What still comes of it is not heard, and nothing is sent.
    #expect(session.handle(.watched(Self.listed), now: Self.start, random: 0) == [])
    #expect(session.handle(Self.answer(200, "{}"), now: Self.start, random: 0) == [])
    #expect(session.perform([.list]) == [])
  }

  @Test("under a prefix that nobody has used, the record that identifies it is made first")
  func unfounded() {
    var session = Self.session()
    _ = session.handle(.timeout, now: Self.start, random: 0)
    _ = session.perform([.list])
    var commands = session.handle(
      Self.answer(200, #"{"header":{"revision":"1"}}"#), now: Self.start, random: 0.5)
    #expect(Self.calls(commands) == ["http://127.0.0.1:1/v3/kv/txn -"])
    commands = session.handle(
      Self.answer(200, #"{"header":{"revision":"2"},"succeeded":true}"#), now: Self.start, random: 0
    )
    #expect(Self.calls(commands) == ["http://127.0.0.1:1/v3/kv/range -"])
    #expect(session.listsWaiting == 1)
    commands = session.handle(
      .answered(status: 200, body: Self.listed, date: 5), now: Self.start, random: 0)
    #expect(commands.contains(.event(.listed([:], revision: 7, account: " /p/ f00d"), server: 5)))
  }

  @Test("a watch that is denied, canceled or closed ends the connection; compaction does not")
  func watches() {
    for line in [
      #"{"result":{"header":{},"canceled":true,"cancel_reason":"permission denied"}}"#, "{", "",
    ] {
      var session = Self.listedSession()
      let commands = session.handle(.watched(Array(line.utf8)), now: Self.start, random: 0)
      #expect(commands.contains(.disconnect), "\(line)")
    }
    var session = Self.listedSession()
    let compacted = #"{"result":{"header":{},"canceled":true,"compact_revision":"9"}}"#
    #expect(
      session.handle(.watched(Array(compacted.utf8)), now: Self.start, random: 0)
        == [.endWatch, .event(.compacted, server: nil)])
    #expect(session.handle(.watchEnded("x"), now: Self.start, random: 0).contains(.disconnect))
  }

  @Test("a server of whose answers nothing comes is asked a few times a minute")
  func detours() {
    let hidden = Self.answer(200, #"{"header":{"revision":"7"},"kvs":[]}"#)
    let founded = Self.answer(200, #"{"header":{"revision":"8"},"succeeded":true}"#)
    let compacted = #"{"result":{"header":{},"canceled":true,"compact_revision":"9"}}"#
    for answers in [[hidden, founded], [.watched(Array(compacted.utf8))]] {
      var (session, now, requests) = (Self.session(), Self.start, 0)
      let end = Self.after(600_000)
      while now < end {
        _ = session.handle(.timeout, now: now, random: 0)
        _ = session.perform([.list])
        while !session.isPaused, now < end {
          for answer in answers {
            requests += 1
            now = now.advanced(milliseconds: 1)
            _ = session.handle(answer, now: now, random: 0)
          }
        }
        now = max(now, session.isPaused ? session.deadline ?? end : end)
      }
      #expect(requests < 200, "\(requests)")
    }
  }

  @Test("compactions in a connection that works are not failures")
  func compactions() {
    var session = Self.listedSession()
    let compacted = #"{"result":{"header":{},"canceled":true,"compact_revision":"9"}}"#
    let removal = #"{"type":"DELETE","kv":{"key":"L3AvZC9L","mod_revision":"9"}}"#
    let changed = #"{"result":{"header":{"revision":"9"},"events":[\#(removal)]}}"#
    for _ in 0..<20 {
      let commands = session.handle(.watched(Array(compacted.utf8)), now: Self.start, random: 0)
      #expect(commands == [.endWatch, .event(.compacted, server: nil)])
      _ = session.handle(.watched(Array(changed.utf8)), now: Self.start, random: 0)
    }
  }
}
