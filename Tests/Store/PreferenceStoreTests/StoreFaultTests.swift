import Foundation
import PreferenceModel
import PropertyList
import StoreAccess
import Support
import Synchronization
import Testing

@testable import PreferenceStore
@testable import SystemCalls

@Suite("Store: faults") struct StoreFaultTests {
  @Test("a lock file that is removed alone is made anew, and the journal goes on")
  func removedLock() throws {
    try withSandbox { sandbox in
      let state = sandbox.state + "/s"
      do {
        let test = try TestStore(sandbox)
        try test.set("K", 1)
        try FileManager.default.removeItem(atPath: state + "/lock")
        try test.store.revive()
        #expect(FileManager.default.fileExists(atPath: state + "/lock"))
        #expect(try journals(state) == ["journal.1"])
      }
      let test = try TestStore(sandbox)
      #expect(try test.get("K") == 1)
    }
  }

  @Test("older journal files that stay when the newest is removed do not undo later changes")
  func removedNewest() throws {
    try withSandbox { sandbox in
      let state = sandbox.state + "/s"
      do {
        let test = try TestStore(sandbox)
        try test.set("Old", 1)
        try test.set("Elsewhere", 1, Location(.user, "e"))
      }
      do {
        let test = try TestStore(sandbox)
        // Only one of the replayed lists is read.
        try test.set("Old", 2)
        #expect(try journals(state).count == 2)
        try FileManager.default.removeItem(atPath: state + "/journal.2")
        try test.store.revive()
        try test.store.checkpoint(TestStore.user)
        #expect(sandbox.evaluate(test.list, "d['Old']") == "2")
      }
      // A change of another program is not undone by what is replayed.
      sandbox.makeList(sandbox.config + "/d.plist", "dict(Old=3)")
      let test = try TestStore(sandbox)
      #expect(try test.get("Old") == 3)
      #expect(try test.get("Elsewhere", Location(.user, "e")) == 1)
    }
  }

  @Test("replayed changes that nobody has read survive a state directory that is removed")
  func removedBeforeReading() throws {
    try withSandbox { sandbox in
      let state = sandbox.state + "/s"
      try TestStore(sandbox).set("K", 1)
      do {
        let test = try TestStore(sandbox)
        try test.set("Other", 1, Location(.user, "e"))
        try FileManager.default.removeItem(atPath: state)
        try test.store.revive()
      }
      let test = try TestStore(sandbox)
      #expect(try test.get("K") == 1)
      #expect(try test.get("Other", Location(.user, "e")) == 1)
    }
  }

  @Test(
    "a request that may be repeated undoes nothing when the state directory was removed",
    arguments: [false, true])
  func requestedBeforeRemoval(_ hasUnsaved: Bool) throws {
    try withSandbox { sandbox in
      do {
        let test = try TestStore(sandbox)
        try test.set("K", 1)
        let removal = Changeset.Item(TestStore.user, .remove("K"))
        _ = try test.store.commit([removal], origin: Origin(client: 1, serial: 1))
        try test.set("K", 2)
        try test.store.checkpoint(TestStore.user)
        if hasUnsaved { try test.set("J", 3) }
        try FileManager.default.removeItem(atPath: sandbox.state + "/s")
        try test.store.revive()
      }
      let test = try TestStore(sandbox)
      #expect(try test.get("K") == 2)
      #expect(try test.get("J") == (hasUnsaved ? 3 : nil))
      #expect(test.store.outcome(of: Origin(client: 1, serial: 1)) != nil)
    }
  }

  @Test("a request that may be repeated keeps its own journal file, not those of earlier owners")
  func releasedAlone() throws {
    try withSandbox { sandbox in
      let state = sandbox.state + "/s"
      for number: Value in [1, 2, 3] { try TestStore(sandbox).set("K", number) }
      let origin = Origin(client: 1, serial: 1)
      let item = Changeset.Item(TestStore.user, .set("Asked", 1, .canonical))
      _ = try TestStore(sandbox).store.commit([item], origin: origin)
      let test = try TestStore(sandbox)
      #expect(try test.get("K") == 3)
      try test.store.checkpoint(TestStore.user)
      // The fifth owner's own file says that the list has the records.
      #expect(try journals(state) == ["journal.4", "journal.5"])
    }
  }

