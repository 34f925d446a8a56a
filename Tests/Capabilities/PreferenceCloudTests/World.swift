import PreferenceModel
import PropertyList
import Testing

@testable import PreferenceCloud

/// A server with revisions and transactions as etcd has them, and hosts with the real state
/// machine, over a network that is as bad as a random number says.
struct World {
  private struct Server {
    var revision: Int64 = 1
    var records: [CloudKey: CloudState.Known] = [:]
    /// What each revision changed.
    var history: [(revision: Int64, changes: [CloudKey: CloudRecord?])] = []
    var compacted: Int64 = 0

    mutating func push(_ pushes: [Synchroniser.Push]) -> Synchroniser.Event {
      let isFit = pushes.allSatisfy { (records[$0.key]?.revision ?? 0) == $0.revision }
      guard isFit else {
        return .refused(
          Dictionary(uniqueKeysWithValues: pushes.map { ($0.key, records[$0.key]) }),
          revision: revision)
      }
      revision += 1
      for push in pushes { records[push.key] = .init(push.record, revision: revision) }
      history.append(
        (revision, Dictionary(uniqueKeysWithValues: pushes.map { ($0.key, $0.record) })))
      return .pushed(revision: revision)
    }

    /// What the key had at that revision.
    func past(_ key: CloudKey, _ revision: Int64) -> Synchroniser.Event {
      guard revision >= compacted, revision <= self.revision else {
        return .history(key, nil, account: nil)
      }
      let last = history.last { $0.revision <= revision && $0.changes[key] != nil }
      guard let last, let record = last.changes[key] ?? nil else {
        return .history(key, nil, account: "a")
      }
      return .history(key, .init(record, revision: last.revision), account: "a")
    }

    mutating func purge(_ removals: [CloudKey: Int64]) {
      for (key, known) in removals where records[key]?.revision == known {
        revision += 1
        records[key] = nil
        history.append((revision, [key: CloudRecord?.none]))
      }
    }
  }

  private struct Host {
    var machine: Synchroniser
    /// What was saved last.
    var saved: SavedCloud
    /// What the store of the host has.
    var store: [CloudKey: Value] = [:]
    var isConnected = false
    var watchFrom: Int64?
    /// Messages to the host that have not arrived.
    var inbox: [Synchroniser.Event] = []
    /// Pushes that have not arrived at the server, and the connection that each was made on.
    var outbox: [(pushes: [Synchroniser.Push], connection: Int)] = []
    /// How many connections there were.
    var connection = 0
    /// How many names the host has had.
    var names = 1
    var skew: Int64
    /// What the host knew of a key when its user set it, by the key and the stamp of the set.
    var knew: [CloudKey: [Stamp: Stamp?]] = [:]
  }

  private var random: SystemRandom
  private var server = Server()
  private var backup: Server?
  private var hosts: [Host] = []
  private let keys: [CloudKey]
  private var time: Int64 = 1_000_000
  /// Every acknowledged set.
  private var acknowledged: [(key: CloudKey, value: Value?, stamp: Stamp)] = []
  private var count: Int64 = 0

  init(seed: UInt64, hosts: Int, keys: Int) {
    random = SystemRandom(seed: seed)
    self.keys = (0..<keys).map { CloudKey("d", Key("K\($0)")) }
    for number in 0..<hosts {
      let state = CloudState(host: "host\(number)")
      self.hosts.append(
        Host(
          machine: Synchroniser(state), saved: state.saved,
          skew: Int64.random(in: -300_000...300_000, using: &random)))
    }
  }

  // MARK: - What happens

  /// Ends all connections, and takes the server back to what it was at the last `keepBackup`.
  mutating func restoreBackup() {
    for index in hosts.indices where hosts[index].isConnected { disconnect(index) }
    for index in hosts.indices { hosts[index].outbox = [] }
    server = backup ?? server
  }

  mutating func keepBackup() { backup = server }

