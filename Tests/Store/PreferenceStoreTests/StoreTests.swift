import Foundation
import PreferenceModel
import PropertyList
import StoreAccess
import Support
import Synchronization
import Testing

@testable import PreferenceStore
@testable import SystemCalls

/// A store in a sandbox, with short forms of what the tests do with it.
struct TestStore {
  let sandbox: Sandbox
  let store: Store
  let lines = Lines()

  final class Lines: Sendable {
    private let lines = Mutex<[String]>([])
    func add(_ line: String) { lines.withLock { $0.append(line) } }
    var all: [String] { lines.withLock { $0 } }
  }

  init(_ sandbox: Sandbox, readOnly: Bool = false) throws {
    self.sandbox = sandbox
    let lines = self.lines
    store = try Store(Self.layout(sandbox), readOnly: readOnly) { lines.add($0.text) }
  }

  /// Takes what observers would have been told since the last call.
  var pendingNotices: [PendingNotice] {
    var all: [PendingNotice] = []
    while let notice = store.lists.removeNextNotice() { all.append(notice) }
    return all
  }

  static func layout(_ sandbox: Sandbox) -> StoreLayout {
    StoreLayout(
      userDirectory: sandbox.config, systemDirectory: sandbox.system,
      stateDirectory: sandbox.state + "/s", hostIdentifier: "HOST", userName: "ada")
  }

  func set(_ key: Key, _ value: Value, _ location: Location = user, text: WrittenText = .canonical)
    throws
  {
    _ = try store.commit([Changeset.Item(location, .set(key, value, text))])
  }

  func get(_ key: Key, _ location: Location = user) throws -> Value? {
    try store.lists.find(key, at: location)?.value
  }

  static let user = Location(.user, "d")
  var list: String { sandbox.config + "/d.plist" }
  var journalSize: Int {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: sandbox.state + "/s")) ?? []
    return names.filter { $0.hasPrefix("journal.") }.reduce(0) { sum, name in
      let size = try? FileManager.default.attributesOfItem(atPath: "\(sandbox.state)/s/\(name)")[
        .size]
      return sum + ((size as? Int) ?? 0) - 16
    }
  }
}

@Suite("Store") struct StoreTests {
  @Test("the next owner's changes have larger numbers, whatever the time of day")
  func numbers() throws {
    let first = ChangeNumber()
    let last = (0..<1000).map { _ in first.advance() }.last ?? .max
    Instant.sleep(milliseconds: 1)
    #expect(ChangeNumber().value > last)
    // An owner of an older version began at the time of day.
    #expect(first.value > UInt64(Timestamp.now.nanoseconds))
    let uptime = Int64(clamping: first.value - 1 << 61) - Instant.now.nanoseconds
    #expect(abs(uptime) < 60_000_000_000)
  }

