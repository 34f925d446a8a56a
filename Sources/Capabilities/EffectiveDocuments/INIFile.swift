import PreferenceModel
import PropertyList

/// A file of groups and keys, as GKeyFile of GLib reads it: a dictionary is a group, every other
/// value is in the group `General`, and an array is a list, with `;` behind each element. A
/// container that is deeper is JSON on one line.
///
/// GKeyFile refuses the whole file for one name that it cannot hold, so such a name is left out.
enum INIFile {
  private static let general: Key = "General"

  /// A key of a group, and how comments name it.
  private struct Entry {
    let key: Key
    let value: Value
    let path: String
  }

  static func text(of values: ValueDictionary) -> String {
    var (comments, groups) = ("", "")
    for (group, entries) in grouped(values) {
      if let reason = obstacle(toGroup: group) {
        comments += EffectiveDocument.comment(NameCodec.encode(group), reason)
        continue
      }
      let isFirst = groups.isEmpty
      groups += (isFirst ? "" : "\n") + "[\(group)]\n"
      let counts = Dictionary(entries.map { ($0.key, 1) }, uniquingKeysWith: +)
      for entry in entries.sorted(by: { ($0.key, $0.path) < ($1.key, $1.path) }) {
        let text = text(of: entry.value)
        let reason =
          counts[entry.key] == 1
          ? obstacle(entry.key, text, inFirst: isFirst)
          : "the group General has two keys of that name"
        if let reason {
          comments += EffectiveDocument.comment(entry.path, reason)
        } else {
          groups += "\(entry.key)=\(text)\n"
        }
      }
    }
    return comments.isEmpty || groups.isEmpty ? comments + groups : "\(comments)\n\(groups)"
  }

  /// Returns the groups in their order: `General`, if there is a key for it, and those of
  /// dictionaries by name. A dictionary `General` adds to the first.
  private static func grouped(_ values: ValueDictionary) -> [(group: Key, entries: [Entry])] {
    var (first, others): ([Entry]?, [(group: Key, entries: [Entry])]) = (nil, [])
    for (key, value) in values.sorted(by: { $0.key < $1.key }) {
      let path = NameCodec.encode(key)
      guard case .dictionary(let members) = value else {
        first = (first ?? []) + [Entry(key: key, value: value, path: path)]
        continue
      }
      let entries = members.map {
        Entry(key: $0.key, value: $0.value, path: "\(path)/\(NameCodec.encode($0.key))")
      }
      if key == general { first = (first ?? []) + entries } else { others.append((key, entries)) }
    }
    return (first.map { [(general, $0)] } ?? []) + others
  }

  // MARK: - Names

  /// Returns why there can be no group of the name; nil if there can.
  private static func obstacle(toGroup name: Key) -> String? {
    name.withBytes { bytes in
      let isFit = bytes.allSatisfy { $0 >= 0x20 && $0 != 0x7F && !isBracket($0) }
      return isFit && !bytes.isEmpty ? nil : "no group can have that name"
    }
  }

  /// Returns why the group cannot have the key with the text; nil if it can.
  private static func obstacle(_ key: Key, _ text: String, inFirst isFirst: Bool) -> String? {
    if !isName(Array(key.string.utf8)[...]) { return "no key can have that name" }
    if isFirst, key == "Encoding", text.lowercased() != "utf-8" {
      return "in the first group, Encoding can only be UTF-8"
    }
    let isHeld =
      !text.utf8.contains(0) && text.utf8.first.map { $0 != 0x0B && $0 != 0x0C } ?? true
    return isHeld ? nil : "no key can have that value"
  }

  /// Whether a key can have the name. A language or the like may stand in brackets behind it.
  private static func isName(_ name: ArraySlice<UInt8>) -> Bool {
    var name = name
    if name.last == UInt8(ascii: "]") {
      guard let start = name.firstIndex(of: UInt8(ascii: "[")),
        name[(start + 1)...].dropLast().allSatisfy({
          $0.isLetter || $0.isDigit || "-_.@".utf8.contains($0)
        })
      else { return false }
      name = name[..<start]
    }
    guard let first = name.first, let last = name.last, first != UInt8(ascii: "#") else {
      return false
    }
    return !isBlank(first) && !isBlank(last)
      && name.allSatisfy { $0 != 0 && $0 != 0x0A && $0 != UInt8(ascii: "=") && !isBracket($0) }
  }

  private static func isBracket(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "[") || byte == UInt8(ascii: "]")
  }

  private static func isBlank(_ byte: UInt8) -> Bool {
    byte == 0x20 || (0x09...0x0D).contains(byte)
  }

  // MARK: - Values

  private static func text(of value: Value) -> String {
    guard case .array(let items) = value else { return escaped(value.plainText, inList: false) }
    return items.map { escaped($0.plainText, inList: true) + ";" }.joined()
  }

  /// Returns the text with its escapes. A blank at an end of it would be lost to some readers.
  private static func escaped(_ text: String, inList: Bool) -> String {
    var escaped: [UInt8] = []
    let bytes = Array(text.utf8)
    for (index, byte) in bytes.enumerated() {
      switch byte {
      case UInt8(ascii: " ") where index == 0 || index == bytes.count - 1: escaped += "\\s".utf8
      case UInt8(ascii: "\n"): escaped += "\\n".utf8
      case UInt8(ascii: "\t"): escaped += "\\t".utf8
      case UInt8(ascii: "\r"): escaped += "\\r".utf8
      case UInt8(ascii: "\\"): escaped += "\\\\".utf8
      case UInt8(ascii: ";") where inList: escaped += "\\;".utf8
      default: escaped.append(byte)
      }
    }
    return String(decoding: escaped, as: UTF8.self)
  }
}
