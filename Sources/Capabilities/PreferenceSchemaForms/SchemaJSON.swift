import PreferenceModel
import PreferenceSchemas
import PropertyList

// A schema as JSON Schema 2020-12, for editors of `.prefs/domains/<domain>.json`.

extension Schema {
  /// The schema of the domain's document. Dates are ISO text and data is base64, as in the document.
  public func jsonSchema(of domain: DomainName) -> Value {
    var root: ValueDictionary = [
      "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
      "title": .string(title.isEmpty ? domain.string : title),
    ]
    if !summary.isEmpty { root["description"] = .string(summary) }
    root["properties"] = .dictionary(ValueDictionary(keys.map { ($0.name, $0.jsonSchema) }))
    return .dictionary(root)
  }
}

extension SchemaKey {
  fileprivate var jsonSchema: Value {
    var entry: ValueDictionary = [:]
    if let type = kind?.jsonType { entry["type"] = .string(type) }
    if kind == .date { entry["format"] = "date-time" }
    if kind == .data { entry["contentEncoding"] = "base64" }
    if !title.isEmpty { entry["title"] = .string(title) }
    if !remarks.isEmpty { entry["description"] = .string(remarks) }
    if let fallback = fallback?.plainJSON { entry["default"] = fallback }
    if kind != .date {
      (entry["minimum"], entry["maximum"]) = (minimum?.plainNumber, maximum?.plainNumber)
    }
    if !choices.isEmpty, !allowsOthers { entry["enum"] = .array(choices.compactMap(\.plainJSON)) }
    if let pattern { entry["pattern"] = .string(pattern.text) }
    if deprecated != nil { entry["deprecated"] = true }
    if kind == .array, let element = members.first {
      entry["items"] =
        members.count == 1
        ? element.jsonSchema : ["anyOf": .array(members.map(\.jsonSchema))]
    }
    if kind == .dictionary { addMembers(to: &entry) }
    return .dictionary(entry)
  }

  private func addMembers(to entry: inout ValueDictionary) {
    let named = members.filter { $0.name != Self.anyKey && $0.name != Self.anyValue }
    if !named.isEmpty {
      entry["properties"] = .dictionary(ValueDictionary(named.map { ($0.name, $0.jsonSchema) }))
    }
    if let any = members.first(where: { $0.name == Self.anyValue }) {
      entry["additionalProperties"] = any.jsonSchema
    }
  }
}

extension Kind {
  fileprivate var jsonType: String? {
    switch self {
    case .string, .date, .data: "string"
    case .integer: "integer"
    case .real: "number"
    case .boolean: "boolean"
    case .array: "array"
    case .dictionary: "object"
    case .uid: nil
    }
  }
}

extension Value {
  /// The value as the document has it, if JSON can hold it.
  fileprivate var plainJSON: Value? {
    let text = ValueText.canonical(self, style: .json)
    switch kind {
    case .date: return .string(String(decoding: text.dropLast(), as: UTF8.self))
    case .data, .array, .dictionary:
      return try? Document.read(
        ValueText.canonical(.array([self]), style: .json)
      ).value.first
    case .real: return plainNumber
    default: return self
    }
  }

  /// The number, if JSON can hold it.
  fileprivate var plainNumber: Value? {
    switch self {
    case .integer: self
    case .real(let number): number.isFinite ? self : nil
    case .single(let number): number.isFinite ? self : nil
    default: nil
    }
  }

  private var first: Value? { if case .array(let items) = self { items.first } else { nil } }
}
