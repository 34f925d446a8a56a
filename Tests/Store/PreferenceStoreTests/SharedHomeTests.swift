import Foundation
import PreferenceModel
import PropertyList
import StoreAccess
import Support
import SystemCalls
import Testing

@testable import PreferenceStore

private let shared = Location(.user, "d")

/// Owners of the lists of one home. Each has a view of its own, and sees what the others have
/// written when that is carried over: as late as a cache of a file system may show it.
@Suite("Store: a home on several machines") struct SharedHomeTests {
  private struct Machine {
    let sandbox: Sandbox
    let name: String
    let store: Store

    init(_ sandbox: Sandbox, _ name: String) throws {
      (self.sandbox, self.name) = (sandbox, name)
      // A third machine has noted that it uses the home.
      let note = "boot\\nmachine\\nhost\\n1\\n2\\n3\\n4\\n5\\n"
      sandbox.shell(
        "mkdir -p \(sandbox.state)/else \(sandbox.root)/\(name); "
          + "printf '\(note)' > \(sandbox.state)/else/owner")
      let layout = StoreLayout(
        userDirectory: "\(sandbox.root)/\(name)", systemDirectory: sandbox.system,
        stateDirectory: "\(sandbox.state)/\(name)", hostIdentifier: "HOST", userName: "ada")
      store = try Store(layout) { _ in }
    }

    var path: String { store.layout.path(shared) }

    func get(_ key: Key) throws -> Value? { try store.lists.find(key, at: shared)?.value }

    /// Changes keys and rewrites the list; nil removes a key.
    func set(_ values: [Key: Value?]) throws {
      let items = values.map { key, value in
        Changeset.Item(shared, value.map { Edit.set(key, $0, .canonical) } ?? Edit.remove(key))
      }
      _ = try store.commit(items)
      try store.checkpoint(shared)
    }

    /// Sees the list that another machine has written.
    func see(_ other: Machine) throws { try see(other.path) }

    /// Sees a list that another machine has written, as it is at the path.
    func see(_ list: String) throws {
      let bytes = try Data(contentsOf: URL(fileURLWithPath: list))
      try bytes.write(to: URL(fileURLWithPath: path), options: .atomic)
      _ = try get("K")
      store.lists.refresh(shared)
    }

    /// Forgets what is only remembered for seconds.
    func wait() { _ = store.lists.forgetOld(Instant.now.advanced(milliseconds: 60_000)) }

    /// Ends the owner; the next one saves what it finds unsaved.
    func restarted() throws -> Machine {
      store.unlock()
      let next = try Machine(sandbox, name)
      _ = try next.get("K")
      return next
    }

    var isSaved: Bool { store.unsaved().isEmpty }
  }

  @Test(
    "what another owner sets back or removes counts at once, and for ever",
    arguments: [0, nil] as [Value?])
  func setBack(_ value: Value?) throws {
    try withSandbox { sandbox in
      let (a, b) = (try Machine(sandbox, "a"), try Machine(sandbox, "b"))
      try a.set(["K": value, "Other": 0])
      try b.see(a)
      try a.set(["K": 1])
      try a.set(["Other": 1])
      try b.see(a)
      #expect(try b.get("K") == 1)
      try b.set(["K": value])
      try a.see(b)
      #expect(try a.get("K") == value && a.get("Other") == 1 && a.isSaved)
      a.wait()
      try a.set(["New": 1])
      try b.see(a)
      #expect(try b.get("K") == value && b.get("New") == 1 && b.isSaved)
      #expect(try a.restarted().get("K") == value)
    }
  }

