import PropertyList

/// Types of GVariant, by their signatures.
package enum VariantType {
  /// The numbers of each integer type.
  package static let bounds: [String: ClosedRange<WideInteger>] = [
    "y": WideInteger(Int64(0))...WideInteger(Int64(UInt8.max)),
    "n": WideInteger(Int64(Int16.min))...WideInteger(Int64(Int16.max)),
    "q": WideInteger(Int64(0))...WideInteger(Int64(UInt16.max)),
    "i": WideInteger(Int64(Int32.min))...WideInteger(Int64(Int32.max)),
    "h": WideInteger(Int64(Int32.min))...WideInteger(Int64(Int32.max)),
    "u": WideInteger(Int64(0))...WideInteger(Int64(UInt32.max)),
    "x": WideInteger(Int64.min)...WideInteger(Int64.max),
    "t": WideInteger(Int64(0))...WideInteger(UInt64.max),
  ]

  /// Whether the text is the signature of one type.
  package static func isComplete(_ text: String) -> Bool {
    var rest = text[...]
    return skip(&rest, depth: 0) && rest.isEmpty
  }

  private static func skip(_ rest: inout Substring, depth: Int) -> Bool {
    guard depth < 64, let first = rest.popFirst() else { return false }
    switch first {
    case "a", "m": return skip(&rest, depth: depth + 1)
    case "(":
      while let next = rest.first, next != ")" {
        guard skip(&rest, depth: depth + 1) else { return false }
      }
      return rest.popFirst() == ")"
    case "{":
      guard let key = rest.popFirst(), "bynqiuxthdsog".contains(key),
        skip(&rest, depth: depth + 1)
      else { return false }
      return rest.popFirst() == "}"
    default: return "bynqiuxthdsogv".contains(first)
    }
  }

  /// The types in that of a container: of the items of a tuple, of keys and values of a dictionary,
  /// of the elements of an array.
  package static func elements(of type: String) -> [String] {
    if type.hasPrefix("a"), !type.hasPrefix("a{") { return [String(type.dropFirst())] }
    var rest = type.dropFirst(type.hasPrefix("a{") ? 2 : 1)
    var types: [String] = []
    var next = rest
    while skip(&next, depth: 0) {
      types.append(String(rest[..<next.startIndex]))
      rest = next
    }
    return types
  }

  /// Whether a file may have values of the type as texts of GVariants (`VariantText.kept`).
  static func mayBeText(_ type: String) -> Bool {
    type == "v" || type == "h" || isText(type)
  }

  /// Whether values of the type are kept as texts of GVariants: it has a maybe type, or a dictionary
  /// without strings as keys.
  static func isText(_ type: String) -> Bool {
    let keys = type.split(separator: "{", omittingEmptySubsequences: false).dropFirst()
    return type.contains("m") || keys.contains { !"sog".contains($0.first ?? "v") }
  }

  /// Whether a value, as `VariantText` reads it, can be one of the type.
  package static func fits(_ value: Value, _ type: String) -> Bool {
    switch (type, value) {
    case ("b", .boolean), ("s", .string), ("o", .string), ("g", .string), ("v", _), ("d", .real),
      ("d", .integer), ("ay", .data):
      return true
    case _ where type.hasPrefix("m"): return fits(value, String(type.dropFirst()))
    case (_, .integer(let number)): return bounds[type]?.contains(number) ?? false
    case (_, .array(let pairs)) where type.hasPrefix("a{"):
      return pairs.allSatisfy { fits($0, "(\(elements(of: type).joined()))") }
    case (_, .array(let elements)) where type.hasPrefix("a"):
      return elements.allSatisfy { fits($0, String(type.dropFirst())) }
    case (_, .array(let items)) where type.hasPrefix("("):
      let types = elements(of: type)
      // `nothing` is no value, and was left out.
      guard !type.contains("m") else { return true }
      return items.count == types.count && zip(items, types).allSatisfy { fits($0, $1) }
    case (_, .dictionary(let pairs)) where type.hasPrefix("a{"):
      let types = elements(of: type)
      return (pairs.isEmpty || "sog".contains(types[0]))
        && pairs.allSatisfy { fits($0.value, types[1]) }
    default: return false
    }
  }
}
