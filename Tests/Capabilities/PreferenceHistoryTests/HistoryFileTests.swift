import Foundation
import PreferenceModel
import PropertyList
import Support
import SystemCalls
import Testing

@testable import PreferenceHistory

@Suite("Files of the history") struct HistoryFileTests {
  private static let user = Location(.user, "d")

  /// A change of a key from one value to the other.
  private static func record(
    _ key: Key, _ before: Value?, _ after: Value?, seconds: Int64 = 0, text: [UInt8]? = nil,
    source: ChangeSource = ChangeSource(.command)
  ) -> HistoryRecord {
    let kept = { (value: Value?) -> RecordedValue in
      value.map {
        RecordedValue(StoredValue($0, Metadata(text: text, modified: Timestamp(nanoseconds: 0))))
      } ?? .none
    }
    return HistoryRecord(
      [.init(user, key, from: kept(before), to: kept(after))],
      time: Timestamp(nanoseconds: seconds * 1_000_000_000), source: source)
  }

  private func changes(_ directory: HistoryDirectory) throws -> [HistoryRecord] {
    try directory.entries().compactMap { if case .change(let record) = $0 { record } else { nil } }
  }

  @Test("a change reads back with its number, its source, its values and their texts")
  func roundTrip() throws {
    try withSandbox { sandbox in
      let directory = HistoryDirectory(sandbox.root + "/history")
      var source = ChangeSource(.mount)
      (source.user, source.process, source.program, source.unit) = (7, 8, "/bin/é", "a.scope")
      let values: [Value] = [
        1, .real(1.5), true, "text", .data([0, 1]), ["a", 2], ["k": ["x"]],
        .date(AbsoluteTime(seconds: 5)), .string(String(repeating: "x", count: 65_537)),
      ]
      var records = values.map { Self.record("K", $0, nil, text: [0x31], source: source) }
      records.append(Self.record("New", nil, 3))
      source.because = "a reason: é"
      records.append(Self.record("Why", nil, 4, source: source))
      var writer = try HistoryWriter(directory)
      #expect(try writer.append(Array(records[..<4])))
      #expect(try !writer.append(Array(records[4...]), after: "why"))
      for index in records.indices {
        (records[index].number, records[index].first) = (UInt64(index + 1), UInt64(index + 1))
      }
      #expect(try changes(directory) == records)
      #expect(try directory.entries()[4] == .gap("why"))
      #expect(try directory.summary()["gaps"] == 1)
      #expect(records[8].items[0].before == .large(size: 65_537))
      #expect(records[3].items[0].before.value == "text")
      let mode = sandbox.shell("stat -c %a \(directory.path) \(directory.path)/*").output
      #expect(mode == "700\n600\n")
    }
  }

  @Test("a torn record is a gap, and the next owner goes on in a new file")
  func torn() throws {
    try withSandbox { sandbox in
      let directory = HistoryDirectory(sandbox.root + "/history")
      var writer = try HistoryWriter(directory)
      let records = (0..<3).map { Self.record("K", .string("\($0)"), "x", seconds: 9) }
      _ = try writer.append(Array(records[..<2]))
      let sound = try Data(contentsOf: URL(fileURLWithPath: directory.path + "/1"))
      _ = try writer.append(Array(records[2...]))
      let all = try Data(contentsOf: URL(fileURLWithPath: directory.path + "/1"))
      for count in [sound.count + 1, all.count - 1] {
        sandbox.shell("rm \(directory.path)/*")
        try all.prefix(count).write(to: URL(fileURLWithPath: directory.path + "/1"))
        #expect(try directory.summary()["gaps"] == 1)
        var next = try HistoryWriter(directory)
        #expect(next.lastNumber == 2 && next.lastTime == Timestamp(nanoseconds: 9_000_000_000))
        #expect(try next.append([Self.record("Next", nil, 1)]))
        let entries = try directory.entries()
        #expect(entries.count == 4)
        guard case .gap = entries[2], case .change(let last) = entries[3] else {
          Issue.record("\(entries)")
          continue
        }
        #expect(last.number == 3 && last.items[0].key == "Next")
      }
    }
  }

