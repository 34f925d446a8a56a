import PreferenceSchemas
import PropertyList
import StoreAccess
import SystemCalls

/// The types that the machine's schemas of GSettings give to keys. Files that GLib's compiler would
/// refuse are passed over. Cost: each `*.gschema.xml` is read once.
struct GSettingsTypes {
  /// By path, without slashes around it.
  private var fixed: [String: [String: String]] = [:]
  /// The domains of schemas that have a path, by their ids.
  private(set) var domains: [String: String] = [:]
  /// By key, of all relocatable schemas, which may be anywhere.
  private var relocatable: [String: Set<String>] = [:]

  /// Reads the schemas where GLib looks for them: in `$GSETTINGS_SCHEMA_DIR`, and in
  /// `glib-2.0/schemas` in the directories of data.
  static func ofMachine() -> GSettingsTypes {
    GSettingsTypes(Surroundings().settingsDirectories)
  }

  /// Reads the schemas in the directories, of which an earlier one counts.
  init(_ directories: [String]) {
    for directory in directories {
      var schemas = GSettingsSchemas()
      let names = (try? Files.names(in: directory)) ?? []
      // Enumerations are declared before the schemas that use them.
      for ending in [".enums.xml", ".gschema.xml"] {
        for name in names.sorted() where name.hasSuffix(ending) {
          guard let bytes = try? ListFile.looked(at: "\(directory)/\(name)") else { continue }
          try? schemas.read(String(decoding: bytes, as: UTF8.self))
        }
      }
      for schema in schemas.types {
        let domain = schema.path.flatMap { GSettingsPath.domain(of: $0) }
        domains[schema.id] = domains[schema.id] ?? domain
        add(schema.path, schema.keys)
      }
    }
  }

  private mutating func add(_ path: String?, _ keys: [String: String]) {
    guard let path else {
      for (key, type) in keys { relocatable[key, default: []].insert(type) }
      return
    }
    let plain = path.split(separator: "/").joined(separator: "/")
    fixed[plain, default: [:]].merge(keys) { first, _ in first }
  }

  /// Whether a schema has the path, or one above it, where relocatable schemas have their keys.
  func has(_ path: String) -> Bool {
    var rest = path[...]
    while fixed[String(rest)] == nil {
      guard let slash = rest.lastIndex(of: "/") else { return false }
      rest = rest[..<slash]
    }
    return true
  }

  /// Returns the text of a GVariant for the value of a key. A key of a schema has the type that it
  /// has there, one that may be of a relocatable schema the type on which these agree, and any other
  /// one the nearest type.
  /// - Returns: nil if it is no value of the type.
  func text(of value: Value, for key: String, at path: String) -> String? {
    if let keys = fixed[path] { return VariantWriter.text(of: value, as: keys[key]) }
    let types = relocatable[key] ?? []
    return (types.count == 1 ? VariantWriter.text(of: value, as: types.first) : nil)
      ?? VariantWriter.text(of: value)
  }
}
