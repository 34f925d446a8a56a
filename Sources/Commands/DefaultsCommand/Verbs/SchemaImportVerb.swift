import PreferenceModel
import PreferenceSchemas
import PropertyList
import SystemCalls

/// `schema import`: makes schemas of those of GSettings. They inform: whoever ships the program adds
/// `prefs_authoritative`.
enum SchemaImportVerb {
  static func run(_ arguments: inout Arguments) throws(Refusal) {
    let directory = try arguments.remove(option: "--into")
    let paths = Array(arguments.rest)
    guard !paths.isEmpty else { throw .mistake("schema import needs a file") }
    let manifests = try read(paths)
    if let directory {
      for (domain, manifest) in manifests {
        try write(manifest, to: "\(directory)/\(domain).plist")
      }
      return
    }
    guard manifests.count == 1, let only = manifests.first else {
      let names = manifests.map(\.domain).joined(separator: ", ")
      throw Refusal(
        message: "There are \(manifests.count) schemas\(names.isEmpty ? "" : ": \(names)")",
        detail: "--into DIRECTORY writes a file for each")
    }
    Output.write(Document.anyXML(.dictionary(only.manifest)))
  }

  private static func read(
    _ paths: [String]
  ) throws(Refusal) -> [(domain: String, manifest: ValueDictionary)] {
    var settings = GSettingsSchemas()
    // Enumerations are declared in files of their own, beside those of schemas.
    let known = Set(paths.map(Files.canonicalPath))
    for path in Set(paths.flatMap(enumerations)).subtracting(known).sorted() {
      try? settings.read(String(decoding: try ListFile.looked(at: path), as: UTF8.self))
    }
    for path in paths {
      let text = try ListFile.text(path)
      do throws(Malformed) {
        try settings.read(text)
      } catch {
        throw Refusal(message: "Could not import \(path)", detail: error.reason)
      }
    }
    return settings.manifests
  }

  /// The files of enumerations in the directory of a file.
  private static func enumerations(beside path: String) -> [String] {
    guard path != "-" else { return [] }
    let directory = Files.parent(of: path.contains("/") ? path : "./" + path)
    let names = (try? Files.names(in: directory)) ?? []
    return names.filter { $0.hasSuffix(".enums.xml") }
      .map { Files.canonicalPath("\(directory)/\($0)") }
  }

  private static func write(_ manifest: ValueDictionary, to path: String) throws(Refusal) {
    try Refusal.wrapping("Could not write \(path)") { () throws(SystemError) in
      try Files.write(Document.anyXML(.dictionary(manifest)), to: path)
    }
  }
}