  @Test(
    "a list that another owner has made from an old one undoes nothing, however late it is seen",
    arguments: [false, true], [false, true])
  func oldView(_ isRestarted: Bool, _ isXML: Bool) throws {
    try withSandbox { sandbox in
      var a = try Machine(sandbox, "a")
      if isXML { sandbox.makeList(a.path, "dict()", format: "XML") }
      let b = try Machine(sandbox, "b")
      try a.set(["K": 1, "Gone": 1, "Both": 0])
      try b.see(a)
      try a.set(["A": 1, "Gone": nil])
      // It has seen neither of the two.
      try b.set(["B": 1, "Both": "b"])
      try a.set(["K": 2, "Both": "a"])
      a.wait()
      if isRestarted { a.store.unlock() }
      sandbox.shell("cp \(b.path) \(a.path)")
      if isRestarted { a = try a.restarted() } else { a.store.lists.refresh(shared) }
      let expected: [Key: Value?] = ["K": 2, "A": 1, "B": 1, "Gone": nil, "Both": "a"]
      for (key, value) in expected { #expect(try a.get(key) == value, "\(key)") }
      #expect(!a.isSaved)
      try a.store.checkpoint(shared)
      #expect(a.isSaved)
      b.wait()
      try b.see(a)
      for (key, value) in expected { #expect(try b.get(key) == value, "\(key)") }
      #expect(b.isSaved)
    }
  }

  @Test("owners that write at the same time, from views of different ages, end with all keys")
  func bothWrite() throws {
    try withSandbox { sandbox in
      let machines = [try Machine(sandbox, "a"), try Machine(sandbox, "b")]
      try machines[0].set(["K": 0])
      try machines[1].see(machines[0])
      // Who writes, and whether the other one then sees it.
      var keys: [Key] = []
      for (round, (writer, isSeen)) in [
        (0, false), (1, false), (0, false), (1, true), (1, false), (0, true), (0, false), (1, true),
        (0, false), (0, true), (1, false), (1, true),
      ].enumerated() {
        keys.append(Key("K\(round)"))
        try machines[writer].set([Key("K\(round)"): .integer(WideInteger(Int64(round)))])
        if isSeen { try machines[1 - writer].see(machines[writer]) }
        for machine in machines { machine.wait() }
      }
      for (writer, machine) in [(0, 1), (1, 0), (0, 1)] {
        try machines[writer].store.checkpoint(shared)
        try machines[machine].see(machines[writer])
      }
      for machine in machines {
        for key in keys { #expect(try machine.get(key) != nil, "\(machine.name) \(key)") }
        #expect(machine.isSaved)
      }
    }
  }

  @Test("of two changes that do not know each other, the later one counts on all machines")
  func later() throws {
    try withSandbox { sandbox in
      let (a, b) = (try Machine(sandbox, "a"), try Machine(sandbox, "b"))
      try a.set(["K": 0])
      try b.see(a)
      try a.set(["K": 1, "A": 1])
      try b.set(["K": 2])
      try a.see(b)
      #expect(try a.get("K") == 2 && a.get("A") == 1 && !a.isSaved)
      try a.store.checkpoint(shared)
      try b.see(a)
      #expect(try b.get("K") == 2 && b.get("A") == 1 && b.isSaved)
    }
  }

  @Test("a change of what another owner had set stays, also if a third one overwrites both")
  func third() throws {
    try withSandbox { sandbox in
      let (a, b) = (try Machine(sandbox, "a"), try Machine(sandbox, "b"))
      let c = try Machine(sandbox, "c")
      try a.set(["K": 0])
      for machine in [b, c] { try machine.see(a) }
      try a.set(["K": 1, "A": 1])
      try b.see(a)
      try b.set(["K": 2])
      // It has seen neither of the two.
      try c.set(["C": 1])
      try b.see(c)
      try b.store.checkpoint(shared)
      for machine in [a, b, c] { machine.wait() }
      try a.see(b)
      #expect(try a.get("K") == 2 && a.get("A") == 1 && a.get("C") == 1 && a.isSaved)
      try c.see(b)
      #expect(try c.get("K") == 2 && c.get("A") == 1 && c.isSaved)
    }
  }

  /// A change of a key, and those that its owner had seen.
  private struct Change {
    let key: Key
    let value: Value?
    let past: Set<Int>
  }

  @Test(
    "whatever three owners do, with views of any age, all end with what nobody has changed since",
    arguments: 1...12 as ClosedRange<UInt64>)
  func anyOrder(_ seed: UInt64) throws {
    try withSandbox { sandbox in
      var random = Steps(state: seed)
      var machines = try ["a", "b", "c"].map { try Machine(sandbox, $0) }
      let served = sandbox.root + "/served"
      var (changes, servedSeen): ([Change], Set<Int>) = ([], [])
      var seen = [Set<Int>](repeating: [], count: 3)
      func rewrite(_ index: Int) throws -> Bool {
        if machines[index].isSaved { return false }
        try machines[index].store.checkpoint(shared)
        sandbox.shell("cp \(machines[index].path) \(served)")
        servedSeen = seen[index]
        return true
      }
      func look(_ index: Int) throws {
        guard FileManager.default.fileExists(atPath: served) else { return }
        try machines[index].see(served)
        seen[index].formUnion(servedSeen)
      }
      try machines[0].set(["First": 0])
      sandbox.shell("cp \(machines[0].path) \(served)")
      for index in 1...2 { try look(index) }
      for _ in 0..<40 {
        let index = Int(random.next(3))
        let machine = machines[index]
        switch random.next(8) {
        case 0...2:
          let key: Key = random.next(2) == 0 ? "K" : "L"
          let value: Value? = [nil, 0, 1, 2][Int(random.next(4))]
          if try machine.get(key) == value { continue }
          changes.append(Change(key: key, value: value, past: seen[index]))
          seen[index].insert(changes.count - 1)
          let edit = value.map { Edit.set(key, $0, .canonical) } ?? .remove(key)
          _ = try machine.store.commit([.init(shared, edit)])
        case 3...4: _ = try rewrite(index)
        case 5...6: try look(index)
        default:
          machine.wait()
          if random.next(3) == 0 { machines[index] = try machine.restarted() }
        }
      }
      var isQuiet = false
      for _ in 0..<10 where !isQuiet {
        isQuiet = true
        for index in 0..<3 {
          try look(index)
          if try rewrite(index) { isQuiet = false }
        }
      }
      #expect(isQuiet)
      for key in ["K", "L"] as [Key] {
        let own = changes.indices.filter { changes[$0].key == key }
        let replaced = Set(own.flatMap { changes[$0].past })
        let last = own.filter { !replaced.contains($0) }.map { changes[$0].value }
        let shown = try machines.map { try $0.get(key) }
        #expect(shown.allSatisfy { $0 == shown[0] }, "\(key)")
        #expect(last.contains(shown[0]) || own.isEmpty, "\(key) \(shown) \(last)")
      }
    }
  }

  @Test("what is set again has the time that readers are told, and their changes name the machine")
  func notices() throws {
    try withSandbox { sandbox in
      let (a, b) = (try Machine(sandbox, "a"), try Machine(sandbox, "b"))
      try a.set(["K": 0])
      try b.see(a)
      try a.set(["K": 1])
      try b.set(["Theirs": 1])
      while a.store.lists.removeNextNotice() != nil {}
      try a.see(b)
      var (times, hosts): ([Key: Timestamp], [Key: String]) = ([:], [:])
      while let notice = a.store.lists.removeNextNotice() {
        for key in notice.changeset.items.compactMap(\.edit.key) {
          (times[key], hosts[key]) = (notice.changeset.time, notice.source.program)
        }
      }
      #expect(try a.store.lists.find("K", at: shared)?.modified == times["K"])
      #expect(try a.store.lists.find("Theirs", at: shared)?.modified == times["Theirs"])
      #expect(hosts == ["K": "", "Theirs": Surroundings.hostName])
    }
  }

  @Test("a file whose time is in whole seconds is read once more after a second")
  func coarse() throws {
    var status = stat()
    status.st_ctim.tv_sec = 1
    var state = LocationState()
    state.identity = FileIdentity(status)
    #expect(state.unsureSince != nil)
    state.unsureSince = nil
    state.identity = FileIdentity(status)
    #expect(state.unsureSince == nil)
    status.st_ctim.tv_nsec = 1
    state.identity = FileIdentity(status)
    #expect(state.unsureSince == nil)
  }

  @Test("other programs' lists count as ever: a stale copy, an edit, and a list that is put back")
  func otherPrograms() throws {
    try withSandbox { sandbox in
      let (a, b) = (try Machine(sandbox, "a"), try Machine(sandbox, "b"))
      try a.set(["K": 1, "Other": 1])
      try b.see(a)
      try b.set(["FromB": 1])
      try a.see(b)
      sandbox.shell("cp \(a.path) $C/../back")
      a.wait()
      try a.set(["K": 2])
      // Foundation writes back what it read before.
      sandbox.makeList(a.path, "dict(K=1, Other=5, FromB=1)")
      a.store.lists.refresh(shared)
      #expect(try a.get("K") == 2 && a.get("Other") == 5)
      try a.store.checkpoint(shared)
      a.wait()
      sandbox.makeList(a.path, "dict(K=1, Other=5)")
      a.store.lists.refresh(shared)
      #expect(try a.get("K") == 1 && a.get("FromB") == nil)
      try a.set(["K": 3])
      a.wait()
      sandbox.shell("cp $C/../back \(a.path)")
      a.store.lists.refresh(shared)
      #expect(try a.get("K") == 1 && a.get("Other") == 1 && a.get("FromB") == 1 && a.isSaved)
      // Others see what is written next, and not what was there before.
      try a.set(["New": 1])
      try b.see(a)
      #expect(try b.get("K") == 1 && b.get("New") == 1 && b.isSaved)
    }
  }

  @Test("a list that is copied from another domain counts as it is")
  func otherDomain() throws {
    try withSandbox { sandbox in
      let (a, b) = (try Machine(sandbox, "a"), try Machine(sandbox, "b"))
      try a.set(["K": 1])
      try b.see(a)
      let other = Location(.user, "other")
      _ = try a.store.commit([.init(other, .set("K", 2, .canonical))])
      try a.store.checkpoint(other)
      a.wait()
      sandbox.shell("cp \(a.store.layout.path(other)) \(a.path)")
      a.store.lists.refresh(shared)
      #expect(try a.get("K") == 2 && a.isSaved)
      try a.set(["New": 1])
      try b.see(a)
      #expect(try b.get("K") == 2 && b.get("New") == 1 && b.isSaved)
    }
  }

  @Test("the rewrites of an owner have ascending numbers, whatever its clock and its metadata say")
  func numbers() throws {
    let values = ListValues.decoded(["K": 1])
    func list(_ statement: ListStatement) -> ListFile.Contents {
      let identity = FileIdentity(size: 1, modified: Timestamp(nanoseconds: 1), inode: 1)
      return ListFile.Contents(
        values: values, format: .xml, identity: identity, statement: statement)
    }
    var (owner, other) = (ListOwners(), ListOwners())
    let first = owner.noteRewrite(["K"], values, through: 1, now: Timestamp(nanoseconds: 1000))
    let kept = try #require(owner.encoded(values))
    // The clock is set back.
    let second = owner.noteRewrite(["K"], values, through: 2, now: Timestamp(nanoseconds: 10))
    #expect(second.number > first.number)
    _ = other.resume(list(second), kept: [:])
    let answer = other.noteRewrite([], values, through: 0)
    for seen in [second, answer] {
      // The state directory from before is put back.
      var again = try #require(ListOwners.decoded(kept))
      _ = again.owners.resume(list(seen), kept: again.values)
      let third = again.owners.noteRewrite(
        ["K"], values, through: 3, now: Timestamp(nanoseconds: 20))
      #expect(third.number > second.number && other.news(list(third)) != nil)
    }
  }

  @Test("a list that is removed on one machine, and made anew, has nothing from before")
  func removal() throws {
    try withSandbox { sandbox in
      let (a, b) = (try Machine(sandbox, "a"), try Machine(sandbox, "b"))
      try a.set(["K": 1])
      try b.see(a)
      _ = try b.store.commit([.init(shared, .removeDomain)])
      try b.store.checkpoint(shared)
      try b.set(["New": 1])
      let next = try a.restarted()
      try next.see(b)
      #expect(try next.get("K") == nil && next.get("New") == 1 && next.isSaved)
    }
  }

  @Test(
    "other readers read a list with a statement, which a change around it makes void",
    arguments: [1, 200, 300, 65_480])
  func statement(_ length: Int) throws {
    try withSandbox { sandbox in
      // With 200 and 65,480 bytes, the statement makes the offsets larger.
      let value: Value = ["K": "v", "Long": .string(String(repeating: "x", count: length))]
      let statement = ListStatement(
        owner: 7, contains: [7: 9, 1: .max], changes: ["K -->": Rewrite(owner: 1, number: .max)],
        hosts: [7: "box"])
      for format in [Format.xml, .binary] {
        let plain = try Document.write(value, as: format)
        let list = statement.added(to: plain, of: "d.plist")
        #expect(ListStatement(in: list, of: "d.plist") == statement)
        #expect(ListStatement(in: plain, of: "d.plist") == nil)
        #expect(ListStatement(in: list, of: "e.plist") == nil, "a copy of another domain's list")
        #expect(try Document.read(list).value == value)
        let path = sandbox.config + "/d.plist"
        try Data(list).write(to: URL(fileURLWithPath: path))
        #expect(sandbox.evaluate(path, "d['K'], len(d['Long'])") == "v \(length)")
        let foundation = try PropertyListSerialization.propertyList(from: Data(list), format: nil)
        #expect((foundation as? [String: String])?["K"] == "v")
        let changed = list.map { $0 == UInt8(ascii: "v") ? 0x77 : $0 }
        #expect(ListStatement(in: changed, of: "d.plist") == nil)
        guard format == .xml else { continue }
        #expect(ListStatement.removed(from: list) == plain)
        #expect(statement.added(to: list, of: "d.plist") == list)
      }
    }
  }

  @Test("a home that nobody else uses has no statement in its lists")
  func single() throws {
    try withSandbox { sandbox in
      let test = try TestStore(sandbox)
      try test.set("K", 1)
      try test.store.checkpoint(TestStore.user)
      let list = try Data(contentsOf: URL(fileURLWithPath: test.list))
      #expect(Array(list) == Document.binary(["K": 1]))
    }
  }
}

/// Numbers that look random, the same ones each time.
private struct Steps {
  var state: UInt64

  mutating func next(_ bound: UInt64) -> UInt64 {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    return (state >> 33) % bound
  }
}
