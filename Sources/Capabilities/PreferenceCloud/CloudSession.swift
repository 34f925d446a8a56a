import PropertyList
import SystemCalls

/// Speaks with the servers of a cloud: which request is sent next, what its answer means, and when
/// another server is tried. It is a pure state machine: what happens comes in, commands go out; it
/// knows no network and no clock.
///
/// One request is on its way at a time, beside the watch. A request that fails ends both, and after
/// a pause the next server is tried: the pause is 0.2 s at first, doubles with each failure and is
/// 60 s at most, each time cut by a random part, so that many hosts do not come back at the same
/// moment. Before an authentication it is longer by up to what the last one took, or twice that if
/// it failed, 10 minutes at most. Where nothing came for 15 s, a question is sent; a server that
/// does not answer it in 15 s has failed. After a change of this machine's network it has 2 s for
/// that, and a pause ends. Several answers in a row that only lead to another list are a failure
/// too: the server never shows the account record, or has compacted the history at each watch.
///
/// Threads: one caller at a time; it has no lock.
public struct CloudSession: Sendable {
  /// What has happened.
  public enum Input: Equatable, Sendable {
    /// The deadline has passed; also the first input.
    case timeout
    /// The answer to the request.
    /// - Parameters:
    ///   - status: the status of HTTP.
    ///   - date: the server's clock, in milliseconds since 1970; nil if it is not known.
    case answered(status: Int, body: [UInt8], date: Int64?)
    /// The request had no answer, for this reason.
    case failed(String)
    /// A line of the answer to the watch.
    case watched([UInt8])
    /// The watch ended, for this reason.
    case watchEnded(String)
    /// The addresses or routes of this machine have changed.
    case networkChanged
    /// Somebody waits, and wants to know soon whether the server still answers.
    case probe
  }

  /// What must be done.
  public enum Command: Equatable, Sendable {
    /// Send a request, for which there is one answer. It has failed where it makes no progress for
    /// that many seconds.
    case call(url: String, body: [UInt8], token: String?, patience: Int)
    /// Send the request of a watch, whose answer has no end.
    case watch(url: String, body: [UInt8], token: String?)
    /// End the watch.
    case endWatch
    /// End the request and the watch. Nothing about them comes in from now on.
    case disconnect
    /// Give the event to the state machine, and its actions to `perform`.
    case event(Synchroniser.Event, server: Int64?)
    /// The connection is there, or is gone.
    case status(CloudStatus)
    /// Nothing was heard for so long, though the server was asked; nil if it has answered.
    case silent(milliseconds: Int64?)
  }

  /// A request.
  private enum Call: Equatable, Sendable {
    case authenticate
    case found(String)
    case list
    case push([Synchroniser.Push])
    case purge(CloudKey, revision: Int64)
    case resume(CloudKey, revision: Int64)
    case heartbeat

    /// Whether its answer is short, and needs no long work.
    var isQuick: Bool {
      switch self {
      case .authenticate, .list: false
      case .found, .push, .purge, .resume, .heartbeat: true
      }
    }
  }

  /// How often in a row something has gone wrong. Each count begins anew when that has succeeded.
  private struct Troubles {
    /// Connections that failed.
    var failures = 0
    /// Changes that the server has refused.
    var refusals = 0
    /// Answers that led to a list, and to nothing else.
    var detours = 0
  }