  @Test("a file of a later version is left alone")
  func later() throws {
    try withSandbox { sandbox in
      let directory = HistoryDirectory(sandbox.root + "/history")
      var writer = try HistoryWriter(directory)
      _ = try writer.append([Self.record("K", nil, 1)])
      sandbox.shell("printf '\\002' | dd of=\(directory.path)/1 bs=1 seek=8 conv=notrunc")
      #expect(throws: SystemError.self) { try HistoryWriter(directory) }
      let entries = try directory.entries()
      guard case .gap? = entries.first, entries.count == 1 else {
        Issue.record("\(entries)")
        return
      }
    }
  }

  @Test("the oldest files go first, by size and by age, and numbers go on")
  func prune() throws {
    try withSandbox { sandbox in
      let directory = HistoryDirectory(sandbox.root + "/history")
      let text = Value.string(String(repeating: "x", count: 60_000))
      let day: Int64 = 86_400
      for part in 0..<3 {
        var writer = try HistoryWriter(directory)
        for number in 0..<9 {
          let time = Int64(part) * 2 * day
          _ = try writer.append([Self.record(Key("K\(number)"), text, text, seconds: time)])
        }
      }
      var writer = try HistoryWriter(directory)
      #expect(try directory.numbers() == [1, 10, 19])
      sandbox.shell("touch -d '3 days ago' \(directory.path)/1")
      try writer.prune(bytes: 1 << 30, days: 4, now: .now)
      #expect(try directory.numbers() == [1, 10, 19])
      try writer.prune(bytes: 1 << 30, days: 2, now: .now)
      #expect(try directory.numbers() == [10, 19])
      try writer.prune(bytes: 1_500_000, days: .max, now: .now)
      #expect(try directory.numbers() == [19])
      #expect(try HistoryWriter(directory).lastNumber == 27)
      _ = try writer.append([Self.record("Last", nil, 1, seconds: 4 * day)])
      #expect(try changes(directory).last?.number == 28)
    }
  }

  @Test("a clock that is wrong for a moment removes and merges nothing, and ends its file")
  func wrongClock() throws {
    try withSandbox { sandbox in
      let directory = HistoryDirectory(sandbox.root + "/history")
      let (now, day) = (Timestamp.now.nanoseconds / 1_000_000_000, Int64(86_400))
      var writer = try HistoryWriter(directory)
      for number in 0..<6 {
        _ = try writer.append([
          Self.record("K", nil, 1, seconds: now - 5 * day + Int64(number) * 20 * 3600)
        ])
      }
      let files = try directory.numbers()
      let future = now + 75 * 365 * day
      _ = try writer.append([Self.record("K", 1, 2, seconds: future)])
      try writer.prune(
        bytes: 1 << 30, days: 400, now: Timestamp(nanoseconds: future * 1_000_000_000))
      #expect(try directory.numbers() == files + [7] && files.count > 2)
      #expect(try changes(directory).count == 7)
      _ = try writer.append([Self.record("K", 2, 3, seconds: now)])
      #expect(try directory.numbers() == files + [7, 8])
    }
  }

  @Test("an owner goes on in the newest file of another one")
  func resumed() throws {
    try withSandbox { sandbox in
      let directory = HistoryDirectory(sandbox.root + "/history")
      for number in 0..<5 {
        var writer = try HistoryWriter(directory)
        _ = try writer.append([Self.record("K", .string("\(number)"), "x")])
      }
      #expect(try directory.numbers() == [1])
      #expect(try changes(directory).map(\.number) == [1, 2, 3, 4, 5])
      #expect(try changes(directory).allSatisfy { $0.source.via == .command })
    }
  }

  @Test(
    "a file that is closed keeps one record for many changes of a program, and all of the others")
  func compaction() throws {
    try withSandbox { sandbox in
      let directory = HistoryDirectory(sandbox.root + "/history")
      var writer = try HistoryWriter(directory)
      let text = { (number: Int) in
        Value.string("\(number)" + String(repeating: "x", count: 10_000))
      }
      for number in 0..<100 {
        _ = try writer.append([Self.record("Busy", text(number), text(number + 1), seconds: 6)])
        if number == 50 {
          _ = try writer.append([Self.record("Other", nil, 1, seconds: 6)], after: "why")
        }
      }
      #expect(try directory.numbers().count == 2)
      let records = try changes(directory)
      #expect(records.first.map { [$0.count, Int($0.first)] } != [1, 1])
      #expect(records.filter { $0.items[0].key == "Other" }.map(\.number) == [52])
      #expect(try directory.entries().contains(.gap("why")))
      let busy = records.filter { $0.items[0].key == "Busy" }
      #expect(busy.reduce(0) { $0 + $1.count } == 100)
      #expect(busy.first?.items[0].before.value == text(0))
      #expect(busy.last?.items[0].after.value == text(100))
      for (old, new) in zip(busy, busy.dropFirst()) {
        #expect(old.items[0].after == new.items[0].before && old.number < new.first)
      }
      #expect(try HistoryWriter(directory).lastNumber == 101)
    }
  }

