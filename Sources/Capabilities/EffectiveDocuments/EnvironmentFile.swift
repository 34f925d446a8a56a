import PreferenceModel
import PropertyList

/// A file of variables that `EnvironmentFile=` of systemd and `.` of a shell read as the same
/// values: each in double quotes, in which `"`, `\`, `$` and the backquote are escaped.
///
/// systemd leaves out names that are not those of variables, older versions leave out values with
/// control characters, and one value that is not a text of Unicode makes it refuse the whole file.
enum EnvironmentFile {
  /// The most bytes that Linux passes to a program in one variable: name, `=`, value and NUL.
  private static let longest = 131_072

  /// Variables that a shell sets itself, does not let anybody set, or that change what it runs.
  private static let reserved: Set<String> = [
    "BASHOPTS", "BASHPID", "DIRSTACK", "ENV", "EPOCHREALTIME", "EPOCHSECONDS", "EUID", "FUNCNAME",
    "GROUPS", "HISTCMD", "IFS", "LINENO", "OPTIND", "PATH", "PPID", "PROMPT_COMMAND", "PS4",
    "RANDOM", "SECONDS", "SHELLOPTS", "SRANDOM", "UID", "_",
  ]

  static func text(of values: ValueDictionary) -> String {
    let entries = values.sorted { $0.key < $1.key }.map { ($0.key, name(of: $0.key), $0.value) }
    var uses: [String: Int] = [:]
    for (_, name, _) in entries { uses[name, default: 0] += 1 }
    var (comments, lines) = ("", "")
    for (key, name, value) in entries {
      let text = value.plainText
      let reason =
        uses[name] == 1
        ? obstacle(name, text) : "\(name) would be the variable of several keys"
      if let reason {
        comments += EffectiveDocument.comment(NameCodec.encode(key), reason)
      } else {
        lines += "\(name)=\"\(escaped(text))\"\n"
      }
    }
    return comments + lines
  }

  /// Returns the variable of a key: other characters than letters, digits and underscores have
  /// become underscores, and a leading digit has one before it.
  private static func name(of key: Key) -> String {
    let name = String(
      String.UnicodeScalarView(key.string.unicodeScalars.map { isNamePart($0) ? $0 : "_" }))
    guard let first = name.utf8.first, (0x30...0x39).contains(first) else { return name }
    return "_" + name
  }

  private static func isNamePart(_ character: Unicode.Scalar) -> Bool {
    switch character {
    case "a"..."z", "A"..."Z", "0"..."9", "_": true
    default: false
    }
  }

  /// Returns why no variable of the name can have the text; nil if one can.
  private static func obstacle(_ name: String, _ text: String) -> String? {
    if name.isEmpty { return "its name is empty" }
    if reserved.contains(name) || name.hasPrefix("BASH_") || name.hasPrefix("LD_") {
      return "\(name) is a variable of the shell or of the loader of programs"
    }
    if name.utf8.count + text.utf8.count > longest - 2 {
      return "its value is longer than a program's environment allows"
    }
    if !text.unicodeScalars.allSatisfy(canHold) {
      return "its value has characters that systemd refuses"
    }
    return nil
  }

  /// Whether systemd accepts the character: no control character but tab and newline, and no
  /// noncharacter of Unicode.
  private static func canHold(_ character: Unicode.Scalar) -> Bool {
    switch character.value {
    case 0x09, 0x0A: true
    case 0..<0x20, 0x7F, 0xFDD0...0xFDEF: false
    default: character.value & 0xFFFE != 0xFFFE
    }
  }

  private static func escaped(_ text: String) -> String {
    var escaped = ""
    for character in text.unicodeScalars {
      if "\"\\$`".unicodeScalars.contains(character) { escaped += "\\" }
      escaped.unicodeScalars.append(character)
    }
    return escaped
  }
}
