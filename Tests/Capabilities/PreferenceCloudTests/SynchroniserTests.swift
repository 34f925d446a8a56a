import PreferenceModel
import PropertyList
import Testing

@testable import PreferenceCloud

/// Hosts that keep their keys the same over a server, with a network that loses, repeats and delays
/// messages, clocks that are wrong, and ends at any moment.
@Suite("Synchronisation of hosts") struct SynchroniserTests {
  @Test(
    "whatever is lost, delayed and restarted, all hosts agree, and no acknowledged set is lost",
    arguments: 1...24)
  func storm(_ seed: Int) {
    var world = World(seed: UInt64(seed), hosts: 2 + seed % 7, keys: 1 + seed % 5)
    for _ in 0..<600 { world.step() }
    world.heal()
    world.check(seed)
  }

  @Test(
    "of keys that hardly ever change no change is missed, however often connections end",
    arguments: 1...8)
  func manyKeys(_ seed: Int) {
    var world = World(seed: UInt64(seed), hosts: 3, keys: 200)
    for _ in 0..<600 { world.step() }
    world.heal()
    #expect(world.isEqual)
  }

  @Test(
    "a server that goes back to a backup, and on from there, gets later values back from the hosts",
    arguments: 1...12)
  func backup(_ seed: Int) {
    var world = World(seed: UInt64(seed), hosts: 3, keys: 4)
    for _ in 0..<200 { world.step() }
    world.keepBackup()
    for _ in 0..<200 { world.step() }
    world.heal()
    let before = world.values
    world.restoreBackup()
    if seed % 2 == 0 {
      world.heal()
      #expect(world.values == before && world.isEqual)
    } else {
      for _ in 0..<300 { world.step() }
      world.heal()
      #expect(world.isEqual)
    }
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
    #expect(machine.state.replacedValues.map(\.value) == ["local"])
    #expect(machine.state.pending.isEmpty)
  }

  /// The pushes of the actions.
  private static func pushes(_ actions: [Synchroniser.Action]) -> [Synchroniser.Push] {
    actions.flatMap { action -> [Synchroniser.Push] in
      if case .push(let pushes) = action { pushes } else { [] }
    }
  }

  @Test(
    "copies of one state, even with one name, are two hosts: the later change wins, the other is kept",
    arguments: [10, 30])
  func clones(_ time: Int64) {
    var original = Self.connected([Self.key: .init(Self.record("base", 1), revision: 4)])
    _ = original.handle(.disconnected, wall: 2)
    var copy = original
    _ = original.handle(.set([Self.key: "original"]), wall: 20)
    _ = copy.handle(.set([Self.key: "copy"]), wall: time)
    _ = original.handle(.connected, wall: 40)
    let base = CloudState.Known(Self.record("base", 1), revision: 4)
    let pushed = Self.pushes(
      original.handle(.listed([Self.key: base], revision: 5, account: "a"), wall: 40))
    #expect(pushed.map(\.record.value) == ["original"])
    _ = original.handle(.pushed(revision: 6), wall: 40)
    _ = copy.handle(.connected, wall: 41)
    let theirs = CloudState.Known(pushed[0].record, revision: 6)
    let actions = copy.handle(.listed([Self.key: theirs], revision: 6, account: "a"), wall: 41)
    #expect(actions.contains(.drawName))
    if time < 20 {
      #expect(copy.state.value(Self.key) == "original" && Self.pushes(actions).isEmpty)
      #expect(copy.state.replacedValues.map(\.value) == ["copy"])
    } else {
      let answer = Self.pushes(actions)
      #expect(answer.map(\.record.value) == ["copy"] && answer.map(\.revision) == [6])
      #expect(copy.state.replacedValues.map(\.value) == ["original"])
      let heard = original.handle(.changed([Self.key: answer[0].record], revision: 7), wall: 42)
      #expect(heard == [.edit([Self.key: "copy"]), .drawName])
    }
  }

