import PropertyList

/// What a file of schemas of GSettings declares. The file is not parsed for it: only its tags are
/// looked at, and of those only the ones that begin schemas, enumerations and flags.
struct GSettingsFile: Sendable {
  struct Schema: Sendable {
    let id: String
    /// The path of its keys; nil if it is relocatable, so that only a program knows where they are.
    let path: String?
  }

  private(set) var schemas: [Schema] = []
  /// The ids of enumerations and of flags.
  private(set) var enumerations: [String] = []

  /// Looks at the bytes of a file. What is malformed is passed over. Cost: O(bytes).
  init(_ bytes: [UInt8]) {
    bytes.withUnsafeBufferPointer { buffer in
      var tags = XMLTags(buffer)
      while let tag = tags.next() {
        guard tag.kind != .closes,
          tag.isNamed("schema") || tag.isNamed("enum") || tag.isNamed("flags")
        else { continue }
        let start = buffer[tag.range].dropLast(tag.kind == .isEmpty ? 2 : 1)
        note(String(decoding: start, as: UTF8.self) + "/>")
      }
    }
  }

  private mutating func note(_ tag: String) {
    guard let element = try? Markup.read(tag), let id = element.attributes["id"] else { return }
    switch element.name {
    case "schema": schemas.append(Schema(id: id, path: element.attributes["path"]))
    case "enum", "flags": enumerations.append(id)
    default: break
    }
  }
}