  @Test("after thirty days a key has one change a day, and the file keeps its time")
  func byDay() throws {
    try withSandbox { sandbox in
      let directory = HistoryDirectory(sandbox.root + "/history")
      let day: Int64 = 86_400
      var writer = try HistoryWriter(directory)
      for number in 0..<6 {
        let source = ChangeSource(number == 2 ? .list : .command)
        _ = try writer.append([
          Self.record(
            "K", .string("\(number)"), .string("\(number + 1)"),
            seconds: 100 * day + Int64(number + 3) * 4 * 3600, source: source),
          Self.record(Key("Other\(number)"), nil, 1, seconds: 100 * day + 12 * 3600),
        ])
      }
      let path = directory.file(1)
      let time = Date(timeIntervalSince1970: 101 * 86_400)
      try FileManager.default.setAttributes([.modificationDate: time], ofItemAtPath: path)
      // The file is closed, and old enough when the one after the next begins.
      _ = try writer.append([Self.record("New", nil, 1, seconds: 130 * day)])
      #expect(try changes(directory).count == 13)
      _ = try writer.append([Self.record("New", nil, 1, seconds: 132 * day)])
      let records = try changes(directory)
      let ours = records.filter { $0.items[0].key == "K" }
      #expect(ours.map(\.count) == [3, 3] && ours.map { $0.items[0].after.value } == ["3", "6"])
      #expect(ours.map { $0.items[0].before.value } == ["0", "3"])
      // What one of the merged changes did is not kept; the last of them stands for all.
      let contents = HistoryContents(records.map { .change($0) })
      for (number, merged) in [(ours[0].first, true), (ours[0].number, false)] {
        var filter = HistoryFilter()
        (filter.number, filter.key) = (number, "K")
        let change = try #require(NetChange.all(contents, filter).first)
        #expect(change.merged == (merged ? number...ours[0].number : nil))
      }
      #expect(try records.count == 10 && HistoryFile.isByDay(path))
      #expect(try !HistoryFile.isByDay(directory.file(13)))
      let attributes = try FileManager.default.attributesOfItem(atPath: path)
      #expect(attributes[.modificationDate] as? Date == time)
    }
  }

  @Test("changes of a key are not merged over a change that somebody else has made")
  func mergedApart() {
    var records = (0..<40).map {
      Self.record("K", .string("\($0)"), .string("\($0 + 1)"), seconds: 5)
    }
    for index in records.indices {
      (records[index].number, records[index].first) = (UInt64(index + 1), UInt64(index + 1))
    }
    var other = Self.record("K", "20", "20", seconds: 5, source: ChangeSource(.list))
    (other.number, other.first) = (records[20].number, records[20].number)
    records[20] = other
    let merged = HistoryRecord.compacted(records)
    #expect(merged.map(\.count) == [20, 1, 19] && merged.map(\.number) == [20, 21, 40])
    #expect(HistoryRecord.compacted(Array(records.prefix(8))).count == 8)
  }

  @Test("bytes of any kind are read without a trap")
  func random() throws {
    try withSandbox { sandbox in
      let directory = HistoryDirectory(sandbox.root + "/history")
      var writer = try HistoryWriter(directory)
      _ = try writer.append((0..<20).map { Self.record("K", .string("\($0)"), "x") })
      let sound = Array(try Data(contentsOf: URL(fileURLWithPath: directory.path + "/1")))
      var generator = SystemRandomNumberGenerator()
      for _ in 0..<300 {
        var bytes = sound
        for _ in 0..<3 {
          bytes[Int.random(in: 16..<bytes.count, using: &generator)] = .random(in: 0...255)
        }
        try Data(bytes).write(to: URL(fileURLWithPath: directory.path + "/1"))
        #expect(try directory.entries().count <= 21)
        _ = try HistoryWriter(directory)
      }
    }
  }

