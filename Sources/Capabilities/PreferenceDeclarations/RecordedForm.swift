import PreferenceHistory
import PreferenceModel
import PropertyList
import SystemCalls

/// How changes are written down, so that they can be made again: `prefs record` prints them so.
package enum RecordedForm: String, CaseIterable {
  /// Lines for a shell.
  case commands
  /// A document for `prefs apply`.
  case apply
  /// A file of tasks. The first ones apply documents, so that they change nothing where everything
  /// is as it should be; keys that were removed have a task each.
  case ansible
  /// A configuration profile that sets the values once for each user.
  case profile

  /// The text that makes the changes again, and the keys of which it does not.
  package func text(of changes: [NetChange]) -> (text: String, rest: [RecordedKey]) {
    let changes = Self.ordered(changes)
    switch self {
    case .commands:
      let lines = changes.map { (change: $0, line: $0.command.map { $0.shellLine + "\n" }) }
      return (
        lines.compactMap(\.line).joined(), lines.filter { $0.line == nil }.map(\.change.key)
      )
    case .apply:
      let (domains, rest) = Self.domains(changes, in: .user)
      return (Self.xml(.dictionary(domains)), rest.map(\.key))
    case .ansible: return Self.tasks(changes)
    case .profile:
      let (domains, rest) = Self.domains(changes, in: .user)
      return (Self.xml(Self.profile(domains)), rest.map(\.key))
    }
  }

  /// The changes in an order in which commands make them anew: without `-currentHost`, a command
  /// writes to this host's list if that has the key by then.
  private static func ordered(_ changes: [NetChange]) -> [NetChange] {
    func stage(_ change: NetChange) -> Int {
      let isOfHost = change.key.location.place == .host
      return change.after == .none ? (isOfHost ? 0 : 1) : (isOfHost ? 3 : 2)
    }
    return (0...3).flatMap { number in changes.filter { stage($0) == number } }
  }

  private static func xml(_ value: Value) -> String {
    String(decoding: Document.anyXML(value), as: UTF8.self)
  }

  /// The values that were set in a place, by domain and key, and the other changes, among them
  /// those to a value that XML does not have.
  private static func domains(
    _ changes: [NetChange], in place: Place
  ) -> (domains: ValueDictionary, rest: [NetChange]) {
    var domains: ValueDictionary = [:]
    var rest: [NetChange] = []
    for change in changes {
      guard change.key.location.place == place, let value = change.after.value,
        Document.element(value) != nil
      else {
        rest.append(change)
        continue
      }
      domains[Key(change.key.location.domain.string)].replace([change.key.key], with: value)
    }
    return (domains, rest)
  }

  // MARK: - Ansible

  private static func tasks(_ changes: [NetChange]) -> (text: String, rest: [RecordedKey]) {
    var (sets, removals) = ("", "")
    var rest = changes
    for (place, words) in [(Place.user, [String]()), (.host, ["-currentHost"])] {
      let (domains, others) = domains(rest, in: place)
      rest = others
      guard !domains.isEmpty else { continue }
      sets += task(
        "Preferences" + (place == .host ? " of this host" : ""),
        ["prefs"] + words + ["apply", "-"], xml(.dictionary(domains)),
        "changed_when: result.rc == 2", "failed_when: result.rc not in [0, 2]")
    }
    var unknown: [RecordedKey] = []
    for change in rest {
      guard change.after == .none, let command = change.command else {
        unknown.append(change.key)
        continue
      }
      removals += task(
        "\(change.key.location.domain) \(change.key.key) is not set", command, nil,
        "changed_when: result.rc == 0",
        "failed_when: \"result.rc != 0 and 'does not exist' not in result.stderr "
          + "and 'not found' not in result.stderr\"")
    }
    return ("---\n" + removals + sets, unknown)
  }

  private static func task(
    _ name: String, _ words: [String], _ input: String?, _ conditions: String...
  ) -> String {
    var text = "- name: \(quoted(name))\n  ansible.builtin.command:\n"
    text += "    argv: [\(words.map(quoted).joined(separator: ", "))]\n"
    if let input { text += "    stdin: \(quoted(input))\n" }
    text += "  register: result\n"
    return text + conditions.map { "  \($0)\n" }.joined()
  }

  /// A string of YAML in double quotes. Ansible takes no braces in it for a template.
  private static func quoted(_ text: String) -> String {
    var line = text.utf8.contains(UInt8(ascii: "{")) ? "!unsafe \"" : "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"", "\\": line += "\\\(scalar)"
      case _ where (0x20..<0x7F).contains(scalar.value): line.unicodeScalars.append(scalar)
      case _ where (0xA0..<0x2000).contains(scalar.value): line.unicodeScalars.append(scalar)
      default:
        let digits = String(scalar.value, radix: 16)
        line += "\\U" + String(repeating: "0", count: 8 - digits.count) + digits
      }
    }
    return line + "\""
  }

  // MARK: - Profile

  private static func profile(_ domains: ValueDictionary) -> Value {
    let uuid = uuid()
    let time = Value.date(AbsoluteTime(.now))
    var payload: ValueDictionary = [:]
    for (domain, settings) in domains {
      let once: Value = ["mcx_data_timestamp": time, "mcx_preference_settings": settings]
      payload[domain] = ["Set-Once": [once]]
    }
    let content: Value = [
      "PayloadType": "com.apple.ManagedClient.preferences", "PayloadVersion": 1,
      "PayloadIdentifier": .string("recorded.\(uuid).preferences"),
      "PayloadUUID": .string(Self.uuid()), "PayloadContent": .dictionary(payload),
    ]
    return [
      "PayloadType": "Configuration", "PayloadVersion": 1, "PayloadUUID": .string(uuid),
      "PayloadIdentifier": .string("recorded.\(uuid)"), "PayloadDisplayName": "Recorded",
      "PayloadContent": [content],
    ]
  }

  /// A random UUID (RFC 9562, version 4).
  private static func uuid() -> String {
    var bytes = (0..<16).map { _ in UInt8.random(in: 0...255) }
    bytes[6] = bytes[6] & 0x0F | 0x40
    bytes[8] = bytes[8] & 0x3F | 0x80
    let digits = bytes.hexadecimal.uppercased()
    var text = ""
    for (index, digit) in digits.enumerated() {
      if [8, 12, 16, 20].contains(index) { text += "-" }
      text.append(digit)
    }
    return text
  }
}