  private let coding: EtcdCoding
  private let endpoints: [String]
  private let password: String?
  private var endpoint = 0
  /// The token, which is kept until a server refuses it: an authentication costs a server as
  /// much as hundreds of other requests.
  private var token: String?
  /// Milliseconds that the last authentication took: how long the server needs for all those who
  /// came with it.
  private var authenticationTime: Int64 = 0
  /// The requests that wait; the first one is on its way if `isCalling`.
  private var calls: [Call] = []
  private var isCalling = false
  /// Whether the last request that was sent is answered soon, where the server is there: also a
  /// slow line carries it, and its answer, within the time of a probe.
  private var isQuick = false
  /// When the request that is on its way was sent.
  private var callBegan = Instant(nanoseconds: 0)
  /// Whether the watch has been asked for.
  private var isWatching = false
  private var timers = Timers()
  /// Whether a new token was asked for, because the server refused the first request.
  private var isRenewed = false
  /// Whether a connection has begun. The server's records may not have been listed yet.
  public private(set) var isConnected = false
  private var troubles = Troubles()
  /// When the connection began.
  private var began = Instant(nanoseconds: 0)
  private var status = CloudStatus()
  /// The server's clock as the last answer has it; nil if that has none.
  private var server: Int64?
  /// When the pause before the next connection ends; nil if a connection has begun.
  private var pauseEnd: Instant?
  /// The moment of the last input.
  private var present = Instant(nanoseconds: 0)

  /// Whether there is no connection until the next `timeout`.
  public var isPaused: Bool { pauseEnd != nil }

  /// When `timeout` is due; nil means never.
  public var deadline: Instant? {
    if let pauseEnd { return pauseEnd }
    if let renewal = timers.renewal { return renewal }
    return [timers.answer, isCalling ? silence : timers.heartbeat].compactMap { $0 }.min()
  }

  /// When people are told that the server does not answer the question whether it is there.
  private var silence: Instant? {
    guard calls.first == .heartbeat, !timers.isSilent else { return nil }
    return callBegan.advanced(milliseconds: Timers.silence)
  }

  /// How many lists are asked for and not answered yet.
  public var listsWaiting: Int { calls.count { $0 == .list } }

  /// Creates a session that begins with the first `timeout`.
  /// - Parameters:
  ///   - endpoints: the URLs of the servers.
  ///   - password: the user's password, if the coding has a user.
  public init(_ coding: EtcdCoding, endpoints: [String], password: String?) {
    (self.coding, self.password) = (coding, password)
    self.endpoints = endpoints.map { $0.hasSuffix("/") ? String($0.dropLast()) : $0 }
    pauseEnd = endpoints.isEmpty ? nil : Instant(nanoseconds: 0)
  }

  /// Handles what has happened.
  /// - Parameter random: a number from 0 to 1, for pauses.
  public mutating func handle(
    _ input: Input, now: Instant, random: Double
  ) -> [Command] {
    present = now
    if input == .timeout { return isPaused ? begin(now) : serveTimers(now, random) }
    if input == .networkChanged, let end = pauseEnd {
      pauseEnd = min(end, now.advanced(milliseconds: Timers.settling))
    }
    // The rest of what came from a connection that has ended.
    guard !isPaused else { return [] }
    switch input {
    case .timeout: return []
    case .networkChanged: return probe(after: Timers.settling)
    case .probe: return probe(after: 0)
    case .failed(let reason): return fail(reason, now, random)
    case .watchEnded(let reason): return fail("the watch ended: \(reason)", now, random)
    case .watched(let line):
      return hear(now, random) + watched(line, now, random)
    case .answered(let status, let body, let date):
      // An answer without a date says nothing of the server's clock: an earlier one is over.
      server = date
      timers.answer = nil
      return hear(now, random) + answered(status, body, now, random)
    }
  }

  /// Carries out what the state machine wants, apart from its edits.
  public mutating func perform(_ actions: [Synchroniser.Action]) -> [Command] {
    guard !isPaused else { return [] }
    var commands: [Command] = []
    for action in actions {
      switch action {
      case .list: calls.append(.list)
      case .resume(let key, let revision): calls.append(.resume(key, revision: revision))
      case .push(let pushes): calls.append(.push(pushes))
      case .purge(let removals):
        calls += removals.sorted { $0.key < $1.key }.map { .purge($0.key, revision: $0.value) }
      case .watch(let revision):
        isWatching = true
        timers.heartbeat = present.advanced(milliseconds: Timers.heartbeat)
        commands.append(
          .watch(url: url("watch"), body: coding.watch(from: revision), token: token))
      case .edit, .drawName, .tellClockAhead: break
      }
    }
    return commands + next()
  }

  // MARK: - Requests