  @Test(
    "settings that make no sense count as not set",
    arguments: [
      ([:], 400, 64, false), (["Days": 3, "Megabytes": 5, "Off": true], 3, 5, true),
      (["Days": -1, "Megabytes": "x", "Off": "maybe"], 400, 64, false),
      (["Off": 1], 400, 64, true), (["Off": "YES"], 400, 64, true), (["Off": 0], 400, 64, false),
    ] as [(ValueDictionary, Int, Int, Bool)])
  func settings(_ values: ValueDictionary, days: Int, megabytes: Int, isOff: Bool) {
    let settings = HistorySettings(.dictionary(values))
    #expect((settings.days, settings.megabytes, settings.isOff) == (days, megabytes, isOff))
  }

  @Test(
    "no values are kept of keys with a secret's name, and of those that a pattern names",
    arguments: [
      ("Password", "d", false), ("myTokenX", "d", false), ("api_key", "d", false),
      ("TabWidth", "d", true), ("Private7", "d", false), ("Private7", "e", true),
      ("User", "prefsfs.cloud", false), ("Other", "prefsfs.cloud", true),
    ] as [(Key, DomainName, Bool)])
  func secrets(_ key: Key, _ domain: DomainName, isKept: Bool) {
    let settings = HistorySettings(["Never": ["d": ["Private*"], "prefsfs.cloud": ["User"]]])
    #expect(settings.keeps(key, of: domain) == isKept)
  }

  /// Values, and what is shown of them; nil if nothing is kept.
  static let members: [(key: Key, value: Value, shown: Value?)] = [
    ("askForPasswordDelay", 5, 5), ("AutoFillPasswords", false, false), ("TokenDate", 1.5, 1.5),
    ("Secrets", .date(AbsoluteTime(seconds: 0)), .date(AbsoluteTime(seconds: 0))),
    ("Password", "hunter", nil), ("Tokens", ["hunter"], nil), ("Server", ["port": 1], ["port": 1]),
    (
      "Server", ["password": "hunter", "host": "h", "usesToken": true],
      ["password": "(not kept)", "host": "h", "usesToken": true]
    ),
    (
      "Servers", [["apiKey": .data([1])], ["a": ["PSK": ["b": "hunter"]]]],
      [["apiKey": "(not kept)"], ["a": ["PSK": "(not kept)"]]]
    ),
  ]

  @Test("no secret is kept, whole or as a member; numbers are none", arguments: members.indices)
  func withoutSecrets(_ index: Int) throws {
    let (key, value, shown) = Self.members[index]
    let settings = HistorySettings()
    let stored = StoredValue(value, Metadata(text: nil, modified: Timestamp(nanoseconds: 0)))
    let recorded = settings.recorded(stored, of: key, in: "d")
    #expect(recorded.shown == shown)
    #expect(
      recorded.isKnown == (shown == value) && recorded.value == (shown == value ? value : nil))
    #expect(settings.keeps(value, of: key, in: "d") == (shown == value))
    // It reads back from a file of the history.
    try withSandbox { sandbox in
      let directory = HistoryDirectory(sandbox.root + "/history")
      var writer = try HistoryWriter(directory)
      _ = try writer.append([
        HistoryRecord(
          [.init(Self.user, key, from: .none, to: recorded)], time: .now,
          source: ChangeSource(.command))
      ])
      #expect(try changes(directory).first?.items.first?.after == recorded)
      #expect(sandbox.shell("grep -r hunter \(directory.path)").output == "")
    }
  }

  @Test(
    "one pattern need not be in an array; of a `Never` that is not understood no values are kept",
    arguments: [
      (["d": "Private*"], "Private7", false), (["d": "Private*"], "Other", true),
      (["d": 1], "Other", false), (["d": [1]], "Other", false), ("d", "Other", false),
    ] as [(Value, Key, Bool)])
  func never(_ patterns: Value, key: Key, isKept: Bool) {
    let settings = HistorySettings(.dictionary(["Never": patterns]))
    #expect(settings.keeps(key, of: "d") == isKept)
  }
}
