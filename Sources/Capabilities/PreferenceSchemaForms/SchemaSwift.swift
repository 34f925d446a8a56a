import PreferenceModel
import PreferenceSchemas
import PropertyList

// A schema as Swift: the typed keys of a program that uses the library `Preferences`.

extension Schema {
  /// The source of a file with one member of `Keys` for each key at the top level, and an
  /// enumeration for each string that has choices. Keys of types that have no typed key
  /// (dictionaries of several types) are left out.
  public func swift(of domain: DomainName) -> String {
    var enumerations = ""
    var members = ""
    var used: Set<String> = []
    var types = SwiftType.own
    for key in keys {
      guard let typed = SwiftType(key, &types) else { continue }
      let name = SwiftName.unique(SwiftName.member(key.name.string), &used)
      if let enumeration = typed.enumeration { enumerations += "\n" + enumeration }
      for line in SchemaKey.wrapped(key.remarks) { members += "  /// \(line)\n" }
      let literal = SwiftName.literal(key.name.string)
      let fallback = typed.fallback.map { ", default: \($0)" } ?? ""
      members +=
        "  public static let \(name) = PreferenceKey<\(typed.name)>(\(literal)\(fallback))\n"
    }
    let about = title.isEmpty ? domain.string : title
    return """
      // Made by `prefs schema swift \(domain)`. Change the schema, not this file.

      import Foundation
      import Preferences

      /// The keys of \(about.lines.joined(separator: " ")).
      public enum Keys {
      \(members)}
      \(enumerations)
      """
  }
}

/// The Swift type of a key, and its default as source.
private struct SwiftType {
  var name: String
  /// nil if the key is optional.
  var fallback: String?
  var enumeration: String?

  /// The types that a file of keys uses or makes itself.
  static let own: Set<String> = [
    "Keys", "String", "Int", "Double", "Bool", "Date", "Data", "PreferenceKey", "PreferenceValue",
    "CaseIterable", "Any", "Self", "Type", "Protocol",
  ]

  /// - Parameter types: the names of types that are taken; one that is made is added.
  init?(_ key: SchemaKey, _ types: inout Set<String>) {
    guard let kind = key.kind else { return nil }
    if kind == .string, !key.choices.isEmpty, !key.allowsOthers,
      let made = Self.enumeration(key, &types)
    {
      self = made
      return
    }
    guard let plain = Self.name(of: key) else { return nil }
    if let value = key.fallback, let source = Self.source(of: value, kind, key) {
      (name, fallback) = (plain, source)
    } else {
      name = plain + "?"
    }
  }

  private static func name(of key: SchemaKey) -> String? {
    switch key.kind {
    case .string: return "String"
    case .integer: return "Int"
    case .real: return "Double"
    case .boolean: return "Bool"
    case .date: return "Date"
    case .data: return "Data"
    case .array where key.members.count == 1:
      return key.members.first.flatMap(name).map { "[\($0)]" }
    case .dictionary where key.members.count <= 2:
      let any = key.members.first { $0.name == SchemaKey.anyValue }
      return any.flatMap(name).map { "[String: \($0)]" }
    default: return nil
    }
  }

  /// The source of a default; nil if it has no literal.
  private static func source(of value: Value, _ kind: Kind, _ key: SchemaKey) -> String? {
    switch (kind, value) {
    case (.string, .string(let text)): return SwiftName.literal(text)
    case (.integer, .integer(let number)): return number.signed.map { "\($0)" }
    case (.boolean, .boolean(let isTrue)): return "\(isTrue)"
    case (.real, .integer(let number)): return number.signed.map { "\($0)" }
    case (.real, .real(let number)) where number.isFinite: return "\(number)"
    case (.real, .single(let number)) where number.isFinite: return "\(number)"
    case (.array, .array(let elements)):
      guard let element = key.members.first, let kind = element.kind else { return nil }
      let sources = elements.map { source(of: $0, kind, element) }
      guard !sources.contains(nil) else { return nil }
      return "[\(sources.compactMap { $0 }.joined(separator: ", "))]"
    default: return nil
    }
  }

  private static func enumeration(_ key: SchemaKey, _ types: inout Set<String>) -> SwiftType? {
    let texts = key.choices.compactMap(\.string)
    guard texts.count == key.choices.count, Set(texts).count == texts.count else { return nil }
    let type = SwiftName.unique(SwiftName.type(key.name.string), &types)
    let subject = key.name.string.split(whereSeparator: \.isNewline).joined(separator: " ")
    var used: Set<String> = []
    var cases: [String: String] = [:]
    var source =
      "/// What `\(subject)` may be.\npublic enum \(type): String, PreferenceValue, CaseIterable {\n"
    for text in texts {
      let name = SwiftName.unique(SwiftName.member(text), &used)
      cases[text] = name
      source += "  case \(name) = \(SwiftName.literal(text))\n"
    }
    source += "}\n"
    var made = SwiftType(name: type, fallback: nil, enumeration: source)
    if case .string(let text)? = key.fallback, let name = cases[text] {
      made.fallback = ".\(name)"
    } else {
      made.name += "?"
    }
    return made
  }

  private init(name: String, fallback: String?, enumeration: String?) {
    (self.name, self.fallback, self.enumeration) = (name, fallback, enumeration)
  }
}

/// Names and literals of Swift.
private enum SwiftName {
  /// Returns a name for a member, e.g. `tabWidth` for `TabWidth` and `urlPath` for `URLPath`.
  static func member(_ text: String) -> String {
    let whole = type(text)
    let capitals = whole.prefix { $0.isUppercase }
    // The last capital of several begins the next word.
    let count = capitals.count == whole.count ? capitals.count : max(1, capitals.count - 1)
    let name = whole.prefix(count).lowercased() + whole.dropFirst(count)
    return keywords.contains(name) ? "`\(name)`" : name
  }

  /// Returns a name for a type, e.g. `TabWidth` for `tab-width`.
  static func type(_ text: String) -> String {
    let words = text.split { !($0.isASCII && ($0.isLetter || $0.isNumber)) }
    let name = words.map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined()
    guard let first = name.first else { return "Value" }
    return first.isNumber ? "Value\(name)" : name
  }

  static func unique(_ name: String, _ used: inout Set<String>) -> String {
    var (result, number) = (name, 2)
    while !used.insert(result).inserted {
      result = name.hasSuffix("`") ? "\(name.dropLast())\(number)`" : "\(name)\(number)"
      number += 1
    }
    return result
  }

  static func literal(_ text: String) -> String {
    var literal = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\\", "\"": literal += "\\\(scalar)"
      case _ where scalar.value < 0x20 || scalar.value == 0x7F:
        literal += "\\u{\(String(scalar.value, radix: 16))}"
      default: literal.unicodeScalars.append(scalar)
      }
    }
    return literal + "\""
  }

  private static let keywords: Set<String> = [
    "associatedtype", "class", "deinit", "enum", "extension", "fileprivate", "func", "import",
    "init", "inout", "internal", "let", "open", "operator", "private", "precedencegroup",
    "protocol", "public", "rethrows", "static", "struct", "subscript", "typealias", "var", "break",
    "case", "catch", "continue", "default", "defer", "do", "else", "fallthrough", "for", "guard",
    "if", "in", "repeat", "return", "throw", "switch", "where", "while", "as", "false", "is", "nil",
    "self", "super", "true", "try", "type", "any", "some", "await", "async",
  ]
}
