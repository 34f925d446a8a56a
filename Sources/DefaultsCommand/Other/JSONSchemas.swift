import PropertyList

/// Makes a preference manifest of a JSON Schema whose type is an object: each property becomes a key.
/// What manifests cannot say (`oneOf`, `if`, references to other documents) is left out.
struct JSONSchemas {
  /// What was left out, a line for each.
  private(set) var rest: [String] = []
  private let root: ValueDictionary
  /// The references that are being followed: a schema that has itself as a part has no end.
  private var open: Set<String> = []
  private var count = 0
  private static let deepest = 40
  private static let mostKeys = 20_000

  init(_ root: ValueDictionary) { self.root = root }

  /// The manifest of a domain.
  mutating func manifest(of domain: String) -> ValueDictionary {
    let found = resolved(root, 0)
    if found == nil { rest.append("the document: its $ref is not in it") }
    let top = found ?? root
    noteLeftOut(top, "the document")
    return [
      "pfm_domain": .string(domain), "pfm_format_version": 1,
      "pfm_title": top["title"] ?? root["title"] ?? .string(domain),
      "pfm_description": top["description"] ?? root["description"] ?? "",
      "pfm_subkeys": .array(members(of: top, path: "", depth: 0)),
    ]
  }

  private mutating func members(
    of entry: ValueDictionary, path: String, depth: Int
  ) -> [Value] {
    guard case .dictionary(let properties)? = entry["properties"], depth < Self.deepest else {
      return []
    }
    var required: [Value] = []
    if case .array(let names)? = entry["required"] { required = names }
    return properties.compactMap { name, value in
      guard case .dictionary(let property) = value else { return nil }
      var key = self.key(property, path: "\(path)\(name)", depth: depth)
      key["pfm_name"] = .string(name.string)
      if required.contains(.string(name.string)) { key["pfm_require"] = "always" }
      return .dictionary(key)
    }
  }

  /// The dictionary that a reference within the document means.
  private func resolved(_ entry: ValueDictionary, _ depth: Int) -> ValueDictionary? {
    guard case .string(let reference)? = entry["$ref"] else { return entry }
    if reference == "#" { return root }
    guard reference.hasPrefix("#/"), depth < Self.deepest else { return nil }
    var value = Value.dictionary(root)
    for part in reference.dropFirst(2).split(separator: "/") {
      let name = part.replacing("~1", with: "/").replacing("~0", with: "~")
      guard case .dictionary(let values) = value, let next = values[Key(String(name))] else {
        return nil
      }
      value = next
    }
    guard case .dictionary(let found) = value else { return nil }
    return resolved(found, depth + 1)
  }

  private mutating func noteLeftOut(_ entry: ValueDictionary, _ path: String) {
    for name in ["oneOf", "anyOf", "allOf", "not", "if"] where entry[Key(name)] != nil {
      rest.append("\(path): \(name)")
    }
  }

  private mutating func key(
    _ property: ValueDictionary, path: String, depth: Int
  ) -> ValueDictionary {
    count += 1
    guard count <= Self.mostKeys else { return [:] }
    let reference = property["$ref"]?.string
    if let reference, !open.insert(reference).inserted {
      rest.append("\(path): it has itself as a part")
      return ["pfm_type": "dictionary"]
    }
    defer { if let reference { open.remove(reference) } }
    guard let property = resolved(property, depth) else {
      rest.append("\(path): its $ref is not in the document")
      return [:]
    }
    noteLeftOut(property, path)
    var key: ValueDictionary = [:]
    key["pfm_type"] = type(property).map { .string($0) }
    for (own, other) in Self.names where property[own] != nil { key[other] = property[own] }
    if property["deprecated"] == true { key["pfm_deprecated"] = true }
    if property["writeOnly"] == true { key["pfm_sensitive"] = true }
    if let constant = property["const"] { key["pfm_range_list"] = [constant] }
    if case .dictionary(let items)? = property["items"] {
      key["pfm_subkeys"] = [.dictionary(self.key(items, path: path + "[]", depth: depth + 1))]
    }
    var inner = members(of: property, path: path + ".", depth: depth + 1)
    if case .dictionary(let any)? = property["additionalProperties"] {
      var value = self.key(any, path: path + ".*", depth: depth + 1)
      value["pfm_name"] = "{{value}}"
      inner += [["pfm_name": "{{key}}", "pfm_type": "string"], .dictionary(value)]
    }
    if !inner.isEmpty { key["pfm_subkeys"] = .array(inner) }
    return key
  }

  private static let names: [(Key, Key)] = [
    ("title", "pfm_title"), ("description", "pfm_description"), ("default", "pfm_default"),
    ("minimum", "pfm_range_min"), ("maximum", "pfm_range_max"), ("enum", "pfm_range_list"),
    ("pattern", "pfm_format"),
  ]

  private func type(_ property: ValueDictionary) -> String? {
    var name = property["type"]?.string
    // `null` beside a type says that the key may be missing, as every key may.
    if case .array(let all)? = property["type"] {
      let names = all.filter { $0 != "null" }
      if names.count == 1, case .string(let text)? = names.first { name = text }
    }
    switch name {
    case "number": return "real"
    case "object": return "dictionary"
    case "string" where property["format"] == "date-time": return "date"
    case "string" where property["contentEncoding"] == "base64": return "data"
    case "string", "integer", "boolean", "array": return name
    default: return nil
    }
  }
}
