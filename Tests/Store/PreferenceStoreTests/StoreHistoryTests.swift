import Foundation
import PreferenceHistory
import PreferenceModel
import PropertyList
import Support
import Synchronization
import Testing

@testable import PreferenceStore
@testable import SystemCalls

@Suite("Store: history") struct StoreHistoryTests {
  private func open(_ sandbox: Sandbox) throws -> Store {
    try Store(TestStore.layout(sandbox), keepsHistory: true) { _ in }
  }

  /// What the history has, as "KEY: BEFORE -> AFTER", after what waits was written.
  private func lines(_ store: Store) throws -> [String] {
    store.history.record()
    return try written(store)
  }

  private func written(_ store: Store) throws -> [String] {
    try store.layout.history.entries().flatMap { entry -> [String] in
      guard case .change(let record) = entry else { return ["gap"] }
      return record.items.map { "\($0.key): \(text($0.before)) -> \(text($0.after))" }
    }
  }

  @Test("while the history cannot be written, a list that is rewritten often takes no more memory")
  func looks() throws {
    try withSandbox { sandbox in
      let seen = SeenLists(HistoryDirectory(sandbox.root + "/history"))
      let look = { (number: Int) in
        SeenLists.Look(
          location: Location(.user, "d"), values: .decoded(["K": .string("\(number)")]),
          identity: FileIdentity(size: 1, modified: .init(nanoseconds: 2), inode: 3),
          isFirst: number == 0)
      }
      for number in 0..<100 {
        _ = seen.note(look(number))
        if number % 10 == 5 { seen.putBack(seen.removeLooks()) }
      }
      let kept = seen.removeLooks()
      #expect(
        kept.map { $0.values.dictionary["K"] } == ["0", "99"]
          && kept.map(\.isFirst) == [true, false])
    }
  }

  @Test("of more changes at once than are kept, a transaction counts once, whatever its keys")
  func transactions() {
    var queue = HistoryQueue()
    queue.hasHistory = true
    let value = Value.data([UInt8](repeating: 1, count: 60_000))
    let keys: [Key] = ["A", "B"]
    let items = keys.map { Changeset.Item(TestStore.user, .set($0, value, .canonical)) }
    for _ in 0..<50 { queue.add(Changeset(items, time: .now), ChangeSource(.command), .now) }
    let changes = queue.removeAll { _, _ in nil }.changes
    #expect(changes.count < 50)
    #expect(changes.reduce(0) { $0 + $1.count } == 50)
  }

  @Test("what this host notes of the cloud is not kept, nor what goes with its domain")
  func notes() {
    var queue = HistoryQueue()
    queue.hasHistory = true
    let items = [Place.user, .cloud, .vendor, .cloudRecords].map {
      Changeset.Item(Location($0, "d"), .set("K", 1, .canonical))
    }
    let gone = Changeset.Item(Location(.cloudRecords, "d"), .removeDomain)
    queue.add(Changeset(items + [gone], time: .now), ChangeSource(.command), .now)
    let kept = queue.removeAll { _, _ in nil }.changes.flatMap(\.items)
    #expect(kept.map(\.key.location.place) == [.user, .cloud, .vendor])
  }

  @Test("of more replayed changes than are kept, a transaction of two lists is still one change")
  func manyReplayed() {
    var queue = HistoryQueue()
    queue.hasHistory = true
    let value = Value.data([UInt8](repeating: 1, count: 60_000))
    for location in [TestStore.user, Location(.user, "e")] {
      for number in 0..<40 {
        let item = Changeset.Item(location, .set(Key("K\(number)"), value, .canonical))
        queue.addReplayed(
          [item], ChangeSource(.command), Timestamp(nanoseconds: Int64(number)))
      }
    }
    let changes = queue.removeAll { _, _ in nil }.changes
    #expect(changes.map(\.time.nanoseconds) == Array(0..<40))
    #expect(changes.allSatisfy { $0.items.count == 2 })
  }

  @Test(
    "a domain of 100,000 keys that goes as a whole is kept with its values, whatever follows it")
  func largeRemoval() {
    var queue = HistoryQueue()
    queue.hasHistory = true
    let old = StoredValue("value", Metadata(text: nil, modified: .now))
    let removed = (0..<100_000).map {
      Changeset.Item(TestStore.user, .remove(Key("Key \($0)")), before: .value(old))
    }
    queue.add(Changeset(removed, time: .now), ChangeSource(.command), .now)
    let value = Value.data([UInt8](repeating: 1, count: 60_000))
    for number in 0..<100 {
      let item = Changeset.Item(TestStore.user, .set(Key("Key \(number % 2)"), value, .canonical))
      queue.add(Changeset([item], time: .now), ChangeSource(.command), .now)
    }
    let (changes, gap) = queue.removeAll { _, _ in nil }
    #expect(gap == nil)
    #expect(changes.first?.items.count == 100_000 && changes.first?.count == 1)
    let isKept = changes.first?.items.allSatisfy { item in
      guard case (.stored(let stored), .none) = (item.before, item.after) else { return false }
      return stored.value == "value"
    }
    #expect(isKept == true)
    #expect(changes.dropFirst().reduce(0) { $0 + $1.count } == 100 && changes.count < 100)
  }

  private func text(_ value: RecordedValue) -> String {
    switch value {
    case .none: "none"
    case .list, .parts: value.shown.map { ValueDescription.line(of: $0, false) } ?? "damaged"
    case .large(let size): "\(size) bytes"
    case .notKept: "not kept"
    }
  }

  private func commit(
    _ store: Store, _ edits: [Edit], from source: ChangeSource = ChangeSource(.command)
  ) throws {
    let items = edits.map { Changeset.Item(TestStore.user, $0) }
    _ = try store.commit(items, by: Author(number: 1), from: source)
  }

  @Test("a list is rewritten only when the history has what was there before")
  func beforeRewrite() throws {
    try withSandbox { sandbox in
      sandbox.makeList(sandbox.config + "/d.plist", "dict(A=1, B=2)")
      let store = try open(sandbox)
      try commit(store, [.set("A", 5, .canonical), .remove("B")])
      #expect(try written(store) == [])
      try store.checkpoint(TestStore.user)
      #expect(try written(store) == ["A: 1 -> 5", "B: 2 -> none"])
    }
  }

  @Test("what an owner could not write any more, the next one adds, with values")
  func killed() throws {
    try withSandbox { sandbox in
      sandbox.makeList(sandbox.config + "/d.plist", "dict(A=1)")
      do {
        let store = try open(sandbox)
        try commit(store, [.set("A", 2, .canonical)])
        store.history.record()
        try commit(store, [.set("A", 3, .canonical)])
        try commit(store, [.set("N", "x", .canonical)])
        store.unlock()
      }
      let next = try open(sandbox)
      #expect(try next.lists.find("A", at: TestStore.user)?.value == 3)
      #expect(try lines(next) == ["A: 1 -> 2", "A: 2 -> 3", "N: none -> x"])
      guard case .change(let last)? = try next.layout.history.entries().last else {
        Issue.record("no change")
        return
      }
      #expect(last.source.via == .command && last.number == 3)
      try next.checkpoint(TestStore.user)
      next.unlock()
      // Nothing is added twice.
      let third = try open(sandbox)
      _ = try third.lists.find("A", at: TestStore.user)
      #expect(try lines(third).count == 3)
    }
  }

  @Test(
    "a transaction whose owner is killed is one change, of whoever made it, in the order of time",
    arguments: [[0, 1], [1, 0], []])
  func killedTransaction(_ order: [Int]) throws {
    try withSandbox { sandbox in
      let lists = [TestStore.user, Location(.user, "e")]
      var source = ChangeSource(.declaration)
      (source.user, source.program) = (1000, "/usr/bin/defaults")
      do {
        let store = try open(sandbox)
        try commit(store, [.set("A", 1, .canonical)])
        let edits = lists.flatMap { list in
          ["A", "B"].map { Changeset.Item(list, .set($0, 2, .canonical)) }
        }
        _ = try store.commit(edits, by: Author(number: 1), from: source)
        try commit(store, [.set("A", 3, .canonical)])
        store.unlock()
      }
      let next = try open(sandbox)
      for index in order { _ = try next.lists.find("A", at: lists[index]) }
      next.history.record()
      let records = try next.layout.history.entries().compactMap { entry -> HistoryRecord? in
        guard case .change(let record) = entry else { return nil }
        return record
      }
      let items = records.map { Set($0.items.map { "\($0.location.domain) \($0.key)" }) }
      #expect(items == [["d A"], ["d A", "d B", "e A", "e B"], ["d A"]])
      #expect(records.map(\.source) == [ChangeSource(.command), source, ChangeSource(.command)])
    }
  }

  @Test(
    "what others changed in a list while there was no owner is in the history, and secrets are not")
  func seen() throws {
    try withSandbox { sandbox in
      let list = sandbox.config + "/d.plist"
      sandbox.makeList(list, "dict(A=1, B=2, Token='hunter1')")
      var store = try open(sandbox)
      _ = try store.lists.find("A", at: TestStore.user)
      #expect(try lines(store) == [])
      store.unlock()
      sandbox.makeList(list, "dict(A=5, C=3, Token='hunter2')")
      store = try open(sandbox)
      _ = store.history.report()
      #expect(try written(store) == ["A: 1 -> 5", "B: 2 -> none", "C: none -> 3"])
      guard case .change(let record)? = try store.layout.history.entries().last else {
        Issue.record("no change")
        return
      }
      #expect(record.source.via == .list && record.source.unit.hasPrefix("between "))
      try commit(store, [.set("A", 6, .canonical)])
      try store.checkpoint(TestStore.user)
      store.unlock()
      // What an owner has written is not another program's, though it was killed before it noted
      // it.
      store = try open(sandbox)
      _ = store.history.report()
      #expect(try written(store).count == 4)
      store.unlock()
      try FileManager.default.removeItem(atPath: list)
      store = try open(sandbox)
      _ = store.history.report()
      #expect(
        try written(store).suffix(3) == ["A: 6 -> none", "C: 3 -> none", "Token: not kept -> none"])
      #expect(sandbox.shell("grep -r hunter $XDG_STATE_HOME/*/*/history").output == "")
    }
  }

  @Test("another program's edit of a list is in the history, with values")
  func outside() throws {
    try withSandbox { sandbox in
      sandbox.makeList(sandbox.config + "/d.plist", "dict(A=1, B=2)")
      let store = try open(sandbox)
      _ = try store.lists.find("A", at: TestStore.user)
      sandbox.makeList(sandbox.config + "/d.plist", "dict(A=7, C=3)")
      store.lists.refresh(TestStore.user)
      #expect(try lines(store).sorted() == ["A: 1 -> 7", "B: 2 -> none", "C: none -> 3"])
    }
  }

  @Test(
    "appends of one program are one change until they are written, and cost no copy of the text")
  func appends() throws {
    try withSandbox { sandbox in
      let store = try open(sandbox)
      try commit(store, [.set("Log", "", .exact([]))])
      let append = { (base: Int, source: ChangeSource) in
        let splice = try #require(
          Splice(base: base, offset: base, bytes: [0x61], count: base + 1, isBare: true))
        try commit(store, [.splice("Log", splice)], from: source)
      }
      for base in 0..<3 { try append(base, ChangeSource(.command)) }
      try append(3, ChangeSource(.mount))
      // What was between two programs is a text that only the splices could tell.
      #expect(try lines(store) == ["Log: none -> not kept", "Log: not kept -> aaaa"])
      for base in 4..<6 { try append(base, ChangeSource(.mount)) }
      #expect(try lines(store).last == "Log: aaaa -> aaaaaa")
      try commit(store, [.remove("Log")])
      #expect(try lines(store).last == "Log: aaaaaa -> none")
    }
  }

  @Test(
    "of large values the size is kept, of secrets nothing, and no bytes of either are in a file")
  func notKept() throws {
    try withSandbox { sandbox in
      let store = try open(sandbox)
      let large = String(repeating: "z", count: 70_000)
      try commit(store, [.set("Large", .string(large), .canonical)])
      try commit(store, [.set("Password", "hunter2", .canonical)])
      try commit(store, [.set("Password", "hunter3", .canonical)])
      #expect(
        try lines(store) == [
          "Large: none -> 70000 bytes", "Password: none -> not kept",
          "Password: not kept -> not kept",
        ])
      let found = sandbox.shell("grep -rlE 'hunter|zzzz' \(store.layout.history.path)")
      #expect(found.output == "")
    }
  }

  @Test("a secret that is renamed, or a member of a value, is in no file of the history")
  func hidden() throws {
    try withSandbox { sandbox in
      let list = sandbox.config + "/d.plist"
      sandbox.makeList(list, "dict(P=dict(token='hunter1', a=1))")
      var store = try open(sandbox)
      _ = try store.lists.find("P", at: TestStore.user)
      _ = store.history.report()
      try commit(store, [.set("Password", "hunter2", .canonical)])
      try commit(store, [.remove("Password"), .set("Plain", "hunter2", .canonical)])
      #expect(
        try lines(store) == [
          "Password: none -> not kept", "Password: not kept -> none", "Plain: none -> not kept",
        ])
      store.unlock()
      sandbox.makeList(list, "dict(P=dict(token='hunter3', a=2))")
      store = try open(sandbox)
      _ = store.history.report()
      #expect(
        try written(store).contains(
          "P: { a = 1; token = \"(not kept)\"; } -> { a = 2; token = \"(not kept)\"; }"))
      #expect(sandbox.shell("grep -r hunter $XDG_STATE_HOME/*/*/history").output == "")
    }
  }

  @Test("a domain's removal is in the history key by key; chmod and mkdir are not")
  func domains() throws {
    try withSandbox { sandbox in
      sandbox.makeList(sandbox.config + "/d.plist", "dict(A=1, B=2)")
      let store = try open(sandbox)
      try commit(store, [.describe("A", Description(mode: 0o640))])
      _ = try store.commit([.init(Location(.user, "new"), .createDomain)])
      #expect(try lines(store) == [])
      try commit(store, [.removeDomain])
      #expect(try lines(store).sorted() == ["A: 1 -> none", "B: 2 -> none"])
    }
  }

  @Test("a transaction that changes a key twice is one change of it")
  func twice() throws {
    try withSandbox { sandbox in
      sandbox.makeList(sandbox.config + "/d.plist", "dict(A=1, B=2)")
      let store = try open(sandbox)
      try commit(
        store, [.set("A", 5, .canonical), .set("A", 6, .canonical), .set("B", 3, .canonical)])
      #expect(try lines(store) == ["A: 1 -> 6", "B: 2 -> 3"])
      // As `defaults delete` removes a domain.
      try commit(store, [.remove("A"), .remove("B"), .removeDomain])
      #expect(try lines(store).suffix(2).sorted() == ["A: 6 -> none", "B: 3 -> none"])
      try commit(store, [.set("A", 1, .canonical), .set("B", 2, .canonical)])
      try commit(store, [.remove("A"), .set("A", 7, .canonical), .removeDomain])
      #expect(try lines(store).suffix(2).sorted() == ["A: 1 -> none", "B: 2 -> none"])
      store.history.record()
    }
  }

  @Test("a list that is new is in the history, whether a reader or the watch sees it first")
  func newLists() throws {
    try withSandbox { sandbox in
      sandbox.makeList(sandbox.config + "/old.plist", "dict(Old=1)")
      var store = try open(sandbox)
      // Before the owner knows which lists there are, it tells of none that it is new.
      sandbox.makeList(sandbox.config + "/early.plist", "dict(Early=1)")
      _ = try store.lists.find("Early", at: Location(.user, "early"))
      store.lists.noteExisting()
      _ = try store.lists.find("Old", at: Location(.user, "old"))
      let (first, second) = (Location(.user, "first"), Location(.anyUser, "second"))
      let (third, fourth) = (Location(.managed, "third"), Location(.user, "fourth"))
      sandbox.makeList(store.layout.path(first), "dict(ReadFirst=1)")
      #expect(try store.lists.find("ReadFirst", at: first)?.value == 1)
      store.lists.refresh(first)
      sandbox.makeList(store.layout.path(second), "dict(SeenFirst=2)")
      store.lists.refresh(second)
      #expect(try store.lists.find("SeenFirst", at: second)?.value == 2)
      #expect(try lines(store).sorted() == ["ReadFirst: none -> 1", "SeenFirst: none -> 2"])
      sandbox.makeList(store.layout.path(third), "dict(ReadAndChanged=3)")
      #expect(try store.lists.find("ReadAndChanged", at: third)?.value == 3)
      sandbox.makeList(store.layout.path(third), "dict(ReadAndChanged=4)")
      store.lists.refresh(third)
      #expect(
        try lines(store).suffix(2) == ["ReadAndChanged: none -> 3", "ReadAndChanged: 3 -> 4"])
      // One that nobody has read before somebody asks for the history.
      sandbox.makeList(store.layout.path(fourth), "dict(NeverRead=5)")
      store.lists.refresh(fourth)
      _ = store.history.report()
      #expect(try lines(store).last == "NeverRead: none -> 5")
      store.unlock()
      // Nothing is added twice.
      store = try open(sandbox)
      store.lists.noteExisting()
      for location in [first, second, third, fourth] { try store.lists.load(location) }
      #expect(try lines(store).count == 5)
    }
  }

  @Test("Off removes what there is and keeps nothing; without it changes are kept again")
  func off() throws {
    try withSandbox { sandbox in
      let store = try open(sandbox)
      try commit(store, [.set("A", 1, .canonical)])
      #expect(try lines(store) == ["A: none -> 1"])
      let settings = Location(.user, .settings)
      let off = Edit.set(HistorySettings.key, ["Off": true], .canonical)
      _ = try store.commit([.init(settings, off)], by: Author(number: 1))
      #expect(try lines(store) == [])
      #expect(sandbox.shell("ls -d \(store.layout.history.path)").status != 0)
      try commit(store, [.set("A", 2, .canonical)])
      #expect(try lines(store) == [])
      _ = try store.commit([.init(settings, .remove(HistorySettings.key))], by: Author(number: 1))
      try commit(store, [.set("A", 3, .canonical)])
      #expect(try lines(store).last == "A: 2 -> 3")
    }
  }

  @Test("changes wait in bounded memory while the disk has no room, and nothing is refused")
  func fullDisk() throws {
    try withSandbox { sandbox in
      let store = try open(sandbox)
      let judge: Interposition.Judge = { call in
        call.path.contains("/history") ? .fail(.noSpace) : .proceed
      }
      try Interposition.with(judge) {
        for number in 1...5 {
          try commit(store, [.set("A", .integer(WideInteger(Int64(number))), .canonical)])
          store.history.record()
        }
      }
      #expect(try written(store) == [])
      #expect(
        try lines(store) == [
          "A: none -> 1", "A: 1 -> 2", "A: 2 -> 3", "A: 3 -> 4", "A: 4 -> 5",
        ])
    }
  }

  @Test("more changes than memory may have become one for each key and program, or a gap")
  func bounded() throws {
    try withSandbox { sandbox in
      let store = try open(sandbox)
      let text = String(repeating: "y", count: 60_000)
      for number in 0..<200 {
        try commit(store, [.set("A", .string("\(number)\(text)"), .canonical)])
      }
      let merged = try lines(store)
      #expect(merged.count < 100 && merged.first?.hasPrefix("A: none -> ") == true)
      for number in 0..<200 {
        try commit(store, [.set(Key("B\(number)"), .string("\(number)\(text)"), .canonical)])
      }
      #expect(try lines(store).contains("B0: none -> not kept"))
      // More keys at once than there is room for, and no change after them.
      let long = Value.string(String(repeating: "z", count: 1000))
      let many = (0..<40_000).map { Edit.set(Key("C\($0)"), long, .canonical) }
      try commit(store, many)
      #expect(try lines(store).last == "gap")
    }
  }

  @Test("without readable settings no value is kept; a store that is only read keeps no queue")
  func unreadableSettings() throws {
    try withSandbox { sandbox in
      sandbox.makeList(sandbox.config + "/d.plist", "dict(A=1)")
      sandbox.shell("echo '<junk' > $C/prefsfs.plist")
      let store = try open(sandbox)
      try commit(store, [.set("A", 5, .canonical)])
      #expect(try lines(store) == ["A: not kept -> not kept"])
      sandbox.shell("rm $C/prefsfs.plist")
      store.lists.refresh(Location(.user, .settings))
      try commit(store, [.set("A", 6, .canonical)])
      #expect(try lines(store).last == "A: 5 -> 6")
      let reader = try Store(TestStore.layout(sandbox), readOnly: true, keepsHistory: true) { _ in }
      _ = try? reader.lists.find("History", at: Location(.user, .settings))
      sandbox.makeList(sandbox.config + "/prefsfs.plist", "dict(X=1)")
      reader.lists.refresh(Location(.user, .settings))
      #expect(reader.history.deadline == nil)
    }
  }

  @Test("what is written after the directory was removed is in a new one")
  func removed() throws {
    try withSandbox { sandbox in
      let store = try open(sandbox)
      let files = { sandbox.shell("ls \(store.layout.history.path)/seen | wc -l").output }
      try commit(store, [.set("A", 1, .canonical)])
      try store.checkpoint(TestStore.user)
      #expect(try lines(store) == ["A: none -> 1"] && files() == "1\n")
      sandbox.shell("rm -r \(store.layout.history.path)")
      try commit(store, [.set("A", 2, .canonical)])
      try store.checkpoint(TestStore.user)
      #expect(try lines(store) == ["A: 1 -> 2"] && files() == "1\n")
    }
  }

  @Test("what a new key's creator wrote is not added again by the next owner")
  func createdOnce() throws {
    try withSandbox { sandbox in
      do {
        let store = try open(sandbox)
        try commit(store, [.set("N", "", .exact([]))])
        try commit(store, [.set("N", 4, .canonical)])
        store.history.record()
        store.unlock()
      }
      let next = try open(sandbox)
      #expect(try next.lists.find("N", at: TestStore.user)?.value == 4)
      #expect(try lines(next) == ["N: none -> 4"])
    }
  }
}