  private func journals(_ directory: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: directory)
      .filter { $0.hasPrefix("journal.") }.sorted()
  }

  @Test("a state directory that another owner took is logged once, and the journal made once")
  func revivedBesideAnother() throws {
    try withSandbox { sandbox in
      let test = try TestStore(sandbox)
      try test.set("K", 1)
      try FileManager.default.removeItem(atPath: sandbox.state + "/s")
      let other = try TestStore(sandbox)
      try other.set("Other", 1)
      for _ in 0..<3 { try test.store.revive() }
      #expect(test.lines.all.count { $0.contains("second process may be writing") } == 1)
      #expect(test.lines.all.count { $0.contains("made anew") } == 1)
      let names = try FileManager.default.contentsOfDirectory(atPath: sandbox.state + "/s")
      #expect(names.count { $0.hasPrefix("journal.") } == 2)
      #expect(try test.get("K") == 1)
    }
  }

  @Test("a state directory that cannot be made anew is tried again, and nothing is lost")
  func revivedLater() throws {
    try withSandbox { sandbox in
      let state = sandbox.state + "/s"
      do {
        let test = try TestStore(sandbox)
        try test.set("K", 1)
        sandbox.shell("rm -r \(state); touch \(state)")
        #expect(throws: SystemError.self) { try test.store.revive() }
        try test.set("K", 2)
        try FileManager.default.removeItem(atPath: state)
        try test.store.revive()
        #expect { try TestStore(sandbox) } throws: { ($0 as? EngineError)?.reason == .owned }
      }
      #expect(try TestStore(sandbox).get("K") == 2)
    }
  }

  @Test("a list that cannot be saved does not make the journal grow, and loses nothing")
  func stuck() throws {
    try withSandbox { sandbox in
      let state = sandbox.state + "/s"
      let (stuck, other) = (Location(.user, "stuck"), Location(.user, "other"))
      /// Makes 40 MiB of records of another list, and returns the bytes of the journal then.
      func grow(_ test: TestStore) throws -> Int {
        for round in 0..<40 {
          let text = String(repeating: "\(round % 10)", count: 1 << 20)
          try test.set("Large", .string(text), other)
          try test.store.checkpoint(other)
        }
        return try journals(state).reduce(0) { sum, name in
          let attributes = try FileManager.default.attributesOfItem(atPath: "\(state)/\(name)")
          return sum + (attributes[.size] as? Int ?? 0)
        }
      }
      let time = Timestamp(nanoseconds: 1_000_000_000)
      do {
        let test = try TestStore(sandbox)
        try test.set("K", 1, stuck)
        let description = Description(mode: 0o400, modified: time)
        _ = try test.store.commit([.init(stuck, .describe("K", description))])
        // Two values of one key, of which only the last may come back.
        for number: Value in [1, 2] { try test.set("L", number, stuck) }
        try Data("damaged".utf8).write(to: URL(fileURLWithPath: test.store.layout.path(stuck)))
        #expect(throws: EngineError.self) { try test.store.checkpoint(stuck) }
        #expect(try grow(test) < 20 << 20)
      }
      do {
        // The next owner cannot read the list: the changes are replayed, and wait for it.
        let test = try TestStore(sandbox)
        #expect(throws: EngineError.self) { try test.get("K", stuck) }
        #expect(try grow(test) < 20 << 20)
        try FileManager.default.removeItem(atPath: test.store.layout.path(stuck))
      }
      let test = try TestStore(sandbox)
      #expect(try test.get("K", stuck) == 1)
      #expect(try test.get("L", stuck) == 2)
      let entry = try test.store.lists.find("K", at: stuck)
      #expect(entry?.metadata.mode == 0o400 && entry?.modified == time)
    }
  }

  @Test("a directory of lists that was there and is gone is an error until it is there again")
  func goneHome() throws {
    try withSandbox { sandbox in
      let (files, fresh) = (FileManager.default, Location(.user, "fresh"))
      let (moved, state) = (sandbox.root + "/moved", sandbox.state + "/s")
      sandbox.makeList(sandbox.config + "/d.plist", "dict(K=1)")
      let test = try TestStore(sandbox)
      #expect(try test.get("K") == 1)
      try test.set("K", 2)
      try files.moveItem(atPath: sandbox.config, toPath: moved)
      test.store.lists.refresh(TestStore.user)
      #expect(throws: EngineError.self) { try test.get("K") }
      #expect(throws: EngineError.self) { try test.get("K", fresh) }
      #expect(throws: EngineError.self) { try test.set("K", 1, fresh) }
      #expect(throws: EngineError.self) { try test.store.checkpoint(TestStore.user) }
      try files.removeItem(atPath: state)
      #expect(throws: SystemError.self) { try test.store.revive() }
      #expect(!files.fileExists(atPath: sandbox.config) && !files.fileExists(atPath: state))
      try files.moveItem(atPath: moved, toPath: sandbox.config)
      try test.store.revive()
      test.store.lists.refresh(TestStore.user)
      #expect(try test.get("K") == 2)
      #expect(try test.get("K", fresh) == nil)
      try test.store.checkpoint(TestStore.user)
      #expect(sandbox.evaluate(test.list, "d['K']") == "2")
    }
  }

  @Test("a directory of lists that is awaited is an error until it is there")
  func awaitedHome() throws {
    try withSandbox { sandbox in
      let moved = sandbox.root + "/moved"
      sandbox.makeList(sandbox.config + "/d.plist", "dict(K=1)")
      try FileManager.default.moveItem(atPath: sandbox.config, toPath: moved)
      let store = try Store(TestStore.layout(sandbox), readOnly: true, awaitsHome: true) { _ in }
      #expect(throws: EngineError.self) { try store.lists.find("K", at: TestStore.user) }
      #expect(try store.lists.find("K", at: Location(.managed, "d")) == nil)
      try FileManager.default.moveItem(atPath: moved, toPath: sandbox.config)
      store.lists.refresh(TestStore.user)
      #expect(try store.lists.find("K", at: TestStore.user)?.value == 1)
    }
  }

  @Test("a store whose directory of lists was never there makes it")
  func newHome() throws {
    try withSandbox { sandbox in
      try FileManager.default.removeItem(atPath: sandbox.config)
      let test = try TestStore(sandbox)
      try test.set("K", 1)
      try test.store.checkpoint(TestStore.user)
      #expect(sandbox.evaluate(test.list, "d['K']") == "1")
    }
  }

  @Test("a second owner is told which process has the store")
  func lock() throws {
    try withSandbox { sandbox in
      let first = try TestStore(sandbox)
      #expect { try TestStore(sandbox) } throws: { error in
        (error as? EngineError)?.reason == .owned && "\(error)".contains("\(getpid())")
      }
      _ = first
    }
  }

  @Test(
    "a list that is no regular file is left alone, and never waited for",
    arguments: ["mkfifo", "mkdir", "ln -s /dev/null"])
  func noRegularFile(_ command: String) throws {
    try withSandbox { sandbox in
      sandbox.shell("\(command) \(sandbox.config)/d.plist")
      let test = try TestStore(sandbox)
      #expect(throws: EngineError.self) { try test.get("K") }
      #expect(throws: EngineError.self) { try test.set("K", 1) }
      #expect(sandbox.shell("test -c /dev/null").status == 0)
    }
  }

  @Test("every value that is accepted can be read back from its list, however deep it is")
  func depth() throws {
    for depth in [499, 500, 501, 512] {
      let text = Array(
        (String(repeating: "[", count: depth) + String(repeating: "]", count: depth)).utf8)
      guard let value = Recogniser.value(of: text, kind: .array) else { continue }
      #expect(
        try Document.read(Document.binary(.dictionary(["K": value]))).value
          == .dictionary(["K": value]))
      #expect(depth <= 500)
    }
  }

  /// Runs the body with a tmpfs of 256 KiB, which takes root.
  private func withSmallDisk(_ body: (Sandbox, String) throws -> Void) throws {
    try withSandbox { sandbox in
      let disk = sandbox.root + "/disk"
      let made = sandbox.shell("mkdir \(disk) && mount -t tmpfs -o size=256k none \(disk)")
      try #require(made.status == 0, "\(made.errors)")
      defer { sandbox.shell("umount -l \(disk)") }
      try body(sandbox, disk)
    }
  }

  @Test("with a full disk a change is ENOSPC, changes nothing, and works when there is room")
  func diskFull() throws {
    try withSmallDisk { sandbox, disk in
      for (user, state) in [(disk + "/c", sandbox.state + "/1"), (sandbox.config, disk + "/s")] {
        sandbox.shell("mkdir -p \(user) \(state)")
        let layout = StoreLayout(
          userDirectory: user, systemDirectory: sandbox.system, stateDirectory: state,
          hostIdentifier: "H", userName: "")
        let store = try Store(layout) { _ in }
        let location = Location(.user, "d")
        _ = try store.commit([Changeset.Item(location, .set("K", "old", .canonical))])
        try store.checkpoint(location)
        sandbox.shell("dd if=/dev/zero of=\(disk)/fill bs=4k 2>/dev/null")
        let big = Value.string(String(repeating: "x", count: 100_000))
        #expect {
          try store.commit([Changeset.Item(location, .set("K", big, .canonical))])
        } throws: { error in
          (error as? EngineError)?.reason == .system(.noSpace)
        }
        #expect(try store.lists.find("K", at: location)?.value == "old")
        sandbox.shell("rm \(disk)/fill")
        _ = try store.commit([Changeset.Item(location, .set("K", "new", .canonical))])
        try store.checkpoint(location)
        #expect(sandbox.evaluate(user + "/d.plist", "d['K']") == "new")
      }
    }
  }

  @Test("whether a disk that was full has room is asked again for a change, a moment later")
  func roomAgain() throws {
    try withSmallDisk { sandbox, disk in
      let layout = StoreLayout(
        userDirectory: disk, systemDirectory: sandbox.system, stateDirectory: sandbox.state + "/s",
        hostIdentifier: "H", userName: "")
      let location = Location(.user, "d")
      let store = try Store(layout) { _ in }
      _ = try store.commit([Changeset.Item(location, .set("K", "old", .canonical))])
      try store.checkpoint(location)
      sandbox.shell("dd if=/dev/zero of=\(disk)/fill bs=4k 2>/dev/null")
      store.prepare(location)
      #expect {
        try store.commit([Changeset.Item(location, .set("K", "new", .canonical))])
      } throws: { error in
        (error as? EngineError)?.reason == .system(.noSpace)
      }
      sandbox.shell("rm \(disk)/fill; sleep 0.06")
      #expect(!store.isPrepared(location))
      store.prepare(location)
      #expect(store.isPrepared(location))
      _ = try store.commit([Changeset.Item(location, .set("K", "new", .canonical))])
      try store.checkpoint(location)
      #expect(sandbox.evaluate(disk + "/d.plist", "d['K']") == "new")
    }
  }

  @Test("a change of many lists asks no disk for the first, which was checked 0.6 s before")
  func longChange() throws {
    try withSmallDisk { sandbox, disk in
      let layout = StoreLayout(
        userDirectory: disk, systemDirectory: sandbox.system, stateDirectory: sandbox.state + "/s",
        hostIdentifier: "H", userName: "")
      let location = Location(.user, "d")
      let store = try Store(layout) { _ in }
      store.prepare(location)
      sandbox.shell("dd if=/dev/zero of=\(disk)/fill bs=4k 2>/dev/null; sleep 0.6")
      // A change that begins now looks again.
      #expect(!store.isPrepared(location))
      _ = try store.commit([Changeset.Item(location, .set("K", "new", .canonical))])
      sandbox.shell("rm \(disk)/fill")
      try store.checkpoint(location)
      #expect(sandbox.evaluate(disk + "/d.plist", "d['K']") == "new")
    }
  }

  @Test("a rewrite that fails for lack of room keeps list and journal")
  func rewriteFails() throws {
    try withSmallDisk { sandbox, disk in
      let layout = StoreLayout(
        userDirectory: disk, systemDirectory: sandbox.system, stateDirectory: sandbox.state + "/s",
        hostIdentifier: "H", userName: "")
      let location = Location(.user, "d")
      do {
        let store = try Store(layout) { _ in }
        _ = try store.commit([Changeset.Item(location, .set("K", "old", .canonical))])
        try store.checkpoint(location)
        _ = try store.commit([
          Changeset.Item(
            location, .set("K", .string(String(repeating: "x", count: 300_000)), .canonical))
        ])
        #expect(throws: EngineError.self) { try store.checkpoint(location) }
        #expect(sandbox.evaluate(disk + "/d.plist", "d['K']") == "old")
        #expect(sandbox.shell("ls -A \(disk)").output == "d.plist\n")
      }
      let store = try Store(layout) { _ in }
      #expect(
        try store.lists.find("K", at: location)?.value
          == .string(String(repeating: "x", count: 300_000)))
      sandbox.shell("mount -o remount,size=4m \(disk)")
      for (location, _) in store.unsaved() { try store.checkpoint(location) }
      #expect(sandbox.evaluate(disk + "/d.plist", "len(d['K'])") == "300000")
    }
  }
}
