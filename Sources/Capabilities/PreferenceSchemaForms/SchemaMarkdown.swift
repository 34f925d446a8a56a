import PreferenceModel
import PreferenceSchemas
import PropertyList

extension Schema {
  /// A reference page of the domain, in Markdown.
  public func markdown(of domain: DomainName) -> String {
    let heading = title.lines.joined(separator: " ")
    var text = "# \(heading.isEmpty ? domain.string : heading)\n\n"
    if !summary.isEmpty { text += "\(summary)\n\n" }
    text += "Domain `\(domain)`.\n"
    for key in keys { text += "\n## `\(key.name)`\n\n" + Self.section(key, level: 0) }
    return text
  }

  private static func section(_ key: SchemaKey, level: Int) -> String {
    let indent = String(repeating: "  ", count: level)
    var text = level == 0 ? "\(escaped(key.rule))\n" : ""
    if level == 0 {
      for line in key.remarks.lines where !line.isEmpty { text += "\n\(paragraph(line))\n" }
    }
    // The elements of an array have no name; their members are listed as its own.
    let members = named(key.members)
    guard level < 8 else { return text }
    if !members.isEmpty, level == 0 { text += "\n" }
    for member in members {
      let about = escaped(member.remarks.lines.filter { !$0.isEmpty }.joined(separator: " "))
      text +=
        "\(indent)- `\(member.name)`: \(escaped(member.rule))\(about.isEmpty ? "" : ". \(about)")\n"
      text += section(member, level: level + 1)
    }
    return text
  }

  /// The keys that have names, in elements too.
  private static func named(_ keys: [SchemaKey], depth: Int = 0) -> [SchemaKey] {
    keys.flatMap { key -> [SchemaKey] in
      if !key.name.string.isEmpty { return [key] }
      return depth < 8 ? named(key.members, depth: depth + 1) : []
    }
  }

  /// A line as a paragraph of its own, which is no heading and no item of a list.
  private static func paragraph(_ line: String) -> String {
    let text = escaped(String(line.drop { $0 == " " }))
    guard let first = text.first, "#-+=~".contains(first) else { return text }
    return "\\\(text)"
  }

  /// The text without what Markdown would take for marks.
  private static func escaped(_ text: String) -> String {
    var escaped = ""
    for character in text {
      if "\\`*_<>[]|".contains(character) { escaped.append("\\") }
      escaped.append(character)
    }
    return escaped
  }
}
