import PreferenceModel
import PropertyList

/// Tells which new files are tools' temporary and backup files: by their names together with the
/// way in which they are made. Pure functions.
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

  /// What becomes of a file or directory that is about to be made.
  enum Verdict: Equatable {
    /// It is a key at once. (A directory: it is refused.)
    case key
    /// It is a scratch file. If it is still there after some seconds of quiet, it becomes a key.
    case inDoubt
    /// It is a scratch file that never becomes a key by itself: its name *and* the way in which it
    /// is made, or the key beside it, say that a tool made it for itself.
    case temporary
  }

  /// Judges a new name by the way in which it is made. A name alone never makes a file a temporary
  /// one, because settings have such names too (`tab_width` beside `tab`, `sort.old`).
  /// - Parameter isKey: whether a key has that file name, or had it a moment ago (`RemovedNames`);
  ///   for `rename`: whether it is the name of the key that is renamed.
  static func judge(_ name: String, _ making: Making, isKey: (String) -> Bool) -> Verdict {
    if isEscaped(name) { return .key }
    if making == .directory {
      return name.hasSuffix(".lock") || name == ".~tmp~" ? .temporary : .key
    }
    // Of 478 traced edits by tools, 117 made a file in this way. All those files were temporary. But
    // programs make files that stay in this way, too (`open(path, "x+")`, Samba).
    let isPattern = NameCodec.isScratchPattern(name)
    if making == .file(exclusively: true, readsToo: true) {
      return isPattern ? .temporary : .inDoubt
    }
    if isPattern { return isTools(name, making, isKey) ? .temporary : .inDoubt }
    let isScratch =
      switch making {
      case .file(let exclusively, _): exclusively && isTemporary(name, isKey)
      case .rename: isBackup(name, isKey)
      case .link: isLinkName(name) || hasToolSuffix(name) || isBackup(name, isKey)
      case .directory: false
      }
    return isScratch ? .inDoubt : .key
  }

  /// Whether the first character of the name is escaped: it is meant for a key.
  private static func isEscaped(_ name: String) -> Bool {
    guard name.hasPrefix("%") else { return false }
    if case .key = NameCodec.decode(name) { return true }
    return NameCodec.keyOfEscaped(name) != nil
  }

  /// Whether a directory or file that is made at the root is a tool's temporary one and not a
  /// domain: those of rsync, `mktemp`, rdiff-backup, Unison, watchman and mutagen.
  static func isRootName(_ name: String) -> Bool {
    if name == ".~tmp~" || rootPrefixes.contains(where: { name.hasPrefix($0) }) { return true }
    if name.hasPrefix("tmp.") {
      let random = Array(name.utf8)[4...]
      return random.count == 10 && random.isMixed
    }
    let backup = "rdiff-backup.tmp."
    return name.hasPrefix(backup) && isNumber(name.dropFirst(backup.count))
  }

  private static let rootPrefixes = [".unison.", ".watchman-cookie-", ".mutagen-temporary-"]

  private static let suffixes = [
    ".bak", ".orig", ".rej", ".tmp", ".temp", ".lock", ".new", ".old", ".augnew", ".augsave",
    ".part", ".save",
  ]

  /// Whether the name ends like a tool's backup or temporary file.
  static func hasToolSuffix(_ name: String) -> Bool {
    suffixes.contains { name.hasSuffix($0) && name.utf8.count > $0.utf8.count }
  }

  /// Whether the name is that of a document with the end of a tool's file: no document has it.
  static func isOfDocument(_ name: String) -> Bool {
    suffixes.contains { name.hasSuffix(".json" + $0) || name.hasSuffix(".plist" + $0) }
  }

  // MARK: - Names that cannot be a key's as they are

  /// Whether a file with a name by pattern is a tool's: the key that it belongs to is there, or it
  /// is made exclusively and has a name that only tools give.
  private static func isTools(
    _ name: String, _ making: Making, _ isKey: (String) -> Bool
  ) -> Bool {
    // Editors make a backup by renaming or linking the key, or exclusively; people by a redirection.
    let isPlain = if case .file(exclusively: false, readsToo: _) = making { true } else { false }
    let isBackup = !name.hasPrefix(".") && !name.hasPrefix("#")
    if let stem = companion(of: name), isKey(stem) { return !(isPlain && isBackup) }
    guard !isPlain, making != .rename else { return false }
    let isSwap = swapSuffixes.contains { name.hasSuffix($0) }
    return name.hasPrefix(".")
      && (isSwap || toolPrefixes.contains { name.hasPrefix($0) }
        || temporarySuffixes.contains { name.hasSuffix($0) })
  }

  private static let swapSuffixes = [".swp", ".swo", ".swn", ".swpx", ".un~"]
  private static let temporarySuffixes = [".tmp", ".temp", ".lock", ".part", ".augnew"]
  private static let toolPrefixes = [
    ".#", ".goutputstream-", ".~lock.", ".nfs", ".unison.", ".syncthing.", ".mutagen-temporary-",
  ]

  /// The name of the file that an editor's companion belongs to: K of `K~`, `K.~1~`, `#K#`, `.#K`,
  /// `.K.swp` and `.K.un~`; nil for other names.
  private static func companion(of name: String) -> String? {
    if name.hasPrefix("#"), name.hasSuffix("#") { return String(name.dropFirst().dropLast()) }
    if name.hasPrefix(".#") { return String(name.dropFirst(2)) }
    if name.hasPrefix("."), let end = swapSuffixes.first(where: { name.hasSuffix($0) }) {
      return String(name.dropFirst().dropLast(end.count))
    }
    guard name.hasSuffix("~") else { return nil }
    let stem = name.dropLast()
    guard let mark = stem.ranges(of: ".~").last, isNumber(stem[mark.upperBound...]) else {
      return String(stem)
    }
    return String(stem[..<mark.lowerBound])
  }

  // MARK: - Names that can be a key's

  /// Whether a file of that name that is made exclusively, but not for reading, is a tool's
  /// temporary one.
  private static func isTemporary(_ name: String, _ isKey: (String) -> Bool) -> Bool {
    temporarySuffixes.contains { name.hasSuffix($0) } || stems(of: name).contains(where: isKey)
  }

  /// Whether the name is that of a key with the end of a backup: `K.old`, `K.1`.
  private static func isBackup(_ name: String, _ isKey: (String) -> Bool) -> Bool {
    for suffix in suffixes where name.hasSuffix(suffix) {
      if isKey(String(name.dropLast(suffix.count))) { return true }
    }
    guard let mark = name.ranges(of: ".").last, isNumber(name[mark.upperBound...]) else {
      return false
    }
    return isKey(String(name[..<mark.lowerBound]))
  }

  private static func isNumber(_ text: Substring) -> Bool {
    !text.isEmpty && text.utf8.allSatisfy { $0 &- 0x30 < 10 }
  }

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
    return marks.contains { mark in
      let random = tail.dropFirst(mark.utf8.count)
      return text.hasPrefix(mark) && random.count == 6 && random.isMixed
    }
  }

  /// What gawk, augeas and patch put between a key's name and six random characters.
  private static let marks = [".gawk.", ".augnew.", ".o", ".r"]
}

extension UInt8 {
  /// Whether mkstemp(3) and similar functions choose the character for random names.
  fileprivate var isRandomCharacter: Bool { isDigitOrUnderscore || isLetter }
  fileprivate var isDigitOrUnderscore: Bool { isDigit || self == UInt8(ascii: "_") }
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