  @Test("a change says what was there before each of its items, also one that another program made")
  func before() throws {
    try withSandbox { sandbox in
      sandbox.makeList(sandbox.config + "/d.plist", "dict(A=1, B=2)")
      let test = try TestStore(sandbox)
      let (user, long) = (TestStore.user, String(repeating: "x", count: 100_000))
      let count = long.utf8.count
      let splice = try #require(
        Splice(base: count, offset: count, bytes: [121], count: count + 1, isBare: false))
      let changes: [(Edit, before: Value?)] = [
        (.set("A", 3, .canonical), 1), (.set("New", .string(long), .canonical), nil),
        (.describe("A", Description(mode: 0o640)), 3), (.remove("B"), 2),
        (.splice("New", splice), .string(long)),
      ]
      for (edit, before) in changes {
        let item = try #require(try test.store.commit([.init(user, edit)]).change.items.first)
        #expect(item.before.value == before && item.hadKey == (before != nil), "\(edit)")
      }
      let removal = try test.store.commit([.init(user, .removeDomain)]).change.items.first
      guard case .domain(let domain)? = removal?.before else {
        Issue.record("\(removal as Any)")
        return
      }
      #expect(Set(domain.keys) == ["A", "New"] && domain.entry("A")?.value == 3)
      _ = test.pendingNotices
      sandbox.makeList(sandbox.config + "/d.plist", "dict(C=1)")
      test.store.lists.refresh(user)
      sandbox.makeList(sandbox.config + "/d.plist", "dict(C=2)")
      test.store.lists.refresh(user)
      let last = try #require(test.pendingNotices.last?.changeset.items.first)
      #expect(last.edit.key == "C" && last.before.value == 1)
    }
  }

  @Test("each place reads its own list")
  func places() throws {
    try withSandbox { sandbox in
      sandbox.makeList(sandbox.config + "/ByHost/d.HOST.plist", "dict(K='host')")
      sandbox.makeList(sandbox.config + "/d.plist", "dict(K='user')")
      sandbox.makeList(sandbox.config + "/.GlobalPreferences.plist", "dict(K='global')")
      sandbox.makeList(sandbox.system + "/d.plist", "dict(K='machine')")
      sandbox.makeList(sandbox.system + "/managed/d.plist", "dict(K='managed', M=1)")
      sandbox.shell("mkdir \(sandbox.system)/managed/ada")
      sandbox.makeList(sandbox.system + "/managed/ada/d.plist", "dict(K='ada')")
      let test = try TestStore(sandbox)
      for (place, domain, value) in [
        (Place.host, DomainName("d"), Value.string("host")), (.user, "d", "user"),
        (.user, .global, "global"),
        (.anyUser, "d", "machine"), (.managed, "d", "managed"), (.ownManaged, "d", "ada"),
      ] {
        #expect(try test.get("K", Location(place, domain)) == value)
      }
      #expect(try test.get("M", Location(.managed, "d")) == 1)
      #expect(try test.store.lists.domains(in: .user) == ["d", .global])
      #expect(try test.store.lists.domains(in: .host) == ["d"])
    }
  }

  @Test("a change is in the journal until a checkpoint moves it to the list")
  func checkpoint() throws {
    try withSandbox { sandbox in
      sandbox.makeList(sandbox.config + "/d.plist", "dict(K=1, Other=2)")
      let test = try TestStore(sandbox)
      try test.set("K", 5)
      #expect(try test.get("K") == 5)
      #expect(test.journalSize > 0)
      #expect(sandbox.evaluate(test.list, "d['K']") == "1")
      try test.store.checkpoint(TestStore.user)
      #expect(sandbox.evaluate(test.list, "d['K'], d['Other']") == "5 2")
      #expect(test.journalSize == 0)
    }
  }

  @Test("items without effect make no record, unless they undo an earlier one of the transaction")
  func noChangeInTransaction() throws {
    try withSandbox { sandbox in
      let test = try TestStore(sandbox)
      let set = { (key: Key, value: Value) in
        Changeset.Item(TestStore.user, .set(key, value, .canonical))
      }
      _ = try test.store.commit([set("A", 1), set("B", 2)])
      let size = test.journalSize
      #expect(try test.store.commit([set("A", 1), set("B", 2)]).change.isEmpty)
      #expect(test.journalSize == size)
      let change = try test.store.commit([set("A", 1), set("B", 3), set("A", 1)]).change
      #expect(change.items.map(\.edit.key) == ["B"])
      _ = try test.store.commit([set("A", 9), set("A", 1)])
      #expect(try test.get("A") == 1)
    }
  }

  @Test("requests are kept for ten seconds, and no deadline is in the past")
  func patience() {
    var requests = Requests()
    requests.note(Origin(client: 1, serial: 1), Changeset(), 1)
    requests.note(Origin(client: 1, serial: 2), Changeset(), 2)
    requests.answered(Origin(client: 1, serial: 1))
    let now = Instant.now
    #expect(requests.oldestUnanswered(now) == 2)
    #expect(requests.endOfPatience(now).map { $0 > now } == true)
    let later = now.advanced(milliseconds: 10_001)
    #expect(requests.oldestUnanswered(later) == nil)
    #expect(requests.endOfPatience(later) == nil)
  }

  @Test(
    "a replay takes up a mount's requests of four seconds, a client's of ten, and the last 1,024",
    arguments: [
      (Origin.inheritable, seconds: 0.001, first: 1),
      (Origin.inheritable, seconds: 0.0025, first: 400),
      (0, seconds: 0.004, first: 1), (0, seconds: 0.008, first: 750),
      (Origin.inheritable, seconds: 1, first: 977), (0, seconds: 1, first: 977),
    ])
  func replayedRequests(_ kind: UInt64, seconds: Double, first: UInt64) {
    let entries = (1...2000).map { number in
      let time = Timestamp(nanoseconds: Int64(1e18) + Int64(Double(number) * seconds * 1e9))
      let item = Changeset.Item(TestStore.user, .remove("K"))
      return Journal.Entry(
        sequence: UInt64(number),
        record: .change(
          Changeset([item], time: time),
          from: Origin(client: 1, serial: kind | UInt64(number))))
    }
    var state = StoreState()
    state.replay(entries)
    #expect(state.requests.oldestUnanswered(.now) == first)
    #expect(state.pending[TestStore.user]?.count == 2000)
  }

  @Test("a time that most keys share is kept once, and every key keeps its own")
  func sharedTimes() throws {
    try withSandbox { sandbox in
      func keys(_ range: Range<Int>) -> [Key] { range.map { Key("K\($0)") } }
      func set(_ keys: [Key], _ value: Value, _ test: TestStore) throws -> Timestamp {
        let items = keys.map { Changeset.Item(TestStore.user, .set($0, value, .canonical)) }
        let time = try test.store.commit(items).change.time
        try test.store.checkpoint(TestStore.user)
        return time
      }
      func size() -> Int {
        Int(sandbox.shell("find $XDG_STATE_HOME -path '*metadata*' -name 'd*' -printf %s").output)
          ?? 0
      }
      let place = TestStore.user
      var times: [Key: Timestamp] = [:]
      // Most keys, then the first ones again, then most of them again.
      for (round, range) in [0..<1000, 0..<3, 100..<900].enumerated() {
        let test = try TestStore(sandbox)
        let time = try set(keys(range), .integer(WideInteger(Int64(round))), test)
        for key in keys(range) { times[key] = time }
        #expect((100..<6000).contains(size()), "\(round): \(size())")
      }
      do {
        let test = try TestStore(sandbox)
        for (key, time) in times {
          #expect(try test.store.lists.find(key, at: place)?.metadata.modified == time)
        }
      }
      // A list that another program replaced gives all of them its own time.
      sandbox.makeList(sandbox.config + "/d.plist", "{'K1': 7, 'K500': 2}")
      let later = try TestStore(sandbox)
      for key in keys(0..<1000) {
        let time = try later.store.lists.find(key, at: place)?.metadata.modified
        #expect(["K1", "K500"].contains(key) == (time != nil))
        #expect(time.map { $0 > times[key] ?? $0 } != false)
      }
    }
  }

  @Test("a change without effect makes no record in the journal")
  func noChange() throws {
    try withSandbox { sandbox in
      let test = try TestStore(sandbox)
      try test.set("K", "v", text: .exact([0x76]))
      let size = test.journalSize
      try test.set("K", "v", text: .exact([0x76]))
      try test.set("K", "v", text: .unknown)
      _ = try test.store.commit([Changeset.Item(TestStore.user, .remove("None"))])
      #expect(test.journalSize == size)
      #expect(try test.store.lists.find("K", at: TestStore.user)?.text == [0x76])
      try test.set("K", "other", text: .unknown)
      #expect(try test.store.lists.find("K", at: TestStore.user)?.text == nil)
    }
  }

  @Test("a change takes as many bytes of journal in a large domain as in a small one")
  func costOfAChange() throws {
    try withSandbox { sandbox in
      var sizes: [Int] = []
      for count in [10, 20000] {
        sandbox.makeList(
          sandbox.config + "/d\(count).plist", "{f'key{i}': i for i in range(\(count))}")
        let store = try TestStore(sandbox)
        _ = try store.get("key1", Location(.user, DomainName("d\(count)")))
        let before = store.journalSize
        try store.set("key1", "x", Location(.user, DomainName("d\(count)")))
        sizes.append(store.journalSize - before)
      }
      #expect(sizes[1] - sizes[0] < 10)
    }
  }

  @Test(
    "each new owner replays every acknowledged change, in order", arguments: [false, true])
  func replay(_ checkpoints: Bool) throws {
    try withSandbox { sandbox in
      for round in 0..<4 {
        let test = try TestStore(sandbox)
        if round > 0 {
          #expect(try test.get("K") == .integer(WideInteger(Int64(round - 1))))
          #expect(try test.get("Gone") == nil)
          #expect(try test.get(Key("Key\(round - 1)"), Location(.user, "e")) == "v")
        }
        try test.set("Gone", true)
        try test.set("K", .integer(WideInteger(Int64(round))))
        _ = try test.store.commit([Changeset.Item(TestStore.user, .remove("Gone"))])
        if checkpoints { try test.store.checkpoint(TestStore.user) }
        try test.set(Key("Key\(round)"), "v", Location(.user, "e"))
      }
      let test = try TestStore(sandbox)
      for (location, _) in test.store.unsaved() { try test.store.checkpoint(location) }
      #expect(test.journalSize == 0)
      #expect(
        sandbox.evaluate(sandbox.config + "/e.plist", "sorted(d)")
          == "['Key0', 'Key1', 'Key2', 'Key3']")
    }
  }

  @Test("a store that is only read says what it cannot save: the changes of its journal")
  func readersLack() throws {
    try withSandbox { sandbox in
      do {
        let test = try TestStore(sandbox)
        try test.set("Key", "value")
      }
      let reader = try TestStore(sandbox, readOnly: true).store
      let (other, lost) = (Location(.user, "other"), Errno.readOnlyFileSystem)
      for _ in 0..<2 {
        #expect(reader.savingObstacle(nil)?.reason == .system(lost))
        #expect(reader.savingObstacle(TestStore.user)?.reason == .system(lost))
        #expect(reader.savingObstacle(other) == nil)
        #expect(try reader.lists.find("Key", at: TestStore.user)?.value == "value")
      }
      let test = try TestStore(sandbox)
      #expect(test.store.savingObstacle(nil) == nil)
    }
  }

  @Test("a journal's torn end is passed over; damage in its middle puts the file aside")
  func tornJournal() throws {
    try withSandbox { sandbox in
      do {
        let test = try TestStore(sandbox)
        for index in 0..<10 { try test.set(Key("Key\(index)"), "value") }
      }
      let journal = sandbox.shell("ls -S \(sandbox.state)/s/journal.* | head -1").output.dropLast()
      let bytes = try Data(contentsOf: URL(fileURLWithPath: String(journal)))
      for cut in stride(from: bytes.count - 1, to: 16, by: -7) {
        try bytes.prefix(cut).write(to: URL(fileURLWithPath: String(journal)))
        let test = try TestStore(sandbox, readOnly: true)
        _ = try test.get("Key0")
        if cut > bytes.count / 2 { #expect(try test.get("Key0") == "value") }
      }
      var damaged = bytes
      damaged[bytes.count / 2] ^= 0xFF
      try damaged.write(to: URL(fileURLWithPath: String(journal)))
      let test = try TestStore(sandbox)
      #expect(try test.get("Key0") == "value" && test.get("Key9") == "value")
      let missing = try (0..<10).filter { try test.get(Key("Key\($0)")) == nil }
      #expect(missing.count == 1)
      #expect(sandbox.shell("ls \(sandbox.state)/s").output.contains("damaged."))
      #expect(test.lines.all.contains { $0.contains("damaged") })
    }
  }

  @Test("a rewrite keeps format, mode and link; a new list is binary and private")
  func formats() throws {
    try withSandbox { sandbox in
      sandbox.makeList(sandbox.config + "/xml.plist", "dict(K=1)", format: "XML")
      sandbox.shell(
        """
        cd \(sandbox.config); chmod 640 xml.plist; printf '{ K = 1; }' > old.plist; printf '{}' > empty.plist
        mkdir ../elsewhere; mv xml.plist ../elsewhere/; ln -s ../elsewhere/xml.plist xml.plist; ln -s ../elsewhere/new.plist dangling.plist
        """)
      let test = try TestStore(sandbox)
      for domain in ["xml", "old", "empty", "dangling", "fresh"] {
        let location = Location(.user, DomainName(domain))
        try test.set("New", "v", location)
        try test.store.checkpoint(location)
      }
      #expect(
        sandbox.shell(
          "cd \(sandbox.config); head -c5 -q xml.plist old.plist empty.plist; head -c6 -q fresh.plist dangling.plist; stat -c %a fresh.plist; stat -L -c %a xml.plist; stat -c %F xml.plist dangling.plist"
        ).output
          == "<?xml<?xml<?xmlbplistbplist600\n640\nsymbolic link\nsymbolic link\n")
      #expect(sandbox.evaluate(sandbox.config + "/old.plist", "d") == "{'K': '1', 'New': 'v'}")
    }
  }

  @Test("a value that XML cannot hold makes the list binary")
  func formatChange() throws {
    try withSandbox { sandbox in
      sandbox.makeList(sandbox.config + "/d.plist", "dict(K=1)", format: "XML")
      let test = try TestStore(sandbox)
      try test.set("D", .date(AbsoluteTime(seconds: 0.5)))
      try test.store.checkpoint(TestStore.user)
      #expect(sandbox.shell("head -c6 \(test.list)").output == "bplist")
      #expect(test.lines.all.contains { $0.contains("binary") })
    }
  }

  @Test("another program's edit is merged: our unsaved keys win, the rest of it is taken")
  func merge() throws {
    try withSandbox { sandbox in
      sandbox.makeList(sandbox.config + "/d.plist", "dict(A=1, B=1, C=1, D=1)")
      let test = try TestStore(sandbox)
      try test.set("A", 2)
      _ = try test.store.commit([Changeset.Item(TestStore.user, .remove("D"))])
      sandbox.makeList(sandbox.config + "/d.plist", "dict(A=3, B=3, D=1, E=3)")
      try test.store.checkpoint(TestStore.user)
      #expect(sandbox.evaluate(test.list, "sorted(d.items())") == "[('A', 2), ('B', 3), ('E', 3)]")
      #expect(test.pendingNotices.last?.changeset.items.count == 3)
      #expect(try test.get("B") == 3 && test.get("C") == nil)
    }
  }

  @Test("domains that are made, moved and removed in the journal are replayed")
  func domains() throws {
    try withSandbox { sandbox in
      sandbox.makeList(sandbox.config + "/d.plist", "dict(A=1)")
      do {
        let test = try TestStore(sandbox)
        _ = try test.store.commit([Changeset.Item(Location(.user, "empty"), .createDomain)])
        _ = try test.store.commit([
          Changeset.Item(Location(.user, "moved"), .createDomain),
          Changeset.Item(Location(.user, "moved"), .set("A", 1, .canonical)),
          Changeset.Item(TestStore.user, .removeDomain),
        ])
        #expect(try test.store.lists.domains(in: .user) == ["empty", "moved"])
      }
      let test = try TestStore(sandbox)
      #expect(try test.store.lists.domains(in: .user) == ["empty", "moved"])
      for (location, _) in test.store.unsaved() { try test.store.checkpoint(location) }
      #expect(sandbox.shell("ls \(sandbox.config)").output == "ByHost\nempty.plist\nmoved.plist\n")
    }
  }

  @Test("that a domain was made without keys is known over crashes and rewrites, until it is gone")
  func made() throws {
    try withSandbox { sandbox in
      let (made, born) = (Location(.user, "made"), Location(.user, "born"))
      func areMade(_ test: TestStore) throws -> [Bool] {
        try [made, born].map { try test.store.lists.snapshot(of: $0).made != nil }
      }
      do {
        let test = try TestStore(sandbox)
        _ = try test.store.commit([Changeset.Item(made, .createDomain)])
        // As an import does.
        _ = try test.store.commit([
          Changeset.Item(born, .createDomain), Changeset.Item(born, .set("A", 1, .canonical)),
        ])
        try test.set("A", 1, made)
        #expect(try areMade(test) == [true, false])
      }
      do {
        let test = try TestStore(sandbox)
        #expect(try areMade(test) == [true, false])
        for location in [made, born] { try test.store.checkpoint(location) }
        try test.set("A", 2, made)
        try test.store.checkpoint(made)
      }
      do {
        let test = try TestStore(sandbox)
        #expect(try areMade(test) == [true, false])
        _ = try test.store.commit([Changeset.Item(made, .removeDomain)])
        try test.store.checkpoint(made)
        try test.set("A", 1, made)
        try test.store.checkpoint(made)
      }
      #expect(try areMade(TestStore(sandbox)) == [false, false])
    }
  }
}

