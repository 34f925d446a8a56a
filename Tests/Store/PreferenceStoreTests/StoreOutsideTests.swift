import Foundation
import PreferenceModel
import PropertyList
import Support
import Synchronization
import Testing

@testable import PreferenceStore
@testable import SystemCalls

@Suite("Store: outside edits") struct StoreOutsideTests {
  private func edit(_ test: TestStore, _ python: String) {
    test.sandbox.makeList(test.list, python)
  }

  @Test("a list that was removed and is put back is read as it is", arguments: [true, false])
  func putBack(_ isSeen: Bool) throws {
    try withSandbox { sandbox in
      sandbox.makeList(sandbox.config + "/d.plist", "dict(a=1, b=2)")
      let test = try TestStore(sandbox)
      #expect(try test.get("a") == 1)
      sandbox.shell("cp $C/d.plist $C/../back")
      _ = try test.store.commit([.init(TestStore.user, .remove("a"))])
      try test.store.checkpoint(TestStore.user)
      sandbox.shell("rm $C/d.plist")
      // The writer may see that it is gone, or only the list that is there again.
      if isSeen { test.store.lists.refresh(TestStore.user) }
      sandbox.shell("cp $C/../back $C/d.plist")
      test.store.lists.refresh(TestStore.user)
      #expect(try test.get("a") == 1 && test.get("b") == 2)
      #expect(test.store.unsaved().isEmpty)
    }
  }

