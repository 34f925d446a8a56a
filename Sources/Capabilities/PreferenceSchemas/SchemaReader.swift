import PreferenceModel
import PropertyList

/// Why a file is no schema.
public struct SchemaError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The reason, a sentence.
  public let description: String

  init(_ description: String) { self.description = description }
}

extension Schema {
  /// Reads a preference manifest, or a pane of a `Settings.bundle` without its child panes. What is
  /// wrong in a part of it is a problem of the schema, and the part is left out; a manifest without
  /// `pfm_subkeys`, or of a later format, throws.
  /// - Parameter list: the file as a property list.
  public init(manifest list: ValueDictionary) throws(SchemaError) {
    var values = list
    if list["pfm_subkeys"] == nil, SettingsPane.isPane(list) {
      values = SettingsPane(pane: { _ in nil }, texts: { _ in [:] }).manifest(of: list, "")
    }
    if case .integer(let format)? = values["pfm_format_version"], WideInteger(Int64(1)) < format {
      throw SchemaError("it is of a later format (pfm_format_version), which is not known here")
    }
    guard case .array(let subkeys)? = values["pfm_subkeys"] else {
      throw SchemaError("it is no preference manifest: it has no array pfm_subkeys")
    }
    var reader = ManifestReader()
    let keys = reader.members(subkeys, path: "", depth: 0)
    self.init(
      title: values["pfm_title"]?.string ?? "",
      summary: values["pfm_description"]?.string ?? "",
      isAuthoritative: values["prefs_authoritative"] == true, keys: keys,
      problems: reader.problems)
  }
}

/// Reads the keys of a manifest.
private struct ManifestReader {
  private(set) var problems: [String] = []
  /// Bytes that the compiled patterns of the schema take, of those that all may take.
  private var patternBytes = 0
  private static let mostPatternBytes = 4 << 20
  /// Deeper members are left out: a schema of a hundred levels is a mistake.
  private static let deepest = 50

  mutating func members(_ subkeys: [Value], path: String, depth: Int) -> [SchemaKey] {
    guard depth < Self.deepest else {
      problems.append("\(path): it is nested too deeply")
      return []
    }
    return subkeys.compactMap { value in
      guard case .dictionary(let entry) = value else {
        problems.append("\(path)pfm_subkeys has something that is not a dictionary")
        return nil
      }
      return key(entry, path: path, depth: depth)
    }
  }

  private mutating func key(_ entry: ValueDictionary, path: String, depth: Int) -> SchemaKey? {
    let name = entry["pfm_name"]?.string ?? ""
    if name.isEmpty, depth == 0 {
      problems.append("a key has no pfm_name")
      return nil
    }
    if depth == 0, Self.isOfProfiles(name) { return nil }
    let full = path + name
    var key = SchemaKey(Key(name), kind: kind(entry, full))
    key.title = entry["pfm_title"]?.string ?? ""
    key.summary = entry["pfm_description"]?.string ?? ""
    key.fallback = entry["pfm_default"]
    (key.minimum, key.maximum) = (
      limit(entry, "pfm_range_min", full), limit(entry, "pfm_range_max", full)
    )
    if case .array(let choices)? = entry["pfm_range_list"] { key.choices = choices }
    key.choiceTitles = entry["pfm_range_list_titles"]?.strings ?? []
    key.allowsOthers = entry["pfm_range_list_allow_custom_value"] == true
    key.pattern = pattern(entry, full)
    key.isRequired =
      entry["pfm_require"]?.string?.hasPrefix("always") == true || entry["pfm_required"] == true
    key.isSensitive = entry["pfm_sensitive"] == true
    key.isState = entry["prefs_state"] == true
    key.isCloud = entry["prefs_cloud"] == true
    key.deprecated =
      ["pfm_deprecated", "pfm_app_deprecated", "pfm_macos_deprecated"].lazy
      .compactMap { entry.version($0) }.first
    key.unit = entry["pfm_value_unit"]?.string ?? ""
    if case .array(let subkeys)? = entry["pfm_subkeys"] {
      key.members = members(subkeys, path: full.isEmpty ? path : full + ".", depth: depth + 1)
    }
    checkDefault(&key, full)
    return key
  }

  /// Whether a key at the top of a manifest is that of a profile's payload (CommonPayloadKeys.yaml
  /// of apple/device-management), or of an editor of profiles, and none of the program's.
  private static func isOfProfiles(_ name: String) -> Bool {
    ofPayloads.contains(name) || name.hasPrefix("PFC_SegmentedControl")
  }

  private static let ofPayloads: Set<String> = [
    "PayloadContent", "PayloadDescription", "PayloadDisplayName", "PayloadEnabled",
    "PayloadExpirationDate", "PayloadIdentifier", "PayloadOrganization",
    "PayloadRemovalDisallowed", "PayloadScope", "PayloadType", "PayloadUUID", "PayloadVersion",
  ]

  private mutating func kind(_ entry: ValueDictionary, _ path: String) -> Kind? {
    let name = entry["pfm_type"]?.string ?? ""
    switch name {
    case "": return nil
    case "float": return .real
    case "bool": return .boolean
    case "array", "boolean", "data", "date", "dictionary", "integer", "real", "string":
      return Kind(rawValue: name)
    // Containers of other manifests: any value.
    case "any", "union policy": return nil
    default:
      problems.append("\(path): the type \(name.printable()) is not known")
      return nil
    }
  }

  private mutating func limit(_ entry: ValueDictionary, _ name: Key, _ path: String) -> Value? {
    guard let value = entry[name] else { return nil }
    if [.integer, .real, .date].contains(value.kind) { return value }
    problems.append("\(path): \(name) is not a number")
    return nil
  }

  private mutating func pattern(_ entry: ValueDictionary, _ path: String) -> Pattern? {
    guard case .string(let text)? = entry["pfm_format"], !text.isEmpty else { return nil }
    do throws(Pattern.Failure) {
      let pattern = try Pattern(text)
      patternBytes += pattern.size
      guard patternBytes <= Self.mostPatternBytes else { throw .unsupported }
      return pattern
    } catch {
      switch error {
      case .malformed: problems.append("\(path): pfm_format is not a regular expression")
      case .unsupported:
        problems.append("\(path): pfm_format is ignored, because it is too large or has &&")
      }
      return nil
    }
  }

  /// A default that the schema itself would refuse is a mistake in it, and is left out.
  private mutating func checkDefault(_ key: inout SchemaKey, _ path: String) {
    guard let fallback = key.fallback, let objection = key.objection(to: fallback) else { return }
    problems.append("\(path): its default does not fit: \(objection)")
    key.fallback = nil
  }
}

extension ValueDictionary {
  /// A version that is a text, or `true`; nil if there is none.
  fileprivate func version(_ key: Key) -> String? {
    switch self[key] {
    case .string(let text)? where !text.isEmpty: text
    case .boolean(true)?: ""
    default: nil
    }
  }
}