  private func url(_ path: String) -> String { "\(endpoints[endpoint])/v3/\(path)" }

  private mutating func begin(_ now: Instant) -> [Command] {
    guard let due = pauseEnd, due <= now else { return [] }
    (pauseEnd, began) = (nil, now)
    (timers, isWatching) = (Timers(), false)
    (calls, isCalling, isRenewed) = ([], false, false)
    (isConnected, troubles.refusals, troubles.detours) = (false, 0, 0)
    guard coding.user == nil || token != nil else {
      calls = [.authenticate]
      return next()
    }
    isConnected = true
    return [.event(.connected, server: nil)]
  }

  /// Sends the next request, unless one is on its way.
  private mutating func next() -> [Command] {
    guard !isCalling, timers.renewal == nil, let call = calls.first else { return [] }
    isCalling = true
    callBegan = present
    switch call {
    case .authenticate: return send("auth/authenticate", coding.authenticate(password ?? ""))
    case .found(let identity): return send("kv/txn", coding.found(identity))
    case .list: return send("kv/range", coding.list)
    case .resume(let key, let revision):
      return send("kv/txn", coding.resume(key, revision: revision))
    case .heartbeat: return send("kv/range", coding.heartbeat)
    case .push(let pushes):
      guard let body = coding.push(pushes) else {
        // It waits for the next connection; other requests go on.
        finishCall()
        return become(
          CloudStatus(
            isConnected: true, endpoint: endpoints[endpoint], error: "a value could not be sealed"))
          + next()
      }
      return send("kv/txn", body)
    case .purge(let key, let revision):
      return send("kv/txn", coding.purge(key, revision: revision))
    }
  }

  /// The command that sends the first request.
  private mutating func send(_ path: String, _ body: [UInt8]) -> [Command] {
    isQuick = calls.first?.isQuick == true && body.count < Self.smallBody
    if timers.isProbing, isQuick {
      timers.answer = present.advanced(milliseconds: Timers.probe)
    }
    timers.isProbing = false
    let patience = calls.first == .authenticate ? Self.longPatience : Self.patience
    return [.call(url: url(path), body: body, token: token, patience: patience)]
  }

  /// Seconds for which a request may make no progress, and for which an authentication may: a server
  /// that hundreds of hosts ask at once needs a tenth of a second for each.
  private static let (patience, longPatience) = (15, 120)
  /// Bytes that are sent within the time of a probe.
  private static let smallBody = 65_536

  // MARK: - Silence

  /// Notes that the server is there.
  private mutating func hear(_ now: Instant, _ random: Double) -> [Command] {
    timers.heard = now
    let pause = Timers.heartbeat - Int64(Double(Timers.heartbeat) / 3 * min(max(random, 0), 1))
    timers.heartbeat = isWatching ? now.advanced(milliseconds: pause) : nil
    defer { timers.isSilent = false }
    return timers.isSilent ? [.silent(milliseconds: nil)] : []
  }

  private mutating func serveTimers(_ now: Instant, _ random: Double) -> [Command] {
    if let due = timers.renewal {
      guard due <= now else { return [] }
      timers.renewal = nil
      return next()
    }
    if let due = timers.answer, due <= now {
      return fail("the server does not answer", now, random)
    }
    if isCalling {
      guard let silence, silence <= now else { return [] }
      timers.isSilent = true
      return [.silent(milliseconds: Int64(now.milliseconds(after: timers.heard)))]
    }
    guard let due = timers.heartbeat, due <= now else { return [] }
    timers.heartbeat = nil
    calls.append(.heartbeat)
    defer { timers.answer = timers.answer ?? now.advanced(milliseconds: Timers.heartbeat) }
    return next()
  }

