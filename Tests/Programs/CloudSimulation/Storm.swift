import Foundation
import PreferenceCloud
import PreferenceModel
import PropertyList
import SystemCalls

/// Many hosts, one real etcd: sets in random order with partitions, clocks that are minutes off,
/// and restarts. Then everything is connected, and the hosts must agree.
final class Storm {
  private let hosts: [SimulatedHost]
  private let keys: [CloudKey]
  /// Every set that was acknowledged, in order: who, and what. Values are never used twice.
  private var acknowledged: [(host: Int, key: CloudKey, value: Value?)] = []
  private var count: Int64 = 0

  /// - Parameter users: among how many users the hosts are shared out.
  init(hosts count: Int, users: Int, keys: Int, endpoints: [String]) throws {
    self.keys = (0..<keys).map { CloudKey("d", Key("K\($0)")) }
    let run = UInt32.random(in: 0 ... .max)
    hosts = try (0..<count).map { index in
      try SimulatedHost(
        "host\(index)", user: "\(run)-\(index % users)", endpoints: endpoints,
        skew: .random(in: -300_000...300_000))
    }
    self.users = users
  }

  private let users: Int

  func run(sets: Int) -> Bool {
    let began = Instant.now
    for host in hosts { host.connect() }
    settle { self.hosts.allSatisfy { $0.isConnected && $0.machine.state.revision > 0 } }
    line("connected", "\(hosts.count) hosts in \(seconds(since: began)) s")
    let storm = Instant.now
    var left = sets
    while left > 0 {
      for _ in 0..<min(left, max(1, hosts.count / 20)) {
        set()
        left -= 1
      }
      disturb()
      for host in hosts { host.step() }
    }
    line("storm", "\(sets) sets in \(seconds(since: storm)) s")
    let healing = Instant.now
    for host in hosts where !host.isConnected { host.connect() }
    let isQuiet = settle { self.isQuiet }
    line("converged", "\(isQuiet ? "" : "NOT ")after another \(seconds(since: healing)) s")
    report(sets)
    return isQuiet && check()
  }

  /// All hosts of one user hear of changes that one of them makes, one after the other.
  func tellAll(rounds: Int) -> Bool {
    let began = Instant.now
    for host in hosts { host.connect() }
    var isGood = settle { self.hosts.allSatisfy { $0.machine.state.revision > 0 } }
    line("connected", "\(hosts.count) hosts in \(seconds(since: began)) s")
    let before = hosts.map(\.counts.received).reduce(0, +)
    var times: [Double] = []
    for round in 0..<rounds {
      let value = Value.integer(WideInteger(Int64(round)))
      let began = Instant.now
      hosts[round % hosts.count].set(keys[0], value)
      isGood = settle { self.hosts.allSatisfy { $0.store[self.keys[0]] == value } } && isGood
      times.append(Double(Instant.now.nanoseconds(after: began)) / 1e6)
    }
    Latency.report("\(isGood ? "" : "NOT ")here to all \(hosts.count)", times)
    let received = hosts.map(\.counts.received).reduce(0, +) - before
    line("received", "\(ratio(received, rounds * hosts.count)) bytes a change and host")
    return isGood
  }

  private func set() {
    count += 1
    let index = Int.random(in: hosts.indices)
    let key = keys[Int.random(in: keys.indices)]
    let value: Value? = Int.random(in: 0..<10) == 0 ? nil : .integer(WideInteger(count))
    hosts[index].set(key, value)
    acknowledged.append((index, key, value))
  }

  private func disturb() {
    let host = hosts[Int.random(in: hosts.indices)]
    switch Int.random(in: 0..<10) {
    case 0: host.disconnect()
    case 1: host.restart()
    case 2...4: if !host.isConnected { host.connect() }
    default: break
    }
  }

  /// Lets all hosts go on until the condition holds, for 5 minutes at most.
  @discardableResult
  private func settle(_ condition: () -> Bool) -> Bool {
    let deadline = Instant.now.advanced(milliseconds: 300_000)
    while deadline > .now {
      for host in hosts { host.step() }
      if condition() { return true }
    }
    return false
  }

  /// Whether nothing waits, and all hosts of a user have heard of the same revisions.
  private var isQuiet: Bool {
    guard hosts.allSatisfy({ $0.isConnected && $0.machine.state.pending.isEmpty }) else {
      return false
    }
    return (0..<users).allSatisfy { user in
      let own = stride(from: user, to: hosts.count, by: users).map { hosts[$0] }
      return own.dropFirst().allSatisfy { host in
        keys.allSatisfy {
          host.machine.state.known[$0]?.revision == own[0].machine.state.known[$0]?.revision
        }
      }
    }
  }

  // MARK: - The end

  private func check() -> Bool {
    var isGood = true
    func fail(_ text: String) {
      print("FAILED: \(text)")
      isGood = false
    }
    for (index, host) in hosts.enumerated() {
      let first = hosts[index % users]
      for key in keys where host.store[key] != first.store[key] {
        fail("\(host.name) and \(first.name) differ in \(key)")
      }
      for key in keys where host.store[key] != host.machine.state.value(key) {
        fail("\(host.name) has \(key) otherwise than its state")
      }
    }
    // A set that was on the server was replaced there. Any other one was replaced by its own host
    // before it was sent, or is in a log.
    var (heard, logged): (Set<Int64>, Set<Int64>) = ([], [])
    for host in hosts {
      heard.formUnion(host.heard)
      logged.formUnion(host.machine.state.replacedValues.compactMap(\.value?.number))
    }
    let lost = acknowledged.enumerated().count { index, set in
      guard let value = set.value?.number, !heard.contains(value), !logged.contains(value) else {
        return false
      }
      return !acknowledged[(index + 1)...].contains { $0.host == set.host && $0.key == set.key }
    }
    if lost > 0 {
      fail("\(lost) acknowledged sets are neither on the server nor replaced nor in a log")
    }
    line("acknowledged", "\(acknowledged.count) sets, \(logged.count) replacedValues in logs")
    return isGood
  }

  private func report(_ sets: Int) {
    let all = hosts.map(\.counts).reduce(CountingTransport.Counts(), +)
    line("requests", "\(all.requests), \(ratio(all.requests, sets)) a set")
    line("watches", "\(all.watches)")
    line("sent", "\(all.sent) bytes, \(ratio(all.sent, sets)) a set")
    line(
      "received", "\(all.received) bytes, \(ratio(all.received, sets * hosts.count)) a set and host"
    )
  }

  private func ratio(_ count: Int, _ sets: Int) -> String {
    String(format: "%.1f", Double(count) / Double(max(1, sets)))
  }

  private func seconds(since begin: Instant) -> String {
    String(format: "%.1f", Double(Instant.now.milliseconds(after: begin)) / 1000)
  }

  private func line(_ title: String, _ text: String) {
    print("  \(title.padding(toLength: 14, withPad: " ", startingAt: 0))\(text)")
  }
}
