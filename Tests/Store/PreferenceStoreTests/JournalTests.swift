import Foundation
import PreferenceModel
import PropertyList
import Support
import Testing

@testable import PreferenceStore
@testable import SystemCalls

@Suite("Journal") struct JournalTests {
  @Test("checksums are those of RFC 3720 (CRC-32C)")
  func checksum() {
    #expect(Checksum.crc32c(Array("123456789".utf8)[...]) == 0xE306_9283)
    #expect(Checksum.crc32c([UInt8](repeating: 0, count: 32)[...]) == 0x8A91_36AA)
    #expect(Checksum.crc32c(Array((0..<32).map { UInt8($0) })[...]) == 0x46DD_794E)
    #expect(Checksum.crc32c([]) == 0)
  }

  @Test(
    "a text in pieces takes its length in the journal, and is replayed", arguments: [true, false])
  func growth(_ isString: Bool) throws {
    try withSandbox { sandbox in
      let piece = [UInt8](repeating: 0x61, count: 1000)
      var bytes: [UInt8] = []
      func value() -> Value {
        isString ? .string(String(decoding: bytes, as: UTF8.self)) : .data(bytes)
      }
      do {
        let test = try TestStore(sandbox)
        try test.set("K", isString ? "" : .data([]), text: isString ? .exact([]) : .canonical)
        for _ in 0..<200 {
          let splice = try #require(
            Splice(
              base: bytes.count, offset: bytes.count, bytes: piece, count: bytes.count + 1000,
              isBare: true))
          bytes += piece
          _ = try test.store.commit([Changeset.Item(TestStore.user, .splice("K", splice))])
        }
        #expect(test.journalSize < 300_000)
      }
      let test = try TestStore(sandbox)
      #expect(try test.get("K") == value())
      let text = try test.store.lists.find("K", at: TestStore.user)?.text
      #expect(text == (isString ? bytes : nil))
      try test.store.checkpoint(TestStore.user)
      #expect(sandbox.evaluate(test.list, "len(d['K'])") == "200000")
    }
  }

  @Test("a record whose write(2) took until after the deadline is taken back")
  func late() throws {
    try withSandbox { sandbox in
      do {
        let test = try TestStore(sandbox)
        try test.set("K", 1)
        let size = test.journalSize
        let late = Changeset.Item(TestStore.user, .set("K", 2, .canonical))
        let refusal = #expect(throws: EngineError.self) {
          try test.store.commit([late], until: Instant.now)
        }
        #expect(refusal?.reason == .system(.timedOut))
        #expect(test.journalSize == size)
        #expect(try test.get("K") == 1)
        try test.set("L", 3)
      }
      let test = try TestStore(sandbox)
      #expect(try test.get("K") == 1)
      #expect(try test.get("L") == 3)
    }
  }

  @Test("a file that could not be made durable is removed only when its copy is durable")
  func copied() throws {
    try withSandbox { sandbox in
      let journal = try Journal(directory: sandbox.root, after: .init())
      let change = Changeset([.init(TestStore.user, .set("K", 1, .canonical))])
      let last = try journal.append(.change(change))
      let old = try #require(try journal.unsynchronizedPaths().first)
      var copy = old
      for _ in 0..<2 {
        journal.noteFailure(copy)
        copy = try #require(try journal.unsynchronizedPaths().first)
        #expect(copy != old)
        #expect(try journal.release(through: last) == [])
      }
      journal.noteSynchronized([copy], through: last)
      let removable = try journal.release(through: last)
      #expect(removable.count == 2 && removable.contains(old) && !removable.contains(copy))
    }
  }

  @Test("every record is decoded as it was encoded, and none that is cut")
  func records() throws {
    let location = Location(.user, "d")
    let splice = try #require(
      Splice(base: 5000, offset: 4999, bytes: [1, 2, 3], count: 5002, isBare: true))
    var source = ChangeSource(.command)
    (source.user, source.process, source.program, source.unit) = (7, 8, "/bin/x", "x.service")
    var reason = source
    reason.because = "é"
    let records: [JournalRecord] = [
      .change(
        Changeset(
          [
            Changeset.Item(location, .set("K", ["a": [1, .data([2])]], .exact([1, 2]))),
            Changeset.Item(location, .remove("K")),
            Changeset.Item(location, .createDomain),
            Changeset.Item(Location(.anyUser, .global), .removeDomain),
          ], time: .init(nanoseconds: -5))),
      .change(
        Changeset([.init(location, .splice("K", splice))], time: .init(nanoseconds: 7)),
        from: Origin(client: 1, serial: 2)),
      .change(
        Changeset([.init(location, .remove("K"))], time: .init(nanoseconds: 8)),
        from: Origin(client: 1, serial: 3), by: source),
      .change(Changeset([.init(location, .remove("K"))], time: .init(nanoseconds: 9)), by: source),
      .change(Changeset([.init(location, .remove("L"))], time: .init(nanoseconds: 9)), by: reason),
      .checkpoint(location, through: 9, nil),
      .checkpoint(
        location, through: 9, FileIdentity(size: 1, modified: .init(nanoseconds: 2), inode: 3)),
    ]
    for record in records {
      let payload = record.encoded()
      #expect(JournalRecord(decoding: payload[...]) == record)
      for end in payload.indices { #expect(JournalRecord(decoding: payload[..<end]) == nil) }
    }
  }
}