  /// Has the next request, or a question after that many milliseconds, tell soon whether the server
  /// is there.
  private mutating func probe(after milliseconds: Int64) -> [Command] {
    // An authentication comes first; a question without its token would be refused.
    if timers.renewal != nil { return [] }
    if isCalling {
      guard isQuick else { return [] }
      let due = present.advanced(milliseconds: Timers.probe)
      timers.answer = min(timers.answer ?? due, due)
      return []
    }
    timers.isProbing = true
    guard milliseconds == 0 else {
      let due = present.advanced(milliseconds: milliseconds)
      timers.heartbeat = min(timers.heartbeat ?? due, due)
      return []
    }
    calls.insert(.heartbeat, at: 0)
    return next()
  }

  /// Whether the server has answered in this connection, or has not had 2 s for it yet.
  public func isAnswering(now: Instant) -> Bool {
    guard isConnected, !isPaused else { return false }
    return timers.heard.nanoseconds > 0 || now.milliseconds(after: began) < Timers.probe
  }

  // MARK: - Answers

  private mutating func answered(
    _ status: Int, _ body: [UInt8], _ now: Instant, _ random: Double
  ) -> [Command] {
    guard isCalling, let call = calls.first else { return [] }
    let answer: EtcdCoding.Answer
    switch call {
    case .authenticate: answer = coding.authenticated(body)
    case .list: answer = coding.listed(body)
    case .push(let pushes): answer = coding.pushed(body, pushes)
    case .resume(let key, _): answer = coding.resumed(body, key)
    case .purge, .found, .heartbeat: answer = status == 200 ? .alive : coding.pushed(body, [])
    }
    switch answer {
    case .failed(let code, let text):
      if call != .authenticate, !isRenewed, Self.needsToken(status, code, text) {
        return renew(now, random)
      }
      return fail(Self.sentence(status, text), now, random)
    case .token(let token):
      self.token = token
      authenticationTime = Int64(now.milliseconds(after: callBegan))
      finishCall()
      guard !isConnected else { return next() }
      isConnected = true
      return [.event(.connected, server: server)]
    case .unfounded:
      if let failure = countDetour() { return fail(failure, now, random) }
      // The list comes again afterwards.
      isCalling = false
      let number = UInt64(min(max(random, 0), 1) * 0x1p53)
      calls.insert(.found(String(number, radix: 16) + "-\(server ?? 0)"), at: 0)
      return next()
    case .alive:
      finishCall()
      isRenewed = false
      return next()
    case .event(let event, let unreadable):
      finishCall()
      isRenewed = false
      if let failure = count(event, now) { return fail(failure, now, random) }
      return become(CloudStatus(isConnected: true, endpoint: endpoints[endpoint]))
        + Self.events(event, unreadable, server) + next()
    }
  }

  /// Counts successes and refusals. A connection that works for a minute, or takes a push, is a
  /// good one: the pauses begin anew.
  /// - Returns: why the connection must end: the server refuses whatever it is sent.
  private mutating func count(_ event: Synchroniser.Event, _ now: Instant) -> String? {
    switch event {
    case .pushed: troubles = Troubles()
    case .refused:
      troubles.refusals += 1
      if troubles.refusals >= Self.mostRefusals { return "the server refuses every change" }
    case .set, .connected, .disconnected, .listed, .changed, .compacted, .history, .tick,
      .unreadable:
      break
    }
    return nil
  }

  /// How many refusals in a row end the connection: far more than other hosts cause.
  private static let mostRefusals = 30

  /// Counts an answer that only leads to another list.
  /// - Returns: why the connection must end; nil if it goes on.
  private mutating func countDetour() -> String? {
    troubles.detours += 1
    return troubles.detours > Self.mostDetours
      ? "the server answers, but shows no account record, or compacts its history at each watch"
      : nil
  }

  /// How many of them a connection may have: one that lasts sees a few compactions.
  private static let mostDetours = 3

  private static func events(
    _ event: Synchroniser.Event, _ unreadable: Set<CloudKey>, _ server: Int64?
  ) -> [Command] {
    let revision: Int64? =
      switch event {
      case .listed(_, let revision, _), .changed(_, let revision), .refused(_, let revision):
        revision
      default: nil
      }
    guard let revision, !unreadable.isEmpty else { return [.event(event, server: server)] }
    return [
      .event(.unreadable(unreadable, revision: revision), server: nil),
      .event(event, server: server),
    ]
  }

