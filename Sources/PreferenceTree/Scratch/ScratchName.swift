/// Tells which new names are those of tools' temporary and backup files. Pure functions.
///
/// The names of keys that exist must not be asked about: a key wins over every pattern.
enum ScratchName {
  /// How the name is about to be made.
  enum Making: Equatable {
    /// By open(2) with O_CREAT; `exclusively`: O_EXCL; `readsToo`: O_RDWR.
    case file(exclusively: Bool, readsToo: Bool)
    /// By rename(2) of a key to the name.
    case rename
    /// By link(2) or symlink(2), as the new name.
    case link
    /// By mkdir(2), in a domain.
    case directory
  }

  /// Whether the file or directory that is about to be made is a scratch one.
  /// - Parameter isKey: whether a key has that file name, or had it a moment ago (`Departures`). It
  ///   is called only if the end of `name` looks like one that a tool adds.
  static func isScratch(
    _ name: String, _ making: Making, isKey: (String) -> Bool
  ) -> Bool {
    // A name whose first character is escaped is meant for a key.
    if name.hasPrefix("%"), case .key = NameCodec.decode(name) { return false }
    if case .directory = making { return name.hasSuffix(".lock") || name == ".~tmp~" }
    if NameCodec.isScratchPattern(name) { return true }
    switch making {
    // Of 478 traced edits by tools, 117 made a file in this way. All those files were temporary.
    case .file(exclusively: true, readsToo: true): return true
    case .link where isLinkName(name): return true
    case .file, .rename, .link, .directory: break
    }
    for suffix in suffixes where name.hasSuffix(suffix) {
      if making == .file(exclusively: true, readsToo: false) || making == .link { return true }
      if isKey(String(name.dropLast(suffix.count))) { return true }
    }
    return stems(of: name).contains(where: isKey)
  }

  /// Whether a new file is a scratch one only because of the way in which it is made: nothing in its
  /// name says so. Programs make files that stay in this way too (`open(path, "x+")`, Samba).
  static func isDoubtful(_ name: String, _ making: Making, isKey: (String) -> Bool) -> Bool {
    making == .file(exclusively: true, readsToo: true)
      && !isScratch(name, .file(exclusively: true, readsToo: false), isKey: isKey)
  }

  /// Whether a directory that is made at the root is a tool's temporary one (`mktemp -d`, rsync,
  /// rdiff-backup) and not a domain.
  static func isRootDirectory(_ name: String) -> Bool {
    if name == ".~tmp~" || name.hasPrefix("tmp.") { return true }
    guard let mark = name.ranges(of: ".tmp.").last else { return false }
    let number = name[mark.upperBound...]
    return !number.isEmpty && number.utf8.allSatisfy { $0 &- 0x30 < 10 }
  }

  private static let suffixes = [
    ".bak", ".orig", ".rej", ".tmp", ".temp", ".lock", ".new", ".old", ".augnew", ".augsave",
    ".part", ".save",
  ]

  /// Whether the name has the form `Cu??????`, under which ln(1) makes a link before it renames it.
  private static func isLinkName(_ name: String) -> Bool {
    name.utf8.count == 8 && name.hasPrefix("Cu") && name.utf8.allSatisfy(\.isRandomCharacter)
  }

  /// The beginnings of the name behind which the rest looks like a tail that a tool adds.
  private static func stems(of name: String) -> [String] {
    let bytes = Array(name.utf8)
    return (1..<max(bytes.count, 1)).compactMap { end in
      isTail(bytes[end...]) ? String(utf8: bytes[..<end]) : nil
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
    return isNumbered(text) || isPuppets(text) || isEmergency(text)
  }

  /// Whether the tail is like `.save.1`: what nano(1) leaves when its terminal goes, after the first.
  private static func isEmergency(_ text: String) -> Bool {
    text.hasPrefix(".save.") && isNumbered(String(text.dropFirst(5)))
  }

  /// What tools put between a key's name and random characters, and how many of those follow.
  private static let marks: [(String, Int)] = [
    (".gawk.", 6), (".augnew.", 6), (".o", 6), (".r", 6), (".", 6), ("", 6), (".", 8), ("", 8),
  ]

  /// Whether the tail is like `.4711` or `4711.tmp`: a process number, or that of a rotated copy.
  private static func isNumbered(_ text: String) -> Bool {
    let body =
      text.hasPrefix(".") ? text.dropFirst() : text.dropLast(text.hasSuffix(".tmp") ? 4 : 0)
    guard body.utf8.count < text.utf8.count, !body.isEmpty else { return false }
    return body.utf8.allSatisfy { $0 &- 0x30 < 10 }
  }

  /// Whether the tail is like Puppet's `20261121-4711-1abcde`: date, process number, random.
  private static func isPuppets(_ text: String) -> Bool {
    let parts = text.split(separator: "-", omittingEmptySubsequences: false)
    return parts.count == 3 && parts[0].utf8.count == 8
      && (parts[0] + parts[1]).utf8.allSatisfy { $0 &- 0x30 < 10 } && !parts[1].isEmpty
      && !parts[2].isEmpty && parts[2].utf8.allSatisfy(\.isRandomCharacter)
  }
}

extension UInt8 {
  /// Whether mkstemp(3) and similar functions choose the character for random names.
  fileprivate var isRandomCharacter: Bool { isDigitOrUnderscore || isLetter }
  fileprivate var isLetter: Bool { (self | 0x20) &- UInt8(ascii: "a") < 26 }
  fileprivate var isDigitOrUnderscore: Bool {
    self &- UInt8(ascii: "0") < 10 || self == UInt8(ascii: "_")
  }
  fileprivate var isUpper: Bool { self &- UInt8(ascii: "A") < 26 }
}

extension ArraySlice<UInt8> {
  /// Whether the characters look random: a digit or `_` is before a letter, or more than one
  /// capital is behind a small letter. `Password` and `Size10` look like words.
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
