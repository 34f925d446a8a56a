import Foundation
import PreferenceModel
import PropertyList
import Support
import SystemCalls
import Testing

@testable import PreferenceStore

@Suite("Store: large lists, which are kept packed") struct PackedListTests {
  private static let count = PackedDictionary.least + 100
  private static let list = "{**{f'Key number {i}': i for i in range(\(count))}, 'List': [1, 2]}"

  private func withStore(
    format: String = "BINARY", _ body: (Sandbox, TestStore) throws -> Void
  ) throws {
    try withSandbox { sandbox in
      sandbox.makeList(sandbox.config + "/d.plist", Self.list, format: format)
      try body(sandbox, try TestStore(sandbox))
    }
  }

  private func isPacked(_ test: TestStore) throws -> Bool {
    try test.store.lists.snapshot(of: TestStore.user).base.values.isPacked
  }

  @Test(
    "a list that is changed and rewritten loses nothing, and stays packed",
    arguments: ["BINARY", "XML"])
  func rewritten(_ format: String) throws {
    try withStore(format: format) { (sandbox: Sandbox, test: TestStore) throws -> Void in
      #expect(try test.get("Key number 7") == 7 && test.get("List") == [1, 2])
      #expect(try test.get("Key number") == nil && isPacked(test))
      try test.set("Key number 7", "changed")
      try test.set("New", 1)
      _ = try test.store.commit([Changeset.Item(TestStore.user, .remove("Key number 8"))])
      #expect(try isPacked(test) && test.get("Key number 7") == "changed")
      try test.store.checkpoint(TestStore.user)
      #expect(try isPacked(test) && test.get("Key number 7") == "changed")
      #expect(try test.get("Key number 8") == nil && test.get("New") == 1)
      #expect(try test.store.lists.snapshot(of: TestStore.user).keys.count == Self.count + 1)
      let judged =
        "d == {**{k: v for k, v in \(Self.list).items() if k != 'Key number 8'}, "
        + "'Key number 7': 'changed', 'New': 1}"
      #expect(sandbox.evaluate(test.list, judged) == "True")
      let fresh = try Store(TestStore.layout(sandbox), readOnly: true) { _ in }
      #expect(try fresh.lists.find("Key number 7", at: TestStore.user)?.value == "changed")
    }
  }

  @Test("another program's change of the list is seen key by key")
  func outside() throws {
    try withStore { (sandbox: Sandbox, test: TestStore) throws -> Void in
      try test.set("Key number 3", "ours")
      sandbox.makeList(test.list, "{**\(Self.list), 'Key number 5': 'theirs', 'Other': 1}")
      test.store.lists.refresh(TestStore.user)
      let keys = test.pendingNotices.last?.changeset.items.compactMap { $0.edit.key }
      #expect(Set(keys ?? []) == ["Key number 5", "Other"])
      #expect(try test.get("Key number 3") == "ours" && test.get("Key number 5") == "theirs")
      try test.store.checkpoint(TestStore.user)
      #expect(
        sandbox.evaluate(test.list, "d['Key number 3'], d['Key number 5'], d['Other'], len(d)")
          == "ours theirs 1 \(Self.count + 2)")
    }
  }

  @Test("a list that is damaged in one key of many lacks that key alone")
  func damaged() throws {
    try withStore { (sandbox: Sandbox, test: TestStore) throws -> Void in
      var bytes = try #require(FileManager.default.contents(atPath: test.list))
      // The first byte of a key's string: 0xC1 is a set of one object, which no key can be.
      let key = try #require(bytes.range(of: Data("Key number 9".utf8)))
      bytes[key.lowerBound - 1] = 0xC1
      try bytes.write(to: URL(fileURLWithPath: test.list))
      #expect(try test.get("Key number 7") == 7 && test.get("Key number 9") == nil)
      try test.set("Key number 7", 8)
      try test.store.checkpoint(TestStore.user)
      let fresh = try Store(TestStore.layout(sandbox), readOnly: true) { _ in }
      #expect(try fresh.lists.find("Key number 7", at: TestStore.user)?.value == 8)
    }
  }

  @Test("a key with a byte that is not ASCII is the Latin-1 character")
  func oddKey() throws {
    try withStore { (sandbox: Sandbox, test: TestStore) throws -> Void in
      var bytes = try #require(FileManager.default.contents(atPath: test.list))
      let key = try #require(bytes.range(of: Data("Key number 99".utf8)))
      bytes[key.lowerBound] = 0xE9
      try bytes.write(to: URL(fileURLWithPath: test.list))
      #expect(try isPacked(test) && test.get("éey number 99") == 99)
      #expect(try test.get("Key number 99") == nil && test.get("Key number 98") == 98)
    }
  }
}
