import Glibc
import PreferenceEngine
import PreferenceModel
import PreferenceSearch
import PreferenceStore
import PropertyList
import StoreAccess
import SystemCalls

/// Measures what an administrator's settings cost the user: the start of a mount on a machine with
/// many configuration profiles, a look-up that gets as far as the languages, and schemas.
enum AdministratorBench {
  private static let profiles = 200
  private static let keys = 50

  /// - Parameters:
  ///   - prefsfs: the path of the program.
  ///   - directory: an empty directory.
  static func run(_ prefsfs: String, _ directory: String) throws {
    let report = Report("Administrators")
    try starts(prefsfs, directory, report)
    try misses(directory, report)
    try SchemaBench.run(Files.parent(of: prefsfs), directory, report)
  }

  // MARK: - Profiles

  private static func starts(_ prefsfs: String, _ directory: String, _ report: Report) throws {
    for name in ["with", "without"] {
      try Files.makeDirectories("\(directory)/\(name)/managed", mode: 0o755)
    }
    for number in 0..<profiles {
      try Files.replace(
        "\(directory)/with/managed/\(number).mobileconfig", with: profile(number))
    }
    try LargeMount(prefsfs, "\(directory)/lists").addFirstRead(
      "mount and first read, 200 profiles",
      ["prefsfs": "\(directory)/with", "without profiles": "\(directory)/without"], report,
      .times(1, of: "without profiles", plus: 50e6))
  }

  /// A profile that sets keys of several domains.
  private static func profile(_ number: Int) throws -> [UInt8] {
    var settings: ValueDictionary = ["PayloadType": .string("com.example.domain\(number % 20)")]
    for index in 0..<keys { settings[Key("Key \(number) \(index)")] = .string("value \(index)") }
    return try Document.write(
      [
        "PayloadType": "Configuration", "PayloadVersion": 1, "PayloadUUID": "U",
        "PayloadIdentifier": .string("org.example.\(number)"),
        "PayloadContent": [.dictionary(settings)],
      ], as: .xml)
  }

  // MARK: - Languages

  private static func misses(_ directory: String, _ report: Report) throws {
    let names = (0..<8).map { "x-\($0)" }
    let data = "\(directory)/data/preferences/languages"
    try Files.makeDirectories(data, mode: 0o755)
    for name in names {
      let values = Array("{\"NSLanguageName\": \"\(name)\", \"Key of \(name)\": 1}".utf8)
      try Files.replace("\(data)/\(name).plist", with: values)
    }
    setenv("XDG_DATA_HOME", "\(directory)/data", 1)
    let engines = try [names, []].map { languages in
      let store = try Store(EngineBench.layout("\(directory)/\(languages.count)")) { print($0) }
      let engine = SearchEngine(places: try LocalPlaces(store: store) { print($0) })
      let value = Value.array(languages.map { .string($0) })
      _ = try engine.apply(
        [.set("AppleLanguages", .global, value, .unknown), .set("K", "d", 1, .unknown)],
        by: .unique())
      return engine
    }
    let subjects = zip(["prefsfs", "without languages"], engines).map { name, engine in
      Subject(name) { Bench.time(50_000) { _ in _ = try? engine.resolve("Missing", in: "d") } }
    }
    report.add("miss in the search list, 8 languages", .nanoseconds, Bench.samples(subjects))
  }
}