@Suite("Journal: damaged and foreign files") struct ForeignJournalTests {
  @Test("a record that is nested in records is refused, however deep")
  func nested() {
    var payload: [UInt8] = []
    for _ in 0..<300_000 { payload += [4] + [UInt8](repeating: 1, count: 16) }
    #expect(JournalRecord(decoding: payload[...]) == nil)
    payload = []
    for _ in 0..<300_000 { payload += [5] + [UInt8](repeating: 0, count: 17) }
    #expect(JournalRecord(decoding: payload[...]) == nil)
  }

  @Test("a store opens beside files that only look like journals")
  func files() throws {
    try withSandbox { sandbox in
      do {
        let test = try TestStore(sandbox)
        try test.set("K", 5)
      }
      sandbox.shell(
        """
        cd \(sandbox.state)/s; cp journal.1 journal.\(Int.max); cp journal.1 journal.-3
        mkdir journal.7; mkfifo journal.8; head -c 5000 /dev/urandom > journal.9
        """)
      let test = try TestStore(sandbox)
      #expect(try test.get("K") == 5)
      try test.set("K", 6)
      #expect(test.lines.all.contains { $0.contains("header is damaged") })
      #expect(sandbox.shell("ls \(sandbox.state)/s").output.contains("damaged.9"))
    }
  }

  @Test("a flipped bit in a record's length loses that record alone, and keeps the file")
  func flippedLength() throws {
    try withSandbox { sandbox in
      do {
        let test = try TestStore(sandbox)
        for index in 0..<10 { try test.set(Key("Key\(index)"), "value") }
      }
      let journal = sandbox.state + "/s/journal.1"
      var bytes = try Data(contentsOf: URL(fileURLWithPath: journal))
      bytes[16 + 2] ^= 0x40
      try bytes.write(to: URL(fileURLWithPath: journal))
      let test = try TestStore(sandbox)
      #expect(try test.get("Key0") == nil && test.get("Key1") == "value")
      #expect(try test.get("Key9") == "value")
      #expect(sandbox.shell("ls \(sandbox.state)/s").output.contains("damaged.1"))
    }
  }

  @Test("a splice must have possible numbers, and must not break the text's UTF-8")
  func splices() throws {
    #expect(Splice(base: 5, offset: 6, bytes: [], count: 6, isBare: true) == nil)
    #expect(Splice(base: 5, offset: 5, bytes: [1], count: 5, isBare: true) == nil)
    #expect(Splice(base: 5, offset: 1, bytes: [1], count: 4, isBare: true) == nil)
    #expect(Splice(base: .max, offset: .max, bytes: [1], count: .max, isBare: true) == nil)
    #expect(Splice(base: 5, offset: -1, bytes: [1], count: 5, isBare: true) == nil)
    let text = StoredValue("aäb", Metadata(text: nil, modified: .now))
    for (offset, bytes, fits) in [
      (0, "x", true), (1, "ö", true), (2, "x", false), (1, "x", false), (3, "xy", true),
    ] {
      let end = max(4, offset + bytes.utf8.count)
      let splice = try #require(
        Splice(base: 4, offset: offset, bytes: Array(bytes.utf8), count: end, isBare: false))
      #expect(text.accepts(splice) == fits, "\(offset) \(bytes)")
    }
  }
}
