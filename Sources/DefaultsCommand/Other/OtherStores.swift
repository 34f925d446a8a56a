import PreferenceDeclarations
import PropertyList

/// The preferences of other systems, as documents for `defaults apply`. Those of dconf and GSettings
/// are as programs that use GSettings have them in a mount (`VariantText.kept`).
enum OtherStores {
  /// A document, and what could not be taken over.
  struct Document {
    var domains: ValueDictionary = [:]
    var rest: [String] = []

    mutating func set(_ value: Value, _ key: String, in domain: String) {
      domains[Key(domain)].replace([Key(key)], with: value)
    }

    fileprivate mutating func set(variant text: Substring, _ key: String, in domain: String) {
      do throws(Malformed) {
        set(try VariantText.kept(text), key, in: domain)
      } catch {
        rest.append("\(domain) \(key): \(error.reason)")
      }
    }
  }

  /// What `dconf dump /` prints: a directory is a domain (`GSettingsPath`). Keys of the root have
  /// none.
  static func dconf(_ text: String) -> Document {
    var document = Document()
    var path: Substring = "/"
    for line in text.split(whereSeparator: \.isNewline) {
      if line.hasPrefix("["), line.hasSuffix("]") {
        path = line.dropFirst().dropLast()
      } else if let middle = line.firstIndex(of: "=") {
        let key = String(line[..<middle])
        if let domain = GSettingsPath.domain(of: path) {
          document.set(variant: line[line.index(after: middle)...], key, in: domain)
        } else {
          document.rest.append("\(path) \(key): no domain can have the name of its path")
        }
      }
    }
    return document
  }

  /// What `gsettings list-recursively` prints: a schema is a domain.
  static func gsettings(_ text: String) -> Document {
    var document = Document()
    for line in text.split(whereSeparator: \.isNewline) {
      let words = line.split(separator: " ", maxSplits: 2)
      guard words.count == 3 else { continue }
      document.set(variant: words[2], String(words[1]), in: String(words[0]))
    }
    return document
  }

  /// A file of KDE: it is a domain, its groups are dictionaries, nested as they are. `true`,
  /// `false` and integers have their types, because the file has none; all else is a string.
  /// Entries for a language are left out, because the system's languages choose among them.
  static func kconfig(_ text: String, domain: String) -> Document {
    var document = Document()
    var root: Value?
    var path: [Key] = []
    for line in text.split(whereSeparator: \.isNewline).map({ $0.drop(while: \.isWhitespace) }) {
      if line.hasPrefix("#") { continue }
      if line.hasPrefix("[") {
        path = line.split(separator: "]").map { Key(String($0.drop { $0 == "[" })) }
          .filter { $0 != "$i" }
        continue
      }
      guard let middle = line.firstIndex(of: "=") else { continue }
      let name = line[..<middle].split(separator: "[").map(String.init)
      guard let key = name.first else { continue }
      if name.count > 1, !name[1].hasPrefix("$") {
        document.rest.append("\(domain) \(line[..<middle]): it is for a language")
        continue
      }
      let value = kconfigValue(String(line[line.index(after: middle)...]))
      root.replace(path + [Key(key)], with: value)
    }
    document.domains[Key(domain)] = root
    return document
  }

  private static func kconfigValue(_ text: String) -> Value {
    if text == "true" || text == "false" { return .boolean(text == "true") }
    if let number = Int64(text), "\(number)" == text { return .integer(WideInteger(number)) }
    var plain = ""
    var isEscaped = false
    let escapes: [Character: Character] = ["s": " ", "n": "\n", "t": "\t", "r": "\r"]
    for character in text {
      if isEscaped {
        plain.append(escapes[character] ?? character)
        isEscaped = false
      } else if character == "\\" {
        isEscaped = true
      } else {
        plain.append(character)
      }
    }
    return .string(plain)
  }
}