  /// Whether all hosts have the values of the server.
  var isEqual: Bool {
    keys.allSatisfy { key in
      hosts.allSatisfy {
        $0.store[key] == server.records[key]?.record.value
          && $0.machine.state.value(key) == $0.store[key]
      }
    }
  }

  /// The values of the server.
  var values: [Value?] { keys.map { server.records[$0]?.record.value } }

  mutating func step() {
    time += Int64.random(in: 1...50, using: &random)
    let index = Int.random(in: 0..<hosts.count, using: &random)
    switch Int.random(in: 0..<100, using: &random) {
    case ..<25: set(index)
    case ..<35: connect(index)
    case ..<40: disconnect(index)
    case ..<45: restart(index)
    case ..<46: server.compacted = server.revision
    case ..<70: deliver(toServer: index)
    default: deliver(toHost: index)
    }
  }

  private mutating func handle(_ event: Synchroniser.Event, _ index: Int) {
    let hasServerTime = if case .set = event { false } else { true }
    let actions = hosts[index].machine.handle(
      event, wall: time + hosts[index].skew, server: hasServerTime ? time : nil)
    hosts[index].saved.apply(hosts[index].machine.removeUnsaved())
    for action in actions { carryOut(action, index) }
  }

  private mutating func carryOut(_ action: Synchroniser.Action, _ index: Int) {
    switch action {
    case .list:
      hosts[index].inbox.append(.listed(server.records, revision: server.revision, account: "a"))
    case .resume(let key, let revision): hosts[index].inbox.append(server.past(key, revision))
    case .watch(let from): hosts[index].watchFrom = from
    case .push(let pushes): hosts[index].outbox.append((pushes, hosts[index].connection))
    case .purge(let removals): server.purge(removals)
    case .edit(let edits): for (key, value) in edits { hosts[index].store[key] = value }
    case .drawName: hosts[index].machine.rename(host: newName(index))
    case .tellClockAhead: break
    }
  }

  private mutating func set(_ index: Int) {
    var changes: [CloudKey: Value?] = [:]
    for _ in 0..<Int.random(in: 1...3, using: &random) {
      count += 1
      let isRemoval = Int.random(in: 0..<5, using: &random) == 0
      let value: Value? = isRemoval ? nil : .integer(WideInteger(count))
      changes[keys[Int.random(in: 0..<keys.count, using: &random)]] = .some(value)
    }
    let before = hosts[index].machine.state.known.mapValues(\.record.stamp)
    handle(.set(changes), index)
    for (key, value) in changes {
      hosts[index].store[key] = value
      guard let pending = hosts[index].machine.state.pending[key] else { continue }
      acknowledged.append((key, value, pending.stamp))
      hosts[index].knew[key, default: [:]][pending.stamp] = .some(before[key])
    }
  }

  private mutating func connect(_ index: Int) {
    guard !hosts[index].isConnected else { return }
    hosts[index].isConnected = true
    hosts[index].connection += 1
    handle(.connected, index)
  }

  private mutating func disconnect(_ index: Int) {
    (hosts[index].isConnected, hosts[index].watchFrom) = (false, nil)
    hosts[index].inbox = []
    // What was pushed may arrive all the same.
    if Bool.random(using: &random) { hosts[index].outbox = [] }
    handle(.disconnected, index)
  }

  private mutating func restart(_ index: Int) {
    let saved = hosts[index].saved
    let state = CloudState(saved, host: hosts[index].machine.state.clock.host)
    #expect(state == hosts[index].machine.state)
    (hosts[index].isConnected, hosts[index].watchFrom) = (false, nil)
    hosts[index].inbox = []
    hosts[index].machine = Synchroniser(CloudState(saved, host: newName(index)))
  }

  /// A name that the host has not had yet.
  private mutating func newName(_ index: Int) -> String {
    hosts[index].names += 1
    return "host\(index).\(hosts[index].names)"
  }

  /// The host that has made a stamp, whatever its name was then.
  private static func maker(_ stamp: Stamp) -> Substring { stamp.host.prefix { $0 != "." } }

