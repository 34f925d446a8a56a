import PropertyList

/// Encodes keys and domains as file names, and decodes them. Pure functions.
package enum NameCodec {
  /// The most bytes that a file name may have (NAME_MAX).
  package static let longest = 255

  /// What a file name stands for.
  package enum Meaning: Equatable {
    /// The key that `encode` gives this name.
    case key(Key)
    /// A key whose full name is too long. It can only be found by encoding the keys that exist.
    case shortened
    /// No key: the name is not what `encode` gives for any.
    case none
    /// No key: the name matches the pattern of a tool's temporary or backup file.
    case scratch
  }

  /// Returns the file name of a key. Cost: O(key).
  package static func encode(_ key: Key) -> String {
    let text = key.string
    if isPlain(text) { return text }
    if text.isEmpty { return "%" }
    let name = escaped(text, withFirst: isScratchPattern(text))
    return name.utf8.count <= longest ? name : shorten(name, of: key)
  }

  /// Returns the key of a name whose first character is escaped without need: `%66oo` is `foo`. Who
  /// escapes the first character means a key, so such a name can be used, although listings show the
  /// other one. nil for every other name.
  package static func keyOfEscaped(_ name: String) -> Key? {
    guard name.hasPrefix("%"), let key = unescape(name), !key.string.isEmpty,
      encode(key) != name, escaped(key.string, withFirst: true).utf8.elementsEqual(name.utf8)
    else { return nil }
    return key
  }

  /// Returns the text of a key if it is a name by pattern, which `encode` escapes: `.hidden`. A file
  /// of that name may have become the key. nil for other keys, and for texts that no file name is.
  package static func patternName(of key: Key) -> String? {
    let text = key.string
    guard isScratchPattern(text), text.utf8.count <= longest, text != ".", text != "..",
      !text.unicodeScalars.contains(where: mustEscape)
    else { return nil }
    return text
  }

  private static func escaped(_ text: String, withFirst escapesFirst: Bool) -> String {
    var name = ""
    for (index, character) in text.unicodeScalars.enumerated() {
      let isDots = (text == "." || text == "..") && character == "."
      if mustEscape(character) || isDots || (index == 0 && escapesFirst) {
        for byte in String(character).utf8 { name += escape(byte) }
      } else {
        name.unicodeScalars.append(character)
      }
    }
    return name
  }

  /// Returns what the file name stands for. Cost: O(name).
  package static func decode(_ name: String) -> Meaning {
    if isPlain(name) { return .key(Key(name)) }
    guard let key = unescape(name) else { return isShortened(name) ? .shortened : .none }
    if encode(key).utf8.elementsEqual(name.utf8) { return .key(key) }
    return isScratchPattern(name) ? .scratch : .none
  }

  /// Whether the text is the name of the key with that text, without any escape. Most keys are.
  private static func isPlain(_ text: String) -> Bool {
    (1...longest).contains(text.utf8.count) && !isScratchPattern(text)
      && text.utf8.allSatisfy {
        $0 >= 0x20 && $0 != 0x7F && $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "%")
      }
  }

  /// Whether tools give such a name to temporary and backup files, whatever other files there are.
  package static func isScratchPattern(_ name: String) -> Bool {
    guard let first = name.utf8.first, let last = name.utf8.last else { return false }
    switch (first, last) {
    case (UInt8(ascii: "."), _), (UInt8(ascii: "#"), _), (_, UInt8(ascii: "~")): return true
    case (UInt8(ascii: "t"), _) where name.hasPrefix("tmp."): return true
    // What ed(1) leaves when its terminal goes.
    case (UInt8(ascii: "e"), UInt8(ascii: "p")) where name == "ed.hup": return true
    case (_, UInt8(ascii: "p")): return name.hasSuffix(".swp")
    case (_, UInt8(ascii: "x")): return name.hasSuffix(".swpx")
    case (UInt8(ascii: "4"), _), (UInt8(ascii: "5"), _), (UInt8(ascii: "D"), _):
      return ["4913", "5036", "5159", "5282", "DEADJOE"].contains(name)
    default: return false
    }
  }

  private static func mustEscape(_ character: Unicode.Scalar) -> Bool {
    character == "/" || character == "%" || character.value < 0x20 || character.value == 0x7F
  }

  private static func escape(_ byte: UInt8) -> String {
    let digits = Array("0123456789ABCDEF")
    return "%\(digits[Int(byte >> 4)])\(digits[Int(byte & 15)])"
  }

  /// Replaces the escapes by the bytes that they stand for; nil for a `%` without two upper-case
  /// hexadecimal digits, and for bytes that are not UTF-8.
  private static func unescape(_ name: String) -> Key? {
    if name == "%" { return "" }
    var bytes: [UInt8] = []
    var rest = Array(name.utf8)[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte)
        continue
      }
      guard rest.count >= 2, let high = digit(rest.removeFirst()),
        let low = digit(rest.removeFirst())
      else { return nil }
      bytes.append(high << 4 | low)
    }
    return String(utf8: bytes[...]).map { Key($0) }
  }

  private static func digit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
    default: nil
    }
  }

  /// Returns the beginning of the name, `%~`, and 16 hexadecimal digits of a hash of the key. No
  /// escape or UTF-8 character is cut in two.
  private static func shorten(_ name: String, of key: Key) -> String {
    var head = ""
    for character in name.unicodeScalars {
      if head.utf8.count + String(character).utf8.count > longest - 18 { break }
      head.unicodeScalars.append(character)
    }
    if let percent = head.utf8.suffix(2).firstIndex(of: UInt8(ascii: "%")) {
      head = String(head[..<percent])
    }
    return head + "%~" + StableHash.text(of: key.string.utf8)
  }

  /// Whether the name has the form that `shorten` makes.
  private static func isShortened(_ name: String) -> Bool {
    let tail = Array(name.utf8.suffix(18))
    return tail.count == 18 && tail[0] == UInt8(ascii: "%") && tail[1] == UInt8(ascii: "~")
  }
}
