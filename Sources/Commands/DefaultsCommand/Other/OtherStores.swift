import PreferenceDeclarations
import PreferenceSchemas
import PropertyList

/// The preferences of other systems, as documents for `prefs apply`. Those of dconf and GSettings
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

  /// What `gsettings list-recursively` prints: the keys of a schema are in the domain of its path, or
  /// of its id where it is not known here.
  /// - Parameter domains: the domains of schemas, by their ids.
  static func gsettings(_ text: String, _ domains: [String: String]) -> Document {
    var document = Document()
    for line in text.split(whereSeparator: \.isNewline) {
      let words = line.split(separator: " ", maxSplits: 2)
      guard words.count == 3 else { continue }
      let id = String(words[0])
      document.set(variant: words[2], String(words[1]), in: domains[id] ?? id)
    }
    return document
  }
}
