import Glibc
import PropertyList
import SystemCalls

/// Measures what schemas cost: a mount with many, an overwrite of a key that one judges, and reading
/// all of them.
enum SchemaBench {
  private static let schemas = 300
  private static let keys = 300

  /// - Parameters:
  ///   - programs: the directory of the programs.
  ///   - directory: an empty directory.
  static func run(_ programs: String, _ directory: String, _ report: Report) throws {
    for name in ["schemas", "none"] {
      try Files.makeDirectories("\(directory)/\(name)/schemas", mode: 0o755)
    }
    for domain in ["judged", "com.example.bench"] + (0..<schemas).map({ "org.example.d\($0)" }) {
      try Files.replace("\(directory)/schemas/schemas/\(domain).plist", with: manifest(domain))
    }
    let mount = LargeMount("\(programs)/prefsfs", "\(directory)/schema-lists")
    try mount.addFirstRead(
      "mount and first read, \(schemas) schemas",
      ["prefsfs": "\(directory)/schemas", "without schemas": "\(directory)/none"], report,
      .times(1.1, of: "without schemas"))
    setenv("PREFSFS_SYSTEM_DIR", "\(directory)/schemas", 1)
    try overwrites(mount, report)
    report.add(
      "defaults lint, \(schemas) schemas of \(keys) keys", .nanoseconds,
      Bench.samples([
        Subject("prefsfs") {
          Bench.time(1) { _ in _ = try? Child.runApart("\(programs)/defaults", ["lint"]) }
        }
      ]))
  }

  private static func manifest(_ domain: String) throws -> [UInt8] {
    let subkeys = (0..<keys).map { index -> Value in
      [
        "pfm_name": .string(index == 0 ? "Key" : "Key\(index)"), "pfm_type": "string",
        "pfm_title": "A key", "pfm_description": "What the key does, in a sentence of some words.",
        "pfm_format": "^[a-z]+ [0-9]+$",
      ]
    }
    return try Document.write(
      [
        "pfm_domain": .string(domain), "prefs_authoritative": true, "pfm_title": "A program",
        "pfm_subkeys": .array(subkeys),
      ], as: .xml)
  }

  private static func overwrites(_ mount: LargeMount, _ report: Report) throws {
    try mount.mount()
    defer { mount.unmount() }
    let point = mount.point
    var subjects: [Subject] = []
    for domain in ["judged", "free"] {
      try Files.makeDirectories("\(point)/\(domain)", mode: 0o700)
      try Files.replace("\(point)/\(domain)/Key", with: Array("value 1\n".utf8))
      subjects.append(
        Subject(domain == "judged" ? "prefsfs" : "without a schema") {
          FileBench.overwrite("\(point)/\(domain)/Key", 2000)
        })
    }
    report.add(
      "overwrite with O_TRUNC, a schema of \(keys) keys", .nanoseconds,
      Bench.samples(subjects, rounds: 15), goals: [.times(1.1, of: "without a schema")])
  }
}