  @Test("a push whose answer was lost is this host's own, also after a restart under a new name")
  func ownPush() {
    var machine = Self.connected()
    let pushed = Self.pushes(machine.handle(.set([Self.key: 1]), wall: 10))
    machine = Synchroniser(CloudState(machine.state.saved, host: "again"))
    _ = machine.handle(.set([Self.key: 2]), wall: 11)
    machine = Synchroniser(CloudState(machine.state.saved, host: "third"))
    _ = machine.handle(.connected, wall: 12)
    let first = CloudState.Known(pushed[0].record, revision: 6)
    let actions = machine.handle(.listed([Self.key: first], revision: 6, account: "a"), wall: 12)
    #expect(Self.pushes(actions).map(\.record.value) == [2])
    #expect(machine.state.replacedValues.isEmpty && !actions.contains(.drawName))
  }

  @Test("a record that cannot be read is left alone, and holds up no other key")
  func unreadable() {
    var machine = Self.connected([Self.key: .init(Self.record(1, 1), revision: 4)])
    let other = CloudKey("d", "L")
    _ = machine.handle(.disconnected, wall: 2)
    _ = machine.handle(.connected, wall: 3)
    #expect(machine.handle(.unreadable([Self.key], revision: 9), wall: 3) == [])
    #expect(machine.handle(.listed([:], revision: 9, account: "a"), wall: 3) == [.watch(from: 10)])
    #expect(machine.state.value(Self.key) == 1)
    #expect(machine.handle(.set([Self.key: 2]), wall: 4) == [])
    guard case .push(let pushes)? = machine.handle(.set([other: 3]), wall: 5).first else {
      Issue.record("no push")
      return
    }
    #expect(pushes.map(\.key) == [other])
    // Somebody wrote one that can be read.
    _ = machine.handle(.pushed(revision: 10), wall: 6)
    let actions = machine.handle(.changed([Self.key: Self.record(5, 1)], revision: 11), wall: 6)
    #expect(actions.contains { if case .push = $0 { true } else { false } })
  }

  @Test("a clock that was ahead does not win every conflict for ever")
  func clockAhead() {
    var machine = Synchroniser(CloudState(host: "here"))
    _ = machine.handle(.set([Self.key: "far"]), wall: 900_000_000)
    _ = machine.handle(.connected, wall: 900_000_001)
    let actions = machine.handle(
      .listed([:], revision: 1, account: "a"), wall: 900_000_002, server: 1_000_000)
    #expect(actions.contains(.tellClockAhead(milliseconds: 899_000_000)))
    #expect(machine.state.pending[Self.key]?.stamp.milliseconds == 999_998, "when it was set")
    _ = machine.handle(.set([Self.key: "again"]), wall: 900_000_010)
    #expect(machine.state.clock.latest.milliseconds == 1_000_008)
  }

  @Test("a clock that was ahead and was set right since: what was set before counts from now on")
  func clockSetRight() {
    var machine = Synchroniser(CloudState(host: "here"))
    _ = machine.handle(.set([Self.key: "far"]), wall: 900_000_000)
    _ = machine.handle(.connected, wall: 1_000_001)
    _ = machine.handle(
      .listed([:], revision: 1, account: "a"), wall: 1_000_002, server: 1_000_000)
    #expect(machine.state.pending[Self.key]?.stamp.milliseconds == 1_000_000)
  }