  @Test("a value that cannot be read hides its key alone, and is written back byte for byte")
  func hiddenValue() throws {
    try withSandbox { sandbox in
      let path = sandbox.config + "/d.plist"
      let list = """
        <plist version="1.0">
        <dict>
          <key>Bad</key><integer>five</integer>
          <key>Good</key> <integer>1</integer>
        </dict>
        </plist>

        """
      let read = {
        String(decoding: try Data(contentsOf: URL(fileURLWithPath: path)), as: UTF8.self)
      }
      try Data(list.utf8).write(to: URL(fileURLWithPath: path))
      let test = try TestStore(sandbox)
      #expect(try test.get("Good") == 1 && test.get("Bad") == nil)
      _ = try test.store.commit([.init(TestStore.user, .set("Good", 2, .canonical))])
      try test.store.checkpoint(TestStore.user)
      #expect(try read() == list.replacingOccurrences(of: "<integer>1<", with: "<integer>2<"))
      // A date with a fraction of a second is in no XML list; the hidden value stays nevertheless.
      let date = Value.date(AbsoluteTime(seconds: 0.5))
      _ = try test.store.commit([.init(TestStore.user, .set("Date", date, .canonical))])
      try test.store.checkpoint(TestStore.user)
      #expect(try read().contains("<integer>five</integer>"))
      _ = try test.store.commit([.init(TestStore.user, .set("Bad", 5, .canonical))])
      try test.store.checkpoint(TestStore.user)
      #expect(try !read().contains("five") && test.get("Bad") == 5)
      // A policy that is not whole is none.
      let policy = "\(sandbox.system)/managed/p.plist"
      try Data(list.utf8).write(to: URL(fileURLWithPath: policy))
      #expect(throws: EngineError.self) {
        try test.store.lists.find("Good", at: Location(.managed, "p"))
      }
    }
  }

  /// A list with the keys `Good`, which is 1, and `Bad`, which cannot be read; and what a list that
  /// is written anew has of `Bad`.
  private static let badLists: [(format: String, list: [UInt8], kept: [UInt8])] = [
    (
      "binary",
      // A dictionary of 1 and a UUID.
      Array("bplist00".utf8) + [0xD2, 1, 3, 2, 4, 0x54] + Array("Good".utf8) + [0x10, 1, 0x53]
        + Array("Bad".utf8) + [0x0E] + Array(1...16) + [8, 13, 18, 20, 24]
        + [0, 0, 0, 0, 0, 0, 1, 1] + [0, 0, 0, 0, 0, 0, 0, 5] + [0, 0, 0, 0, 0, 0, 0, 0]
        + [0, 0, 0, 0, 0, 0, 0, 41],
      [0x0E] + Array(1...16)
    ),
    ("old-style", Array("{ Bad = <0g>; Good = <*I1>; }".utf8), Array("[CDATA[<0g>]]".utf8)),
    ("JSON", Array("{\"Bad\": null, \"Good\": 1}".utf8), Array("\"Bad\": null".utf8)),
  ]

  @Test("in each format, such a value is kept by every rewrite, until its key is set")
  func hiddenValues() throws {
    for (format, list, kept) in Self.badLists {
      try withSandbox { sandbox in
        let file = URL(fileURLWithPath: sandbox.config + "/d.plist")
        try Data(list).write(to: file)
        // The next owner knows of it, too.
        for number: Value in [2, 3] {
          let test = try TestStore(sandbox)
          #expect(try test.get("Good") != nil && test.get("Bad") == nil, "\(format)")
          _ = try test.store.commit([.init(TestStore.user, .set("Good", number, .canonical))])
          try test.store.checkpoint(TestStore.user)
          #expect(try Data(contentsOf: file).range(of: Data(kept)) != nil, "\(format)")
        }
        let test = try TestStore(sandbox)
        _ = try test.store.commit([.init(TestStore.user, .set("Bad", "new", .canonical))])
        try test.store.checkpoint(TestStore.user)
        #expect(try Data(contentsOf: file).range(of: Data(kept)) == nil, "\(format)")
        #expect(try test.get("Good") == 3 && test.get("Bad") == "new", "\(format)")
      }
    }
  }

  @Test("strings of a binary list that are not Unicode keep their bytes until their key is set")
  func oddStrings() throws {
    try withSandbox { sandbox in
      // U+4E3C and U+4E3D become halves of surrogate pairs.
      let script = """
        import plistlib, sys
        value = {'Odd': 'a\\u4e3c', 'Deep': [{'k\\u4e3d': 1}], 'K': 1}
        data = plistlib.dumps(value, fmt=plistlib.FMT_BINARY)
        open(sys.argv[1], 'wb').write(data.replace(b'\\x4e', b'\\xd8'))
        """
      sandbox.shell("/usr/bin/python3 -c \"\(script)\" \(sandbox.config)/d.plist")
      let test = try TestStore(sandbox)
      #expect(try test.get("Odd") == "a\u{FFFD}")
      let halves = { () -> [Bool] in
        let list = Data(try Data(contentsOf: URL(fileURLWithPath: test.list)))
        return [[0xD8, 0x3C], [0xD8, 0x3D]].map { list.firstRange(of: Data($0)) != nil }
      }
      #expect(try halves() == [true, true])
      for (key, kept) in [("K", true), ("New", true), ("Odd", false)] {
        _ = try test.store.commit([.init(TestStore.user, .set(Key(key), "x", .canonical))])
        try test.store.checkpoint(TestStore.user)
        #expect(try halves() == [kept, true], "\(key)")
      }
      let fresh = try Store(TestStore.layout(sandbox), readOnly: true) { _ in }
      #expect(try fresh.lists.find("Deep", at: TestStore.user)?.value == [["k\u{FFFD}": 1]])
    }
  }

  @Test("chmod of a key does not win over another program's value")
  func described() throws {
    try withSandbox { sandbox in
      sandbox.makeList(sandbox.config + "/d.plist", "dict(K=1)")
      let test = try TestStore(sandbox)
      _ = try test.get("K")
      let describe = Edit.describe("K", Description(mode: 0o640))
      _ = try test.store.commit([Changeset.Item(TestStore.user, describe)])
      edit(test, "dict(K=2)")
      test.store.lists.refresh(TestStore.user)
      #expect(test.pendingNotices.last?.changeset.items.count == 1)
      #expect(try test.get("K") == 2)
      try test.store.checkpoint(TestStore.user)
      #expect(try test.get("K") == 2)
      #expect(sandbox.evaluate(test.list, "d['K']") == "2")
      #expect(try test.store.lists.find("K", at: TestStore.user)?.metadata.mode == 0o640)
      let fresh = try Store(TestStore.layout(sandbox), readOnly: true) { _ in }
      #expect(try fresh.lists.find("K", at: TestStore.user)?.metadata.mode == 0o640)
    }
  }

  @Test("when a key was last changed is kept, whatever time is set, and never goes back")
  func lastChanged() throws {
    try withSandbox { sandbox in
      let test = try TestStore(sandbox)
      func kept(_ store: Store) throws -> Metadata {
        try #require(try store.lists.find("K", at: TestStore.user)?.metadata)
      }
      func describe(_ description: Description) throws -> Timestamp {
        let item = Changeset.Item(TestStore.user, .describe("K", description))
        return try test.store.commit([item]).change.time
      }
      try test.set("K", 1)
      #expect(try kept(test.store).changed == nil)
      let old = Timestamp(nanoseconds: 1_000_000_000)
      let first = try describe(Description(modified: old))
      #expect(try kept(test.store).modified == old && kept(test.store).lastChanged == first)
      try test.store.checkpoint(TestStore.user)
      let fresh = try Store(TestStore.layout(sandbox), readOnly: true) { _ in }
      #expect(try kept(fresh).modified == old && kept(fresh).lastChanged == first)
      // The same again, which changes nothing else.
      let second = try describe(Description(modified: old))
      #expect(try second > first && kept(test.store).lastChanged == second)
      // Another program puts an old list in the place of this one.
      try test.store.checkpoint(TestStore.user)
      sandbox.makeList(sandbox.config + "/new", "dict(K=2)")
      sandbox.shell("touch -d 2001-01-01 $C/new; mv $C/new $C/d.plist")
      test.store.lists.refresh(TestStore.user)
      #expect(try test.get("K") == 2 && kept(test.store).lastChanged > second)
    }
  }

  @Test("an edit that undoes our change is undone, published, and stays so after a crash")
  func stale() throws {
    try withSandbox { sandbox in
      sandbox.makeList(sandbox.config + "/d.plist", "dict(K=1, Other=1)")
      do {
        let test = try TestStore(sandbox)
        try test.set("K", 2)
        try test.store.checkpoint(TestStore.user)
        edit(test, "dict(K=1, Other=5)")
        test.store.lists.refresh(TestStore.user)
        #expect(test.pendingNotices.suffix(2).map(\.changeset.items.count) == [1, 1])
        #expect(try test.get("K") == 2)
        #expect(try test.get("Other") == 5)
        // Our value is unsaved again, so that it wins over any edit.
        edit(test, "dict(K=7, Other=5)")
        test.store.lists.refresh(TestStore.user)
        try test.store.checkpoint(TestStore.user)
        #expect(sandbox.evaluate(test.list, "d['K']") == "2")
      }
      #expect(try TestStore(sandbox).get("K") == 2)
    }
  }

  @Test("another program's edit just before our rename is merged")
  func race() throws {
    try withSandbox { sandbox in
      sandbox.makeList(sandbox.config + "/d.plist", "dict(K=1, Other=1)")
      let test = try TestStore(sandbox)
      try test.set("K", 2)
      let edits = Mutex(0)
      let list = test.list
      try Interposition.with({ call in
        // The new list is synchronised just before it is renamed.
        if call.name == "fsync", call.path.hasPrefix(sandbox.config),
          edits.withLock({
            $0 += 1; return $0
          }) == 1
        {
          sandbox.makeList(list, "dict(K=1, Other=9)")
        }
        return .proceed
      }) { try test.store.checkpoint(TestStore.user) }
      #expect(sandbox.evaluate(test.list, "d['K'], d['Other']") == "2 9")
      #expect(try test.get("Other") == 9)
    }
  }

  @Test("what is read of a damaged journal is at once in a journal again")
  func damage() throws {
    try withSandbox { sandbox in
      do {
        let test = try TestStore(sandbox)
        for number in 0..<4 {
          try test.set(Key("K\(number)"), .integer(WideInteger(Int64(number))))
        }
      }
      let state = sandbox.state + "/s"
      let path = state + "/journal.1"
      var bytes = Array(try Data(contentsOf: URL(fileURLWithPath: path)))
      bytes[bytes.count - 100] ^= 0xFF
      try Data(bytes).write(to: URL(fileURLWithPath: path))
      for _ in 0..<2 {
        let test = try TestStore(sandbox)
        #expect(try test.get("K0") == 0)
        #expect(FileManager.default.fileExists(atPath: state + "/damaged.1"))
      }
    }
  }
}