  private mutating func finishCall() {
    calls.removeFirst()
    isCalling = false
  }

  private mutating func watched(
    _ line: [UInt8], _ now: Instant, _ random: Double
  ) -> [Command] {
    var commands: [Command] = []
    for answer in coding.watched(line) {
      switch answer {
      case .event(.compacted, _):
        if let failure = countDetour() { return commands + fail(failure, now, random) }
        isWatching = false
        commands += [.endWatch, .event(.compacted, server: nil)]
      case .event(let event, let unreadable):
        troubles.detours = 0
        commands += Self.events(event, unreadable, nil)
      case .failed(let code, let text):
        if Self.needsToken(200, code, text) { token = nil }
        return commands + fail(text, now, random)
      case .alive, .token, .unfounded: break
      }
    }
    return commands
  }

  /// Asks for a new token, and then sends the first request again. A server that was started anew
  /// knows no token: where it was slow the last time, its hosts come one after the other.
  private mutating func renew(_ now: Instant, _ random: Double) -> [Command] {
    (isCalling, isRenewed, token) = (false, true, nil)
    calls.insert(.authenticate, at: 0)
    if authenticationTime >= Self.slowAuthentication {
      let pause = Int64(Double(authenticationTime) * min(max(random, 0), 1))
      timers.renewal = now.advanced(milliseconds: pause)
    }
    return next()
  }

  /// Milliseconds from which on an authentication tells of many hosts: alone it takes about 100.
  private static let slowAuthentication: Int64 = 500

  /// Whether the server wants a new token: it no longer knows this one, which it keeps for 5
  /// minutes, or users or roles have changed since.
  private static func needsToken(_ status: Int, _ code: Int64, _ text: String) -> Bool {
    status == 401 || code == 16 || text.contains("invalid auth token")
      || text.contains("revision of auth store is old")
  }

  private static func sentence(_ status: Int, _ text: String) -> String {
    status == 200 ? text : "\(text) (HTTP \(status))"
  }

  // MARK: - Failures

  /// Milliseconds of the first pause, and of the longest.
  private static let pauses: ClosedRange<Int64> = 200...60_000
  /// Milliseconds by which a pause is longer, at most, before an authentication.
  private static let widest: Int64 = 600_000

  private mutating func fail(
    _ reason: String, _ now: Instant, _ random: Double
  ) -> [Command] {
    if isConnected, now.milliseconds(after: began) > 60_000 { troubles.failures = 0 }
    let longest = min(Self.pauses.upperBound, Self.pauses.lowerBound << min(troubles.failures, 20))
    if isCalling, calls.first == .authenticate {
      let time = Int64(now.milliseconds(after: callBegan))
      // A server with too many hosts answers none of them: it works on all at once. They come back
      // over twice the time, until some are served.
      let isSlow = time >= Self.slowAuthentication
      authenticationTime = min(max(authenticationTime * (isSlow ? 2 : 1), time), Self.widest)
    }
    // The range of the pause: the more failures, the more hosts may fail together.
    let share = min(0.5 + 0.05 * Double(troubles.failures), 0.9)
    let shortest = Int64(Double(longest) * (1 - share))
    let spread = coding.user == nil || token != nil ? 0 : authenticationTime
    let range = Double(longest + spread - shortest)
    let pause = longest + spread - Int64(range * min(max(random, 0), 1))
    pauseEnd = now.advanced(milliseconds: pause)
    troubles.failures += 1
    let failed = endpoints[endpoint]
    endpoint = (endpoint + 1) % endpoints.count
    (calls, isCalling) = ([], false)
    let wasConnected = isConnected
    isConnected = false
    return [.disconnect] + (wasConnected ? [.event(.disconnected, server: nil)] : [])
      + become(CloudStatus(isConnected: false, endpoint: failed, error: reason))
  }

  private mutating func become(_ new: CloudStatus) -> [Command] {
    guard new != status else { return [] }
    status = new
    return [.status(new)]
  }
}
