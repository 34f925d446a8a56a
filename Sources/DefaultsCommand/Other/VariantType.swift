import PropertyList

/// Types of GVariant, by their signatures.
enum VariantType {
  /// The numbers of each integer type.
  static let bounds: [String: ClosedRange<WideInteger>] = [
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
  static func isComplete(_ text: String) -> Bool {
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

  /// Whether a value, as `VariantText` reads it, can be one of the type.
  static func fits(_ value: Value, _ type: String) -> Bool {
    switch (type, value) {
    case ("b", .boolean), ("s", .string), ("o", .string), ("g", .string), ("v", _), ("d", .real),
      ("d", .integer), ("ay", .data):
      return true
    case _ where type.hasPrefix("m"): return fits(value, String(type.dropFirst()))
    case (_, .integer(let number)): return bounds[type]?.contains(number) ?? false
    case (_, .array(let elements)) where type.hasPrefix("a{"):
      return elements.allSatisfy { $0.kind == .array }
    case (_, .array(let elements)) where type.hasPrefix("a"):
      return elements.allSatisfy { fits($0, String(type.dropFirst())) }
    case (_, .array) where type.hasPrefix("("): return true
    case (_, .dictionary) where type.hasPrefix("a{s"): return true
    default: return false
    }
  }
}
