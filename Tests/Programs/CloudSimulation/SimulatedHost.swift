import EtcdClient
import Foundation
import PreferenceCloud
import PreferenceModel
import PropertyList
import SystemCalls

/// A host of a user: the real state machine, session and transport, with a store in memory.
final class SimulatedHost {
  private let coding: EtcdCoding
  private let endpoints: [String]
  private let transport: CountingTransport
  private var session: CloudSession?
  private(set) var machine: Synchroniser
  private var saved = SavedCloud()
  /// What the host's store has.
  private(set) var store: [CloudKey: Value] = [:]
  /// Every value that it knows to have been on the server.
  private(set) var heard: Set<Int64> = []
  /// Milliseconds that its clock is ahead.
  private let skew: Int64
  /// The password of the user `simulation` at the servers; nil if they ask for none.
  private let password: String?
  let name: String

  init(_ name: String, user: String, endpoints: [String], skew: Int64) throws {
    (self.name, self.endpoints, self.skew) = (name, endpoints, skew)
    password = ProcessInfo.processInfo.environment["SIMULATION_PASSWORD"]
    coding = EtcdCoding(
      user: password == nil ? nil : "simulation", prefix: "/simulation/\(user)/")
    transport = CountingTransport(try CurlTransport(TransportSecurity()))
    machine = Synchroniser(CloudState(host: name))
  }

  var counts: CountingTransport.Counts { transport.counts }
  var isConnected: Bool { session?.isConnected == true && session?.isPaused == false }

  func connect() {
    session = CloudSession(coding, endpoints: endpoints.shuffled(), password: password)
    handle(.timeout)
  }

  /// Cuts the connection. What was sent may arrive.
  func disconnect() {
    transport.disconnect()
    session = nil
    feed(.disconnected, server: nil)
  }

  /// Ends the program at this moment, and starts it again.
  func restart() {
    transport.disconnect()
    session = nil
    machine = Synchroniser(CloudState(saved, host: name))
  }

  /// The user sets a key, or removes it.
  func set(_ key: CloudKey, _ value: Value?) {
    store[key] = value
    feed(.set([key: value]), server: nil)
  }

  /// Takes what has come from the server, without waiting.
  func step() {
    for input in transport.wait(until: .now, or: []) {
      handle(input)
      if session?.isPaused == true { break }
    }
    if let due = session?.deadline, due <= .now { handle(.timeout) }
  }

  private func handle(_ input: CloudSession.Input) {
    carryOut(session?.handle(input, now: .now, random: .random(in: 0...1)) ?? [])
  }

  private func carryOut(_ commands: [CloudSession.Command]) {
    for command in commands {
      switch command {
      case .call(let url, let body, let token, let patience):
        transport.call(url, body, token: token, patience: patience)
      case .watch(let url, let body, let token): transport.watch(url, body, token: token)
      case .endWatch: transport.endWatch()
      case .disconnect: transport.disconnect()
      case .status(let status):
        if let error = status.error { print("\(name): \(error)") }
      case .silent: break
      case .event(let event, let server): feed(event, server: server)
      }
    }
  }

  private func feed(_ event: Synchroniser.Event, server: Int64?) {
    let now = HostTime.now
    let wall = now.wall + skew
    let actions = machine.handle(
      event, wall: wall, now: HostTime(wall: wall, steady: now.steady), server: server)
    for case .edit(let edits) in actions {
      for (key, value) in edits { store[key] = value }
    }
    let change = machine.removeUnsaved()
    for key in change.entries.keys {
      if let number = machine.state.known[key]?.record.value?.number { heard.insert(number) }
    }
    saved.apply(change)
    carryOut(session?.perform(actions) ?? [])
  }
}

extension Value {
  /// The number that stands for a set.
  var number: Int64? {
    if case .integer(let number) = self { number.signed } else { nil }
  }
}

/// Counts what goes over a transport.
final class CountingTransport {
  struct Counts {
    var requests = 0
    var watches = 0
    var sent = 0
    var received = 0

    static func + (left: Counts, right: Counts) -> Counts {
      Counts(
        requests: left.requests + right.requests, watches: left.watches + right.watches,
        sent: left.sent + right.sent, received: left.received + right.received)
    }
  }

  private let transport: CurlTransport
  private(set) var counts = Counts()

  init(_ transport: CurlTransport) { self.transport = transport }

  func call(_ url: String, _ body: [UInt8], token: String?, patience: Int) {
    counts.requests += 1
    counts.sent += body.count
    transport.call(url, body, token: token, patience: patience)
  }

  func watch(_ url: String, _ body: [UInt8], token: String?) {
    counts.watches += 1
    counts.sent += body.count
    transport.watch(url, body, token: token)
  }

  func endWatch() { transport.endWatch() }
  func disconnect() { transport.disconnect() }

  func wait(until deadline: Instant?, or descriptors: [CInt]) -> [CloudSession.Input] {
    let inputs = transport.wait(until: deadline, or: descriptors)
    for input in inputs {
      switch input {
      case .answered(_, let body, _): counts.received += body.count
      case .watched(let line): counts.received += line.count
      case .timeout, .failed, .watchEnded, .networkChanged, .probe: break
      }
    }
    return inputs
  }
}
