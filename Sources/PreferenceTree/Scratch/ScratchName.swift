/// Which new names are those of tools' temporary and backup files. Pure.
///
/// A key that exists is never asked about: it wins over every pattern.
enum ScratchName {
  /// How the name is about to be made.
  enum Making: Equatable {
    /// open(2) with O_CREAT; `readsToo`: O_RDWR.
    case file(exclusively: Bool, readsToo: Bool)
    /// rename(2) of a key to the name.
    case rename
    /// link(2) or symlink(2) with the name as the new one.
    case link
    /// mkdir(2) in a domain.
    case directory
  }

  /// Whether the file will be a scratch file.
  /// - Parameter isKey: whether there is a key of a name, or was one a second ago. Asked only
  ///   where the end of the name looks like a tool's.
  static func isScratch(
    _ name: String, _ making: Making, isKey: (String) -> Bool
  ) -> Bool {
    // Whoever escapes the first character means a key.
    if name.hasPrefix("%"), case .key = NameCodec.decode(name) { return false }
    if case .directory = making { return name.hasSuffix(".lock") || name == ".~tmp~" }
    if NameCodec.isScratchPattern(name) { return true }
    switch making {
    case .directory: return false
    // Of 478 traced edits 117 made a file so, all of them temporary; no tool made a key so.
    case .file(exclusively: true, readsToo: true): return true
    case .link where isLinkName(name): return true
    case .file, .rename, .link: break
    }
    for suffix in suffixes where name.hasSuffix(suffix) {
      if making == .file(exclusively: true, readsToo: false) || making == .link { return true }
      if isKey(String(name.dropLast(suffix.count))) { return true }
    }
    return stems(of: name).contains(where: isKey)
  }

  /// Whether a directory that is made at the root is a tool's, not a domain: `mktemp -d`'s, rsync's,
  /// rdiff-backup's.
  static func isRootDirectory(_ name: String) -> Bool {
    if name == ".~tmp~" || name.hasPrefix("tmp.") { return true }
    guard let mark = name.ranges(of: ".tmp.").last else { return false }
    let number = name[mark.upperBound...]
    return !number.isEmpty && number.utf8.allSatisfy { $0 &- 0x30 < 10 }
  }

  private static let suffixes = [
    ".bak", ".orig", ".rej", ".tmp", ".temp", ".lock", ".new", ".old", ".augnew", ".augsave",
    ".part",
  ]

  /// `Cu??????`, where ln(1) puts its link before it renames it.
  private static func isLinkName(_ name: String) -> Bool {
    name.utf8.count == 8 && name.hasPrefix("Cu") && name.utf8.allSatisfy(\.isRandomCharacter)
  }

  /// What stands before a tail that a tool puts behind a key's name.
  private static func stems(of name: String) -> [String] {
    let bytes = Array(name.utf8)
    return (1..<max(bytes.count, 1)).compactMap { end in
      isTail(bytes[end...]) ? String(validating: bytes[..<end], as: UTF8.self) : nil
    }
  }

  private static func isTail(_ tail: ArraySlice<UInt8>) -> Bool {
    let text = String(decoding: tail, as: UTF8.self)
    for (mark, count) in marks where text.hasPrefix(mark) {
      let rest = tail.dropFirst(mark.utf8.count)
      let random = rest.prefix(count)
      let end = String(decoding: rest.dropFirst(count), as: UTF8.self)
      if random.count == count, end.isEmpty || (count == 8 && end == ".tmp"), random.isMixed {
        return true
      }
    }
    return isNumbered(text) || isPuppets(text)
  }

  /// What stands between a key and so many random characters.
  private static let marks: [(String, Int)] = [
    (".gawk.", 6), (".augnew.", 6), (".o", 6), (".r", 6), (".", 6), ("", 6), (".", 8), ("", 8),
  ]

  /// `.4711` and `4711.tmp`: a process number, or a rotated copy.
  private static func isNumbered(_ text: String) -> Bool {
    let body =
      text.hasPrefix(".") ? text.dropFirst() : text.dropLast(text.hasSuffix(".tmp") ? 4 : 0)
    guard body.utf8.count < text.utf8.count, !body.isEmpty else { return false }
    return body.utf8.allSatisfy { $0 &- 0x30 < 10 }
  }

  /// `20261121-4711-1abcde`: date, process, random.
  private static func isPuppets(_ text: String) -> Bool {
    let parts = text.split(separator: "-", omittingEmptySubsequences: false)
    return parts.count == 3 && parts[0].utf8.count == 8
      && (parts[0] + parts[1]).utf8.allSatisfy { $0 &- 0x30 < 10 } && !parts[1].isEmpty
      && !parts[2].isEmpty && parts[2].utf8.allSatisfy(\.isRandomCharacter)
  }
}

extension UInt8 {
  /// What mkstemp(3) and its kin choose from.
  fileprivate var isRandomCharacter: Bool { isDigitOrUnderscore || isLetter }
  fileprivate var isLetter: Bool { (self | 0x20) &- UInt8(ascii: "a") < 26 }
  fileprivate var isDigitOrUnderscore: Bool {
    self &- UInt8(ascii: "0") < 10 || self == UInt8(ascii: "_")
  }
  fileprivate var isUpper: Bool { self &- UInt8(ascii: "A") < 26 }
}

extension ArraySlice<UInt8> {
  /// Whether random characters made it, not a person: letters with digits between them, or
  /// capitals more than once behind small letters. `Password` and `Size10` are words.
  fileprivate var isMixed: Bool {
    guard allSatisfy(\.isRandomCharacter), contains(where: \.isLetter) else { return false }
    let changes = zip(self, dropFirst())
    let digitBeforeLetter = changes.contains { $0.isDigitOrUnderscore && $1.isLetter }
    let capitals = changes.reduce(0) {
      $0 + ($1.0.isLetter && !$1.0.isUpper && $1.1.isUpper ? 1 : 0)
    }
    return digitBeforeLetter || capitals > 1
  }
}