@Suite("Store: group commit") struct GroupCommitTests {
  @Test("sixteen threads that synchronise share six fdatasync(2) at most")
  func shared() throws {
    try withSandbox { sandbox in
      let test = try TestStore(sandbox)
      let store = test.store
      let calls = Mutex(0)
      let judge: Interposition.Judge = { call in
        if call.name == "fdatasync" {
          calls.withLock { $0 += 1 }
          usleep(20_000)
        }
        return .proceed
      }
      try Interposition.with(judge) {
        let threads = try (0..<16).map { number in
          try WorkerThread(name: "writer") {
            let item = Changeset.Item(TestStore.user, .set(Key("K\(number)"), 1, .canonical))
            _ = try? store.commit([item])
            try? store.journal.synchronize()
          }
        }
        for thread in threads { thread.join() }
      }
      let count = calls.withLock { $0 }
      #expect((1...6).contains(count), "\(count) calls for 16 writers")
      #expect(try store.lists.snapshot(of: TestStore.user).keys.count == 16)
    }
  }

  @Test("a failed fdatasync is the error of its own thread; the others try again")
  func failing() throws {
    try withSandbox { sandbox in
      let test = try TestStore(sandbox)
      try test.set("K", 1)
      let store = test.store
      let isFirst = Mutex(true)
      let failures = Mutex(0)
      let judge: Interposition.Judge = { call in
        guard call.name == "fdatasync" else { return .proceed }
        usleep(20_000)
        return isFirst.withLock { $0.exchange(false) } ? .fail(.inputOutput) : .proceed
      }
      try Interposition.with(judge) {
        let threads = try (0..<4).map { _ in
          try WorkerThread(name: "writer") {
            do { try store.journal.synchronize() } catch { failures.withLock { $0 += 1 } }
          }
        }
        for thread in threads { thread.join() }
      }
      #expect(failures.withLock { $0 } == 1)
    }
  }
}

extension Bool {
  fileprivate mutating func exchange(_ value: Bool) -> Bool {
    defer { self = value }
    return self
  }
}

extension Changeset.Before {
  /// The value; nil where there was none, or it is not known.
  fileprivate var value: Value? { if case .value(let stored) = self { stored.value } else { nil } }
}