extension NetChange {
  /// The words of the command that makes the change again; nil where there is none: the value is
  /// not kept, or the place is not one of `defaults`.
  package var command: [String]? {
    let location = key.location
    guard [.user, .host, .cloud].contains(location.place), after.isKnown else { return nil }
    let words = ["defaults"] + (location.place == .host ? ["-currentHost"] : [])
    let target = [location.domain == .global ? "-g" : location.domain.string, key.key.string]
    // No word of a command line can have a NUL.
    if target.contains(where: { $0.utf8.contains(0) }) { return nil }
    guard let value = after.value else { return words + ["delete"] + target }
    return Self.words(value).map { words + ["write"] + target + $0 }
  }

  /// The words of a command line that mean the value; nil if none do.
  private static func words(_ value: Value) -> [String]? {
    switch value {
    case .string(let text): text.utf8.contains(0) ? nil : ["-string", text]
    case .boolean(let flag): ["-bool", "\(flag)"]
    case .integer(let number) where number.signed != nil: ["-int", "\(number)"]
    case .data(let bytes): ["-data", bytes.hexadecimal]
    case .date:
      ["-date", String(decoding: ValueText.canonical(value).dropLast(), as: UTF8.self)]
    case .single(let number) where number.isFinite: ["-float", "\(number)"]
    case .array(let items) where items.contains(where: \.isSingle):
      joined(items.map { scalar($0) }).map { ["-array"] + $0 } ?? element(value)
    case .dictionary(let items) where items.contains(where: { $0.value.isSingle }):
      joined(items.sorted { $0.key < $1.key }.map { scalar($0.value, of: $0.key.string) })
        .map { ["-dict"] + $0 } ?? element(value)
    case .integer, .real, .single, .uid, .array, .dictionary: element(value)
    }
  }

  /// The words of a value in a container that the command line spells out, so that reals of 32 bits
  /// keep their size; nil if it can have no such value.
  private static func scalar(_ value: Value) -> [String]? {
    switch value {
    case .array, .dictionary: nil
    default: words(value)
    }
  }

  private static func scalar(_ value: Value, of key: String) -> [String]? {
    key.utf8.contains(0) ? nil : scalar(value).map { ["-string", key] + $0 }
  }

  /// The words of all; nil where one has none.
  private static func joined(_ words: [[String]?]) -> [String]? {
    let known = words.compactMap { $0 }
    return known.count == words.count ? known.flatMap { $0 } : nil
  }

  private static func element(_ value: Value) -> [String]? {
    Document.element(value).map { [String(decoding: $0, as: UTF8.self)] }
  }
}

extension Value {
  fileprivate var isSingle: Bool { if case .single = self { true } else { false } }
}

extension [String] {
  /// The words as a line of a shell.
  package var shellLine: String { map(Self.quoted).joined(separator: " ") }

  /// The words as one line for bash, zsh and ksh, also where one has newlines: control characters,
  /// and marks of direction, are escapes in `$'..'`. So it can be pasted, and printed to a
  /// terminal.
  package var printableShellLine: String {
    map { word in
      let isPrintable = word.printable().utf8.count == word.utf8.count
      return isPrintable
        ? Self.quoted(word) : "$'" + word.unicodeScalars.map(Self.escaped).joined() + "'"
    }.joined(separator: " ")
  }

  private static func escaped(_ scalar: Unicode.Scalar) -> String {
    switch scalar {
    case "\n": return "\\n"
    case "\t": return "\\t"
    case "'", "\\": return "\\\(scalar)"
    default:
      let text = String(scalar)
      if text.printable() == text { return text }
      return text.utf8.map { "\\x" + [$0].hexadecimal }.joined()
    }
  }

  /// Byte by byte: a quote and a combining mark behind it are one character.
  private static func quoted(_ text: String) -> String {
    let plain = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+:,@%/=".utf8)
    if !text.isEmpty, text.utf8.allSatisfy({ plain.contains($0) }) { return text }
    let quote = UInt8(ascii: "'")
    var bytes = [quote]
    for byte in text.utf8 {
      if byte == quote { bytes += "'\\'".utf8 }
      bytes.append(byte)
    }
    return String(decoding: bytes + [quote], as: UTF8.self)
  }
}
