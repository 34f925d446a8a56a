import Foundation
public import PropertyList

// Types of the standard library and of Foundation that are neither scalars of a property list nor
// containers of it.

extension UUID: PreferenceValue {
  public static func value(from propertyList: PropertyList.Value) -> UUID? {
    guard case .string(let text) = propertyList else { return nil }
    return UUID(uuidString: text)
  }

  public func propertyList() -> PropertyList.Value { .string(uuidString) }
}

extension Decimal: PreferenceValue {
  /// Returns the number of a string, whose digits are all kept, or of a number.
  public static func value(from propertyList: PropertyList.Value) -> Decimal? {
    switch propertyList {
    case .integer(let number): Decimal(string: number.description)
    // The shortest text: 12.34 is not 12.339999999999999858.
    case .real(let number): Decimal(string: number.description)
    case .single(let number): Decimal(string: number.description)
    case .string("NaN"): Decimal.nan
    // Decimal(string:) takes a text that only begins with a number.
    case .string(let text) where value(ofText: text, .real) != nil:
      Decimal(string: text.trimmingCharacters(in: .whitespacesAndNewlines))
    default: nil
    }
  }

  public func propertyList() -> PropertyList.Value { .string(description) }
}

extension Duration: PreferenceValue {
  /// Returns the duration of a number of seconds.
  public static func value(from propertyList: PropertyList.Value) -> Duration? {
    switch propertyList {
    case .integer(let number): number.signed.map { Duration.seconds($0) }
    case .real(let number): length(number)
    case .single(let number): length(Double(number))
    case .string(let text):
      exact(text) ?? Double.value(from: propertyList).flatMap { length($0) }
    default: nil
    }
  }

  /// Seconds as a real, or as a string of all their digits where no real has them exactly.
  public func propertyList() -> PropertyList.Value {
    let (seconds, attoseconds) = components
    let number = Double(seconds) + Double(attoseconds) / 1e18
    if Self.length(number) == self { return .real(number) }
    let digits = String(attoseconds.magnitude)
    let fraction = String(repeating: "0", count: Self.digits - digits.count) + digits
    let sign = seconds < 0 || attoseconds < 0 ? "-" : ""
    return .string("\(sign)\(seconds.magnitude).\(fraction)")
  }

  /// The digits of a second's fraction.
  private static let digits = 18

  /// Returns the duration; nil if it is too long, or not a number.
  private static func length(_ seconds: Double) -> Duration? {
    seconds.magnitude < 9e18 ? Duration.seconds(seconds) : nil
  }

  /// Returns the duration of a text with all digits.
  private static func exact(_ text: String) -> Duration? {
    let sign: Int64 = text.hasPrefix("-") ? -1 : 1
    let parts = text.drop { $0 == "-" }.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 2, parts[1].count == digits, let seconds = Int64(parts[0]),
      let attoseconds = Int64(parts[1]), seconds >= 0, attoseconds >= 0
    else { return nil }
    return Duration(
      secondsComponent: sign * seconds, attosecondsComponent: sign * attoseconds)
  }
}

extension Set: PreferenceValue where Element: PreferenceValue {
  /// Returns the elements of an array.
  public static func value(from propertyList: PropertyList.Value) -> Set<Element>? {
    [Element].value(from: propertyList).map { Set($0) }
  }

  public static func value(
    from propertyList: PropertyList.Value, filledFrom other: Set<Element>?,
    ignored: inout [String]
  ) -> Set<Element>? {
    [Element].value(from: propertyList, filledFrom: nil, ignored: &ignored).map { Set($0) }
  }

  /// An array in an order that depends on the elements alone, so that equal sets are equal lists.
  public func propertyList() throws -> PropertyList.Value {
    let elements = try map { try $0.propertyList() }
    return .array(elements.sorted { $0.precedes($1) })
  }
}

extension Value {
  /// Whether it comes before the other value in the array of a set.
  fileprivate func precedes(_ other: Value) -> Bool {
    switch (self, other) {
    case (.string(let left), .string(let right)): return left < right
    case (.integer(let left), .integer(let right)): return left < right
    default:
      if kind != other.kind { return kind.rawValue < other.kind.rawValue }
      return Document.binary(self).lexicographicallyPrecedes(Document.binary(other))
    }
  }
}

extension Range: PreferenceValue where Bound: PreferenceValue {
  /// Returns the range of an array of its bounds.
  public static func value(from propertyList: PropertyList.Value) -> Range<Bound>? {
    ClosedRange.value(from: propertyList).map { $0.lowerBound..<$0.upperBound }
  }

  public func propertyList() throws -> PropertyList.Value {
    try [lowerBound, upperBound].propertyList()
  }
}

extension ClosedRange: PreferenceValue where Bound: PreferenceValue {
  /// Returns the range of an array of its bounds.
  public static func value(from propertyList: PropertyList.Value) -> ClosedRange<Bound>? {
    guard let bounds = [Bound].value(from: propertyList), bounds.count == 2,
      bounds[0] <= bounds[1]
    else { return nil }
    return bounds[0]...bounds[1]
  }

  public func propertyList() throws -> PropertyList.Value {
    try [lowerBound, upperBound].propertyList()
  }
}
