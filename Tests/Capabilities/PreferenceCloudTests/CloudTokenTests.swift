import SystemCalls
import Testing

@testable import PreferenceCloud

/// What a server has to pay for passwords.
@Suite("Authentications") struct CloudTokenTests {
  private static let start = Instant(nanoseconds: 1_000_000_000)
  private static let forgotten = answer(
    401, #"{"error":"etcdserver: invalid auth token","code":16}"#)

  private static func after(_ milliseconds: Int64) -> Instant {
    start.advanced(milliseconds: milliseconds)
  }

  private static func answer(_ status: Int, _ text: String) -> CloudSession.Input {
    .answered(status: status, body: Array(text.utf8), date: nil)
  }

  private static func token(_ text: String) -> CloudSession.Input {
    answer(200, #"{"header":{},"token":"\#(text)"}"#)
  }

  /// The path, token and patience of each request.
  private static func calls(_ commands: [CloudSession.Command]) -> [String] {
    commands.compactMap {
      guard case .call(let url, _, let token, let patience) = $0 else { return nil }
      return "\(url.split(separator: "/").last ?? "") \(token ?? "-") \(patience)"
    }
  }

  /// A session that has asked for a list, after an authentication that took so long.
  private static func listing(after milliseconds: Int64) -> CloudSession {
    var session = CloudSession(
      EtcdCoding(user: "ada", prefix: "/p/"), endpoints: ["http://127.0.0.1:1"], password: "x")
    #expect(
      calls(session.handle(.timeout, now: start, random: 0)) == ["authenticate - 120"])
    _ = session.handle(token("t1"), now: after(milliseconds), random: 0)
    #expect(calls(session.perform([.list])) == ["range t1 15"])
    return session
  }

  @Test("a token is kept over failures, until a server refuses it")
  func kept() {
    var session = Self.listing(after: 90)
    var now = Self.after(100)
    for _ in 0..<5 {
      _ = session.handle(.failed("no"), now: now, random: 0)
      now = session.deadline ?? now
      let begun = session.handle(.timeout, now: now, random: 0)
      #expect(begun == [.event(.connected, server: nil)])
      #expect(Self.calls(session.perform([.list])) == ["range t1 15"])
    }
    let renewing = session.handle(Self.forgotten, now: now, random: 1)
    #expect(Self.calls(renewing) == ["authenticate - 120"])
    let again = session.handle(Self.token("t2"), now: now, random: 0)
    #expect(Self.calls(again) == ["range t2 15"])
  }

  @Test("where an authentication was slow, hosts whose tokens a server forgot come spread")
  func spread() {
    for random in [0, 0.25, 1] {
      var session = Self.listing(after: 20_000)
      let now = Self.after(30_000)
      #expect(session.handle(Self.forgotten, now: now, random: random) == [])
      let due = now.advanced(milliseconds: Int64(20_000 * random))
      #expect(session.deadline == due)
      #expect(session.perform([.list]) == [], "the authentication comes first")
      let asked = session.handle(.timeout, now: due, random: 0)
      #expect(Self.calls(asked) == ["authenticate - 120"])
    }
  }

  @Test("an authentication that fails makes the pause longer, and twice as long the next time")
  func failures() {
    for (seconds, pauses) in [
      (0, [200, 400, 800, 1600]), (40, [40_200, 80_400, 160_800, 321_600]),
      (120, [120_200, 240_400, 480_800, 601_600]),
    ] as [(Int64, [Int])] {
      var session = CloudSession(
        EtcdCoding(user: "ada", prefix: "/p/"), endpoints: ["http://127.0.0.1:1"], password: "x")
      var now = Self.start
      for pause in pauses {
        _ = session.handle(.timeout, now: now, random: 0)
        now = now.advanced(milliseconds: seconds * 1000)
        _ = session.handle(.failed("Timeout was reached"), now: now, random: 0)
        #expect(session.deadline == now.advanced(milliseconds: Int64(pause)))
        now = session.deadline ?? now
      }
    }
  }

  @Test("300 hosts of a server that needs 89 ms for each are connected after 3 times that")
  func fleet() {
    let cost: Int64 = 89
    var hosts = (0..<300).map { _ in
      CloudSession(
        EtcdCoding(user: "ada", prefix: "/p/"), endpoints: ["http://127.0.0.1:1"], password: "x")
    }
    var random = SystemRandom(seed: 68)
    // The server works on one after the other, also for hosts that no longer wait.
    var (queue, free): ([(host: Int, asked: Instant)], Instant) = ([], Self.start)
    var waiting: [Int: Instant] = [:]
    var now = Self.start
    while hosts.contains(where: { !$0.isConnected }), now < Self.after(300_000) {
      for index in hosts.indices where !hosts[index].isConnected {
        var input: CloudSession.Input?
        if let asked = waiting[index], asked.advanced(milliseconds: 120_000) <= now {
          input = .failed("Timeout was reached")
        } else if let due = hosts[index].deadline, due <= now {
          input = .timeout
        }
        guard let input else { continue }
        waiting[index] = nil
        let random = Double.random(in: 0...1, using: &random)
        if !Self.calls(hosts[index].handle(input, now: now, random: random)).isEmpty {
          waiting[index] = now
          queue.append((index, now))
        }
      }
      while let next = queue.first, free.advanced(milliseconds: cost) <= now {
        free = max(free, next.asked).advanced(milliseconds: cost)
        queue.removeFirst()
        guard waiting.removeValue(forKey: next.host) == next.asked else { continue }
        _ = hosts[next.host].handle(Self.token("t"), now: now, random: 0)
      }
      now = now.advanced(milliseconds: 50)
    }
    #expect(now.milliseconds(after: Self.start) <= 3 * 300 * Int(cost))
  }
}
