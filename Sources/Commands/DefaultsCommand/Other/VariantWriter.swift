import PreferenceSchemas
import PropertyList

/// Writes values as texts of GVariants, which `dconf load` reads: the way back of what the module for
/// GSettings programs, or `import-from dconf`, has made of them.
///
/// What JSON has no form for is there as a string with GVariant's text, e.g. "<uint32 5>" in a
/// dictionary of variants; such a text is written as it is. A value without a type gets the nearest
/// one: `i`, or `x` and `t` for larger numbers, `d`, `b`, `s`, `ay`, arrays, and `a{sv}`.
///
/// Source: "GVariant Text Format" of the GLib manual.
enum VariantWriter {
  /// Returns the text of a value, with its type where that does not follow from the text.
  /// - Parameter type: the type that it must have; nil means any.
  /// - Returns: nil if it is no value of the type.
  static func text(of value: Value, as type: String? = nil) -> String? {
    let type = type ?? nearest(value)
    guard VariantType.isComplete(type), let text = plain(value, type) else { return nil }
    switch type {
    case "b", "i", "d", "s", "v": return text
    default: return (keywords[type] ?? "@\(type)") + " " + text
    }
  }

  private static let keywords = [
    "y": "byte", "n": "int16", "q": "uint16", "u": "uint32", "x": "int64", "t": "uint64",
    "h": "handle", "o": "objectpath", "g": "signature",
  ]

  // MARK: - Types

  private static func nearest(_ value: Value) -> String {
    switch value {
    case .boolean: return "b"
    case .integer(let number):
      return ["i", "x"].first { VariantType.bounds[$0]?.contains(number) == true } ?? "t"
    case .real, .single: return "d"
    case .data: return "ay"
    case .dictionary: return "a{sv}"
    case .uid: return "t"
    case .string, .date: return "s"
    case .array(let elements): return "a" + common(elements)
    }
  }

  /// The type that elements of an array have in common: a variant if they have none.
  private static func common(_ elements: [Value]) -> String {
    let types = Set(elements.map { isVariant($0) ? "v" : nearest($0) })
    if types.isEmpty { return "s" }
    if types.count == 1, let type = types.first { return type }
    return types == ["i", "x"] ? "x" : "v"
  }

  /// Whether the value is the text of a variant.
  private static func isVariant(_ value: Value) -> Bool {
    guard case .string(let text) = value, text.hasPrefix("<") else { return false }
    return written(text, "v") != nil
  }

  // MARK: - Texts

  /// The text of a value whose type is known.
  private static func plain(_ value: Value, _ type: String) -> String? {
    switch (type, value) {
    case ("s", _): return string(value).flatMap(quoted)
    case ("o", .string(let text)): return isObjectPath(text) ? quoted(text) : nil
    case ("g", .string(let text)):
      return VariantType.isComplete("(\(text))") ? quoted(text) : nil
    case ("v", _): return isVariant(value) ? string(value) : text(of: value).map { "<\($0)>" }
    case ("b", .boolean(let flag)): return flag ? "true" : "false"
    case ("b", .integer(0)): return "false"
    case ("b", .integer(1)): return "true"
    case ("b", .string(let word)): return words[word.lowercased()]
    case ("d", .real(let number)): return "\(number)"
    case ("d", .single(let number)): return "\(Double(number))"
    case ("d", .integer(let number)): return "\(number.double)"
    case (_, .integer(let number)) where VariantType.bounds[type]?.contains(number) == true:
      return number.description
    case (_, .string(let text)): return written(text, type)
    case _ where type.hasPrefix("m"): return plain(value, String(type.dropFirst()))
    default: return container(value, type)
    }
  }

  private static let words = ["true": "true", "yes": "true", "false": "false", "no": "false"]

  private static func container(_ value: Value, _ type: String) -> String? {
    let types = VariantType.elements(of: type)
    switch value {
    case .dictionary(let pairs) where type.hasPrefix("a{") && "sog".contains(types[0]):
      let texts = pairs.sorted { $0.key < $1.key }.map { pair -> String? in
        let key = plain(.string(pair.key.string), types[0])
        return key.flatMap { key in plain(pair.value, types[1]).map { "\(key): \($0)" } }
      }
      return joined(texts, "{", "}")
    case .data(let bytes) where type == "ay": return joined(bytes.map { "\($0)" }, "[", "]")
    case .array(let elements) where type.hasPrefix("(") && elements.count == types.count:
      let end = elements.count == 1 ? ",)" : ")"
      return joined(zip(elements, types).map { plain($0, $1) }, "(", end)
    case .array(let elements) where type.hasPrefix("a") && !type.hasPrefix("a{"):
      return joined(elements.map { plain($0, types[0]) }, "[", "]")
    default: return nil
    }
  }

  /// Nil if an element has no text.
  private static func joined(_ texts: [String?], _ begin: String, _ end: String) -> String? {
    let present = texts.compactMap { $0 }
    return present.count < texts.count ? nil : begin + present.joined(separator: ", ") + end
  }

  /// A text that stands for a value of the type already; nil if it does not.
  private static func written(_ text: String, _ type: String) -> String? {
    guard !text.unicodeScalars.contains(where: isControl) else { return nil }
    do throws(Malformed) {
      // `nothing`, maybe in a variant.
      guard let value = try VariantText.value(of: text) else {
        return type.hasPrefix("m") || type == "v" ? text : nil
      }
      return VariantType.fits(value, type) ? text : nil
    } catch {
      return nil
    }
  }

  /// A string, or the text that the file of another scalar has, which programs read as a string.
  private static func string(_ value: Value) -> String? {
    if case .string(let text) = value { return text }
    if [.array, .dictionary, .data].contains(value.kind) { return nil }
    return String(decoding: ValueText.canonical(value).dropLast(), as: UTF8.self)
  }

  private static func isObjectPath(_ text: String) -> Bool {
    let names = text.utf8.dropFirst().split(
      separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    let isName = { (name: Substring.UTF8View) in
      !name.isEmpty && name.allSatisfy { $0 == 0x5F || isLetterOrDigit($0) }
    }
    return text == "/" || (text.hasPrefix("/") && names.allSatisfy(isName))
  }

  private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
    (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
  }

  private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
    scalar.value < 0x20 || scalar.value == 0x7F
  }

  /// Nil if the text has a NUL, which no GVariant has.
  private static func quoted(_ text: String) -> String? {
    var quoted = "'"
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\0": return nil
      case "'", "\\": quoted += "\\\(scalar)"
      case "\n": quoted += "\\n"
      case _ where isControl(scalar):
        let digits = String(scalar.value, radix: 16)
        quoted += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: quoted.unicodeScalars.append(scalar)
      }
    }
    return quoted + "'"
  }
}