  @Test("a record that knows of an earlier set of this host, with a later stamp, knows of no other")
  func unsentSet() {
    let base = Self.record("base", 100_000)
    var machine = Self.connected([Self.key: .init(base, revision: 4)])
    machine.notesAncestors = true
    let pushes = Self.pushes(machine.handle(.set([Self.key: "first"]), wall: 10))
    let stamp = Stamp(milliseconds: 100_000, counter: 1, host: "here")
    #expect(pushes.map(\.record.stamp) == [stamp], "the other clock is ahead")
    _ = machine.handle(.pushed(revision: 6), wall: 11)
    _ = machine.handle(.disconnected, wall: 12)
    _ = machine.handle(.set([Self.key: "second"]), wall: 20)
    _ = machine.handle(.connected, wall: 21)
    let theirs = CloudRecord(
      value: "theirs", stamp: Stamp(milliseconds: 100_500, counter: 0, host: "other"),
      replaced: stamp, ancestors: [stamp, base.stamp])
    _ = machine.handle(
      .listed([Self.key: .init(theirs, revision: 7)], revision: 7, account: "a"), wall: 22)
    #expect(machine.state.value(Self.key) == "theirs" && machine.state.pending.isEmpty)
    #expect(machine.state.replacedValues.map(\.value) == ["second"])
  }

  @Test("of changes that are too large for one push, only those that are pushed count as sent")
  func partOfPush() {
    var machine = Self.connected()
    _ = machine.handle(.disconnected, wall: 2)
    let (first, second) = (CloudKey("d", "First"), CloudKey("d", "Second"))
    for key in [first, second] {
      _ = machine.handle(.set([key: .data([UInt8](repeating: 7, count: 700_000))]), wall: 3)
    }
    _ = machine.handle(.connected, wall: 4)
    let actions = machine.handle(.listed([:], revision: 5, account: "a"), wall: 4)
    #expect(Self.pushes(actions).map(\.key) == [first])
    let sent = [first, second].map { machine.state.pending[$0]?.sent.count }
    #expect(sent == [1, 0])
  }

  @Test("a first connection that finds a later removal removes the local value, and logs it")
  func firstRemoval() {
    var machine = Synchroniser(CloudState(host: "here"))
    _ = machine.handle(.set([Self.key: "local"]), wall: 10)
    _ = machine.handle(.connected, wall: 11)
    let removal = CloudState.Known(Self.record(nil, 500), revision: 3)
    let actions = machine.handle(
      .listed([Self.key: removal], revision: 7, account: "a"), wall: 12)
    #expect(actions == [.edit([Self.key: nil]), .watch(from: 8)])
    #expect(machine.state.replacedValues.map(\.value) == ["local"])
  }

  @Test("a removal that was made long ago is kept for 30 days from when it reaches the server")
  func oldRemoval() {
    let day: Int64 = 86_400_000
    var machine = Self.connected([Self.key: .init(Self.record(1, 1), revision: 4)])
    _ = machine.handle(.disconnected, wall: 2)
    _ = machine.handle(.set([Self.key: nil]), wall: 10)
    _ = machine.handle(.connected, wall: 40 * day, server: 40 * day)
    let actions = machine.handle(
      .listed([Self.key: .init(Self.record(1, 1), revision: 4)], revision: 5, account: "a"),
      wall: 40 * day, server: 40 * day)
    guard case .push(let pushes)? = actions.last else {
      Issue.record("no push: \(actions)")
      return
    }
    #expect(pushes[0].record.value == nil && pushes[0].record.stamp.milliseconds == 40 * day)
    _ = machine.handle(.pushed(revision: 6), wall: 40 * day)
    #expect(machine.handle(.tick, wall: 69 * day) == [])
    #expect(machine.handle(.tick, wall: 71 * day) == [.purge([Self.key: 6])])
  }

  @Test("a list that the watch has overtaken changes nothing")
  func overtaken() {
    var machine = Self.connected()
    _ = machine.handle(.changed([Self.key: Self.record(2, 2)], revision: 6), wall: 2)
    #expect(machine.handle(.listed([:], revision: 5, account: "a"), wall: 3) == [])
    #expect(machine.state.value(Self.key) == 2 && machine.state.revision == 6)
  }