  private mutating func deliver(toServer index: Int) {
    guard !hosts[index].outbox.isEmpty else { return }
    let (pushes, connection) = hosts[index].outbox.removeFirst()
    let answer = server.push(pushes)
    // An answer of an earlier connection never comes.
    guard hosts[index].isConnected, connection == hosts[index].connection else { return }
    hosts[index].inbox.append(answer)
  }

  private mutating func deliver(toHost index: Int) {
    guard hosts[index].isConnected else { return }
    if let from = hosts[index].watchFrom, Bool.random(using: &random) {
      if from <= server.compacted {
        hosts[index].watchFrom = nil
        return handle(.compacted, index)
      }
      guard let next = server.history.first(where: { $0.revision >= from }) else { return }
      // Now and then an event comes again.
      if Int.random(in: 0..<10, using: &random) > 0 { hosts[index].watchFrom = next.revision + 1 }
      return handle(.changed(next.changes, revision: next.revision), index)
    }
    guard !hosts[index].inbox.isEmpty else { return }
    handle(hosts[index].inbox.removeFirst(), index)
  }

  // MARK: - The end

  /// Connects all hosts, and delivers everything.
  mutating func heal() {
    for index in hosts.indices {
      connect(index)
    }
    for _ in 0..<20_000 {
      for index in hosts.indices {
        deliver(toServer: index)
        deliver(toHost: index)
      }
      if isQuiet { return }
    }
    Issue.record("the hosts never come to rest")
  }

  private var isQuiet: Bool {
    hosts.allSatisfy { host in
      host.outbox.isEmpty && host.inbox.isEmpty && host.machine.state.pending.isEmpty
        && (host.watchFrom ?? 0) > server.revision
    }
  }

  func check(_ seed: Int) {
    let replacedValues = hosts.flatMap(\.machine.state.replacedValues)
    for key in keys {
      let value = server.records[key]?.record.value
      for host in hosts {
        #expect(host.machine.state.value(key) == value, "seed \(seed), \(key)")
        #expect(host.store[key] == value, "seed \(seed), the store, \(key)")
      }
      let sets = server.history.compactMap { $0.changes[key] ?? nil }
      for (index, set) in acknowledged.enumerated() where set.key == key {
        // A removal that loses to a removal is no loss.
        if sets.contains(where: {
          $0.value == set.value
            && (Self.maker($0.stamp) == Self.maker(set.stamp) || set.value == nil)
        }) {
          continue
        }
        let wasKept = replacedValues.contains {
          $0.key == key && $0.value == set.value
            && Self.maker($0.stamp) == Self.maker(set.stamp)
        }
        let isReplaced = acknowledged[(index + 1)...].contains {
          $0.key == key && Self.maker($0.stamp) == Self.maker(set.stamp)
        }
        #expect(wasKept || isReplaced, "seed \(seed), \(key) \(set)")
      }
      // A record that was replaced by a host that did not know of it is in the log.
      for (old, new) in zip(sets, sets.dropFirst())
      where Self.maker(old.stamp) != Self.maker(new.stamp) {
        let maker = Self.maker(new.stamp)
        guard
          let host = hosts.first(where: { Self.maker($0.machine.state.clock.latest) == maker }),
          let knew = host.knew[key]?[new.stamp], knew != old.stamp, old.value != new.value
        else { continue }
        let isLogged = replacedValues.contains { $0.key == key && $0.stamp == old.stamp }
        #expect(isLogged, "seed \(seed), \(key): \(old.stamp) was replaced unknown")
      }
    }
  }
}

extension CloudState {
  /// Everything, as it is saved.
  var saved: SavedCloud {
    var saved = SavedCloud()
    saved.header = header
    for key in Set(known.keys).union(pending.keys) { saved.entries[key] = entry(key) }
    for replaced in replacedValues { saved.replacedValues[replaced.number] = replaced.saved }
    return saved
  }
}

/// A generator of random numbers that gives the same ones for the same seed (splitmix64).
struct SystemRandom: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
