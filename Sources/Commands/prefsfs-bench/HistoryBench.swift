import Glibc
import PreferenceHistory
import PreferenceModel
import PropertyList
import StoreAccess
import SystemCalls

/// Measures what the history costs a change, and what it costs to ask it.
enum HistoryBench {
  private static let records = 100_000
  private static let undone = 1000

  /// - Parameters:
  ///   - programs: the directory of the programs.
  ///   - directory: an empty directory.
  static func run(_ programs: String, _ directory: String) throws {
    let report = Report("History")
    try overwrites(programs, directory, report)
    try asks(programs, directory, report)
  }

  // MARK: - Changes

  private static func overwrites(
    _ programs: String, _ directory: String, _ report: Report
  ) throws {
    var subjects: [Subject] = []
    let mounts = ["on", "off"].map { LargeMount("\(programs)/prefsfs", "\(directory)/\($0)") }
    defer { for mount in mounts { mount.unmount() } }
    for (name, mount) in zip(["on", "off"], mounts) {
      let point = mount.point
      try Files.makeDirectories(mount.lists, mode: 0o700)
      try mount.mount()
      try Files.makeDirectories("\(point)/one", mode: 0o700)
      try Files.replace("\(point)/one/Key", with: Array("value\n".utf8))
      if name == "off" {
        try Files.makeDirectories("\(point)/prefsfs", mode: 0o700)
        try Files.replace("\(point)/prefsfs/History", with: Array("{\"Off\": true}\n".utf8))
      }
      subjects.append(Subject(name) { FileBench.overwrite("\(point)/one/Key", 2000) })
    }
    report.add(
      "overwrite with O_TRUNC, history on", .nanoseconds,
      Bench.samples(subjects, rounds: 15), goals: [.times(1.05, of: "off")])
  }

  // MARK: - Questions

  private static func asks(_ programs: String, _ directory: String, _ report: Report) throws {
    let mount = LargeMount("\(programs)/prefsfs", "\(directory)/home")
    try Files.makeDirectories(mount.lists, mode: 0o700)
    setenv("XDG_CONFIG_HOME", mount.lists, 1)
    let bytes = try fill(HistoryDirectory(Surroundings().stateDirectory + "/history"))
    report.add("bytes a record", .bytes, [.init(subject: "prefsfs", values: [bytes])])
    let defaults = "\(programs)/defaults"
    report.add(
      "defaults history, 100,000 records", .nanoseconds,
      Bench.samples([
        Subject("prefsfs") { time(defaults, ["history", "--all"]) },
        Subject("of one key") { time(defaults, ["history", "d0", "K0"]) },
      ]), goals: [])
    report.add(
      "at of a year ago, first look", .nanoseconds,
      Bench.samples([Subject("prefsfs") { firstLook(mount) }]),
      goals: [.atMost(200e6)])
    for index in 0..<undone {
      _ = try Child.runApart(defaults, ["write", "undone", "K\(index % 100)", "\(index)"])
    }
    let last = "\(records + undone)"
    report.add(
      "undo of 1,000 changes of 100 keys", .nanoseconds,
      Bench.samples(
        [Subject("prefsfs") { time(defaults, ["undo", "undone", "--until", last, "--over"]) }],
        rounds: 1), goals: [])
  }

  /// Writes changes of a year: of 1,000 keys.
  /// - Returns: the bytes of a record.
  private static func fill(_ history: HistoryDirectory) throws -> Double {
    try Files.makeDirectories(Files.parent(of: history.path), mode: 0o700)
    var writer = try HistoryWriter(history)
    let year: Int64 = 365 * 86_400_000_000_000
    let begin = Timestamp.now.nanoseconds - year - 86_400_000_000_000
    var source = ChangeSource(.mount)
    (source.program, source.unit) = ("/usr/bin/editor", "app-editor-2211.scope")
    for part in 0..<1000 {
      let time = begin + year / 1000 * Int64(part)
      let changes = (0..<records / 1000).map { index in
        let item = HistoryRecord.Item(
          Location(.user, DomainName("d\(part % 10)")), Key("K\(index)"),
          from: value(part), to: value(part + 10))
        return HistoryRecord(
          [item], time: Timestamp(nanoseconds: time + Int64(index)), source: source)
      }
      _ = try writer.append(changes)
    }
    guard case .integer(let bytes)? = try history.summary()["bytes"], let size = bytes.signed else {
      return 0
    }
    return Double(size) / Double(records)
  }

  private static func value(_ number: Int) -> RecordedValue {
    RecordedValue(
      StoredValue(
        .integer(WideInteger(Int64(number))),
        Metadata(text: nil, modified: Timestamp(nanoseconds: 0))))
  }

  private static func time(_ program: String, _ words: [String]) -> Double {
    Bench.time(1) { _ in _ = try? Child.runApart(program, words) }
  }

  /// Nanoseconds until a new mount has read a value of a year ago.
  private static func firstLook(_ mount: LargeMount) -> Double {
    try? mount.mount()
    defer { mount.unmount() }
    return Bench.time(1) { _ in
      guard (try? Files.contents("\(mount.point)/.prefs/at/-365d/d1/K1", limit: 64)) != nil else {
        print("prefsfs-bench: there is no value of a year ago")
        return
      }
    }
  }
}