  @Test("a change of account brings the values of the new one; unsent ones are in the log")
  func account() {
    var machine = Self.connected([Self.key: .init(Self.record("ada", 1), revision: 4)])
    _ = machine.handle(.disconnected, wall: 2)
    _ = machine.handle(.set([CloudKey("d", "Unsent"): 1]), wall: 3)
    _ = machine.handle(.connected, wall: 4)
    let theirs = CloudKey("d", "Theirs")
    let actions = machine.handle(
      .listed([theirs: .init(Self.record("bob", 1), revision: 2)], revision: 3, account: "b"),
      wall: 5)
    let edit: [CloudKey: Value?] = [Self.key: nil, theirs: "bob", CloudKey("d", "Unsent"): nil]
    #expect(actions.first == .edit(edit))
    #expect(machine.state.replacedValues.map(\.value) == [1])
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

  @Test("the later stamp wins a refused push, and the replaced is in the log", arguments: [5, 50])
  func refused(_ theirs: Int64) {
    var machine = Self.connected()
    _ = machine.handle(.set([Self.key: "ours"]), wall: 20)
    let actions = machine.handle(
      .refused([Self.key: .init(Self.record("theirs", theirs), revision: 6)], revision: 6), wall: 21
    )
    if theirs > 20 {
      #expect(actions == [.edit([Self.key: "theirs"])])
      #expect(machine.state.replacedValues.map(\.value) == ["ours"])
    } else {
      guard case .push(let pushes)? = actions.first else {
        Issue.record("no push: \(actions)")
        return
      }
      #expect(pushes.map(\.revision) == [6])
      #expect(machine.state.replacedValues.map(\.value) == ["theirs"])
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

  /// A set after the time of day was set. The server said 1,000 s when the steady clock had 0 s.
  struct Step: Sendable, CustomTestStringConvertible {
    let testDescription: String
    /// The time of day when the server spoke, and when the key is set, in seconds.
    let before, after: Int64
    /// When the key was set, by the time of day.
    let set: Int64
    /// The steady clock then.
    let steady: Int64
    /// The stamp, in seconds.
    let stamp: Int64
  }

  @Test(
    "a time of day that is set makes no stamp that is later than a minute after the server's clock",
    arguments: [
      Step(
        testDescription: "5 h behind, then right", before: -17_000, after: 1010, set: 1010,
        steady: 10, stamp: 1010),
      Step(
        testDescription: "5 h ahead, then right", before: 19_000, after: 1010, set: 1010,
        steady: 10, stamp: 1010),
      Step(
        testDescription: "right, then 5 h ahead", before: 1000, after: 19_010, set: 19_009,
        steady: 10, stamp: 1009),
      Step(
        testDescription: "right, then 5 h behind", before: 1000, after: -16_990, set: -16_990,
        steady: 10, stamp: 1010),
      Step(
        testDescription: "set before the step, handled after it", before: 19_000, after: 1010,
        set: 19_009, steady: 10, stamp: 1070),
      Step(
        testDescription: "a night's sleep", before: 1000, after: 37_000, set: 37_000,
        steady: 36_000, stamp: 37_000),
    ])
  func steps(_ step: Step) {
    var machine = Synchroniser(CloudState(host: "here"))
    let first = HostTime(wall: step.before * 1000, steady: 0)
    _ = machine.handle(.connected, wall: first.wall, now: first)
    _ = machine.handle(
      .listed([:], revision: 5, account: "a"), wall: first.wall, now: first, server: 1_000_000)
    let pushes = Self.pushes(
      machine.handle(
        .set([Self.key: 1]), wall: step.set * 1000,
        now: HostTime(wall: step.after * 1000, steady: step.steady * 1000)))
    #expect(pushes.map(\.record.stamp.milliseconds) == [step.stamp * 1000])
  }

  @Test("clocks at their extremes trap nothing", arguments: [Int64.min, -1, 0, .max])
  func extremes(_ time: Int64) {
    for server in [Int64.min, 0, .max] {
      var machine = Self.connected()
      let now = HostTime(wall: time, steady: time)
      _ = machine.handle(.tick, wall: time, now: HostTime(wall: 0, steady: 0), server: server)
      _ = machine.handle(.set([Self.key: 1]), wall: .max, now: now)
      _ = machine.handle(.set([Self.key: 2]), wall: .min, now: now)
      #expect(machine.state.value(Self.key) == 2)
    }
  }

  @Test("a later connection goes on from the last record, where the server still has it")
  func resumes() {
    let known = CloudState.Known(Self.record(1, 1), revision: 4)
    let other = CloudState.Known(Self.record(2, 1), revision: 4)
    let answers: [(CloudState.Known?, String?, [Synchroniser.Action])] = [
      (known, "a", [.watch(from: 5)]), (known, "b", [.list]), (known, nil, [.list]),
      (other, "a", [.list]), (.init(known.record, revision: 3), "a", [.list]), (nil, "a", [.list]),
    ]
    for (record, account, actions) in answers {
      var machine = Self.connected([Self.key: known])
      _ = machine.handle(.disconnected, wall: 2)
      #expect(machine.handle(.connected, wall: 3) == [.resume(Self.key, revision: 4)])
      let answer = machine.handle(.history(Self.key, record, account: account), wall: 4)
      #expect(answer == actions, "\(String(describing: record)) \(account ?? "-")")
    }
    var machine = Self.connected([Self.key: known])
    _ = machine.handle(.disconnected, wall: 2)
    _ = machine.handle(.set([Self.key: 9]), wall: 3)
    _ = machine.handle(.connected, wall: 4)
    let pushes = Self.pushes(machine.handle(.history(Self.key, known, account: "a"), wall: 5))
    #expect(pushes.map(\.revision) == [4], "what was set meanwhile is pushed without a list")
  }

  @Test("what the answer to a push has overtaken is heard after a later connection")
  func overtakenByPush() {
    let (other, known) = (CloudKey("d", "L"), CloudState.Known(Self.record(1, 1), revision: 4))
    var machine = Self.connected([other: known])
    _ = machine.handle(.set([Self.key: 1]), wall: 10)
    // Revision 6 is another host's, of which the watch has not told yet.
    _ = machine.handle(.pushed(revision: 7), wall: 11)
    _ = machine.handle(.disconnected, wall: 12)
    #expect(machine.handle(.connected, wall: 13) == [.resume(other, revision: 4)])
    let actions = machine.handle(.history(other, known, account: "a"), wall: 14)
    #expect(actions == [.watch(from: 5)])
    let heard = machine.handle(.changed([other: Self.record(2, 2)], revision: 6), wall: 15)
    #expect(heard == [.edit([other: 2])])
  }

  @Test(
    "everything is listed at the first connection, after a request, and with unreadable records")
  func lists() {
    let known = CloudState.Known(Self.record(1, 1), revision: 4)
    var machine = Self.connected([Self.key: known])
    machine = Synchroniser(machine.state)
    #expect(machine.handle(.connected, wall: 2) == [.list], "a new process")
    machine = Self.connected()
    #expect(machine.handle(.connected, wall: 2) == [.list], "nothing is known")
    machine = Self.connected([Self.key: known])
    machine.requireList()
    #expect(machine.handle(.connected, wall: 2) == [.list])
    machine = Self.connected([Self.key: known])
    _ = machine.handle(.unreadable([CloudKey("d", "L")], revision: 9), wall: 2)
    #expect(machine.handle(.connected, wall: 2) == [.list])
    #expect(machine.unreadable.isEmpty)
  }

  @Test(
    "changes of a time without the server go together, 100 keys at a time; refusals divide them")
  func together() {
    var machine = Self.connected()
    _ = machine.handle(.disconnected, wall: 2)
    for number in 0..<350 {
      _ = machine.handle(.set([CloudKey("d", Key("K\(number)")): 1]), wall: 3)
    }
    _ = machine.handle(.connected, wall: 4)
    var actions = machine.handle(.listed([:], revision: 5, account: "a"), wall: 4)
    var sizes: [Int] = []
    for step in 0..<20 {
      let pushes = Self.pushes(actions)
      if pushes.isEmpty { break }
      sizes.append(pushes.count)
      let present = Dictionary(
        uniqueKeysWithValues: pushes.map { ($0.key, CloudState.Known?.none) })
      actions = machine.handle(
        step == 1
          ? .refused(present, revision: 6) : .pushed(revision: Int64(10 + step)), wall: 5)
    }
    #expect(sizes == [100, 100, 1, 2, 4, 8, 16, 32, 64, 100, 23])
    #expect(machine.state.pending.isEmpty)
  }

  @Test("a change of many keys is not divided to fill a push, unless it is larger than one")
  func wholeBatches() {
    var machine = Self.connected()
    _ = machine.handle(.disconnected, wall: 2)
    for (domain, count) in [("a", 60), ("b", 60), ("c", 30), ("d", 150)] as [(DomainName, Int)] {
      let keys = (0..<count).map { (CloudKey(domain, Key("K\($0)")), Value?.some(1)) }
      _ = machine.handle(.set(Dictionary(uniqueKeysWithValues: keys)), wall: 3)
    }
    _ = machine.handle(.connected, wall: 4)
    var actions = machine.handle(.listed([:], revision: 5, account: "a"), wall: 4)
    var sizes: [[String: Int]] = []
    for step in 0..<10 {
      let pushes = Self.pushes(actions)
      if pushes.isEmpty { break }
      sizes.append(Dictionary(grouping: pushes) { $0.key.domain.string }.mapValues(\.count))
      actions = machine.handle(.pushed(revision: Int64(10 + step)), wall: 5)
    }
    #expect(sizes == [["a": 60], ["b": 60, "c": 30], ["d": 100], ["d": 50]])
  }

  @Test(
    "without a server that compares, a value that is replaced unknown is kept in the log",
    arguments: [
      (nil, []), ([], [1]), ([Stamp(milliseconds: 10, counter: 0, host: "third")], []),
      ([Stamp(milliseconds: 12, counter: 0, host: "third")], []),
      ([Stamp(milliseconds: 9, counter: 0, host: "third")], [1]),
      ([Stamp(milliseconds: 12, counter: 0, host: "fourth")], [1]),
    ] as [([Stamp]?, [Value])])
  func ancestors(_ ancestors: [Stamp]?, _ replacedValues: [Value]) {
    var machine = Self.connected([Self.key: .init(Self.record(1, 10, "third"), revision: 4)])
    let record = CloudRecord(
      value: 2, stamp: Stamp(milliseconds: 20, counter: 0, host: "other"), replaced: nil,
      ancestors: ancestors)
    #expect(CloudRecord(record.bytes) == record)
    _ = machine.handle(.changed([Self.key: record], revision: 6), wall: 30)
    #expect(machine.state.value(Self.key) == 2)
    #expect(machine.state.replacedValues.map(\.value) == replacedValues)
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
    #expect(machine.state.pending.isEmpty && machine.state.replacedValues.isEmpty)
  }

  @Test("a state and a record come back from their bytes; other bytes are refused")
  func coding() throws {
    var machine = Self.connected([Self.key: .init(Self.record([1, "x"], 1), revision: 4)])
    _ = machine.handle(.set([Self.key: ["a": .real(2)], CloudKey("e", ""): 7]), wall: 10)
    _ = machine.handle(
      .refused([Self.key: .init(Self.record("won", 99), revision: 6)], revision: 6), wall: 21)
    let state = machine.state
    #expect(state.replacedValues.count == 1 && state.pending.count == 1)
    #expect(CloudState(state.saved, host: "here") == state)
    #expect(CloudState(state.saved, host: "copy").pending == state.pending)
    let broken = SavedCloud()
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
