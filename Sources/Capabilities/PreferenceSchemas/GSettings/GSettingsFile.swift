import SystemCalls

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
    bytes.withUnsafeBufferPointer { bytes in
      var index = 0
      while let start = bytes[index...].firstIndex(of: UInt8(ascii: "<")) {
        let tag = Self.tag(bytes[start...])
        index = tag.endIndex
        note(tag)
      }
    }
  }

  /// The tag, comment, instruction or CDATA that begins at the start of the bytes. One without an end
  /// has all bytes.
  private static func tag(
    _ bytes: Slice<UnsafeBufferPointer<UInt8>>
  ) -> Slice<UnsafeBufferPointer<UInt8>> {
    for (start, end) in [("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>")]
    where bytes.starts(with: start.utf8) {
      var rest = bytes.dropFirst(start.utf8.count)
      while let last = rest.firstIndex(of: UInt8(ascii: ">")) {
        rest = rest[(last + 1)...]
        let all = bytes[..<rest.startIndex]
        if all.count >= start.utf8.count + end.utf8.count,
          all.suffix(end.utf8.count).elementsEqual(end.utf8)
        {
          return all
        }
      }
      return bytes
    }
    var quote: UInt8?
    for index in bytes.indices {
      let byte = bytes[index]
      if let open = quote {
        if byte == open { quote = nil }
      } else if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") {
        quote = byte
      } else if byte == UInt8(ascii: ">") {
        return bytes[...index]
      }
    }
    return bytes
  }

  private mutating func note(_ tag: Slice<UnsafeBufferPointer<UInt8>>) {
    guard ["<schema", "<enum", "<flags"].contains(where: { tag.starts(with: $0.utf8) }) else {
      return
    }
    var text = String(decoding: tag, as: UTF8.self)
    if !text.hasSuffix("/>") { text = text.dropLast() + "/>" }
    guard let element = try? Markup.read(text), let id = element.attributes["id"] else { return }
    switch element.name {
    case "schema": schemas.append(Schema(id: id, path: element.attributes["path"]))
    case "enum", "flags": enumerations.append(id)
    default: break
    }
  }
}
