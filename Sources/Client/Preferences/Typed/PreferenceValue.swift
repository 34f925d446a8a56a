import Foundation
public import PropertyList

/// A type whose values can be kept as preferences: types of the standard library and of Foundation
/// (numbers, strings, booleans, dates, data, URLs, UUIDs, `Decimal`, `Duration`, arrays, sets,
/// ranges, dictionaries with strings as keys), enumerations by their raw values, and your own
/// Codable types. These are kept as dictionaries and arrays that every program can read, not as
/// archives. Your own types need only declare the conformance:
///
/// ```swift
/// struct Frame: Codable, PreferenceValue { var width = 800, height = 600 }
/// enum Theme: String, PreferenceValue { case light, dark }
/// ```
///
/// Reading is strict: a stored value that is not one of the type is ignored, and the key has its
/// default. A stored string is read as a number, boolean or date if all of it is the text of one,
/// because arguments of a command line are strings. The members of a Codable value are read by the
/// same rules, each for itself: one that is not stored, or that cannot be read, comes from the
/// key's default, so a type may gain members. An optional member that is not stored is nil.
///
/// A type that is not Codable implements the two requirements itself, and imports `PropertyList`
/// for that.
public protocol PreferenceValue: Sendable {
  /// Returns the value that a property list stands for; nil if it stands for none of this type.
  static func value(from propertyList: PropertyList.Value) -> Self?

  /// Returns the value that a property list stands for if some members of it are missing or cannot
  /// be read; these come from `other`. nil if the property list stands for no value even so. Types
  /// without members need not implement it.
  /// - Parameter ignored: gets the names of the members that are there and cannot be read.
  static func value(
    from propertyList: PropertyList.Value, filledFrom other: Self?, ignored: inout [String]
  ) -> Self?

  /// Returns the property list that stands for the value. Throws what its encoding throws.
  func propertyList() throws -> PropertyList.Value
}

extension PreferenceValue {
  /// Returns ``value(from:)``, for types without members.
  public static func value(
    from propertyList: PropertyList.Value, filledFrom other: Self?, ignored: inout [String]
  ) -> Self? { value(from: propertyList) }

  /// Returns the value of a text, by the rules of the key's file: `8`, `true`,
  /// `2026-11-21T07:20:00Z`. nil if the text is not a value of that kind.
  @usableFromInline static func value(ofText text: String, _ kind: Kind) -> PropertyList.Value? {
    Recogniser.value(of: Array(text.utf8), kind: kind)
  }
}

extension Bool: PreferenceValue {
  @inlinable public static func value(from propertyList: PropertyList.Value) -> Bool? {
    switch propertyList {
    case .boolean(let flag): flag
    case .integer(let number) where number == 0 || number == 1: number == 1
    case .string(let text): value(ofText: text, .boolean).flatMap { value(from: $0) }
    default: nil
    }
  }

  public func propertyList() -> PropertyList.Value { .boolean(self) }
}

extension PreferenceValue where Self: FixedWidthInteger & Codable {
  @inlinable public static func value(from propertyList: PropertyList.Value) -> Self? {
    switch propertyList {
    case .integer(let number):
      number.signed.flatMap { Self(exactly: $0) } ?? number.unsigned.flatMap { Self(exactly: $0) }
    case .real(let number): Self(exactly: number)
    case .single(let number): Self(exactly: number)
    case .string(let text): value(ofText: text, .integer).flatMap { value(from: $0) }
    default: nil
    }
  }

  public func propertyList() -> PropertyList.Value {
    .integer(Int64(exactly: self).map { WideInteger($0) } ?? WideInteger(UInt64(clamping: self)))
  }
}

extension Int: PreferenceValue {}
extension Int8: PreferenceValue {}
extension Int16: PreferenceValue {}
extension Int32: PreferenceValue {}
extension Int64: PreferenceValue {}
extension UInt: PreferenceValue {}
extension UInt8: PreferenceValue {}
extension UInt16: PreferenceValue {}
extension UInt32: PreferenceValue {}
extension UInt64: PreferenceValue {}

extension Double: PreferenceValue {
  @inlinable public static func value(from propertyList: PropertyList.Value) -> Double? {
    switch propertyList {
    case .real(let number): number
    case .single(let number): Double(number)
    case .integer(let number): number.double
    case .string(let text): value(ofText: text, .real).flatMap { value(from: $0) }
    default: nil
    }
  }

  public func propertyList() -> PropertyList.Value { .real(self) }
}

extension Float: PreferenceValue {
  public static func value(from propertyList: PropertyList.Value) -> Float? {
    Double.value(from: propertyList).map { Float($0) }
  }

  public func propertyList() -> PropertyList.Value { .single(self) }
}

extension String: PreferenceValue {
  @inlinable public static func value(from propertyList: PropertyList.Value) -> String? {
    guard case .string(let text) = propertyList else { return nil }
    return text
  }

  public func propertyList() -> PropertyList.Value { .string(self) }
}

extension Date: PreferenceValue {
  public static func value(from propertyList: PropertyList.Value) -> Date? {
    switch propertyList {
    case .date(let time): Date(timeIntervalSinceReferenceDate: time.seconds)
    case .string(let text): value(ofText: text, .date).flatMap { value(from: $0) }
    default: nil
    }
  }

  public func propertyList() -> PropertyList.Value {
    .date(AbsoluteTime(seconds: timeIntervalSinceReferenceDate))
  }
}

extension Data: PreferenceValue {
  public static func value(from propertyList: PropertyList.Value) -> Data? {
    guard case .data(let bytes) = propertyList else { return nil }
    return Data(bytes)
  }

  public func propertyList() -> PropertyList.Value { .data([UInt8](self)) }
}

extension URL: PreferenceValue {
  /// Returns the URL of a string, which is a file's path, or of an archived URL, as `UserDefaults`
  /// keeps them.
  public static func value(from propertyList: PropertyList.Value) -> URL? {
    Conversions.url(propertyList)
  }

  public func propertyList() -> PropertyList.Value { ArchivedURL.value(self) }
}

extension Array: PreferenceValue where Element: PreferenceValue {
  public static func value(from propertyList: PropertyList.Value) -> [Element]? {
    guard case .array(let elements) = propertyList else { return nil }
    let values = elements.compactMap { Element.value(from: $0) }
    return values.count == elements.count ? values : nil
  }

  public static func value(
    from propertyList: PropertyList.Value, filledFrom other: [Element]?, ignored: inout [String]
  ) -> [Element]? {
    guard case .array(let elements) = propertyList else { return nil }
    var values: [Element] = []
    for element in elements {
      guard let value = Element.value(from: element, filledFrom: nil, ignored: &ignored) else {
        return nil
      }
      values.append(value)
    }
    return values
  }

  public func propertyList() throws -> PropertyList.Value {
    .array(try map { try $0.propertyList() })
  }
}

extension Dictionary: PreferenceValue where Key == String, Value: PreferenceValue {
  public static func value(from propertyList: PropertyList.Value) -> [String: Value]? {
    guard case .dictionary(let pairs) = propertyList else { return nil }
    var values: [String: Value] = [:]
    for (key, element) in pairs {
      guard let value = Value.value(from: element) else { return nil }
      values[key.string] = value
    }
    return values
  }

  public static func value(
    from propertyList: PropertyList.Value, filledFrom other: [String: Value]?,
    ignored: inout [String]
  ) -> [String: Value]? {
    guard case .dictionary(let pairs) = propertyList else { return nil }
    var values: [String: Value] = [:]
    for (key, element) in pairs {
      let known = other?[key.string]
      guard let value = Value.value(from: element, filledFrom: known, ignored: &ignored) else {
        return nil
      }
      values[key.string] = value
    }
    return values
  }

  public func propertyList() throws -> PropertyList.Value {
    var pairs: ValueDictionary = [:]
    for (key, value) in self { pairs[PropertyList.Key(key)] = try value.propertyList() }
    return .dictionary(pairs)
  }
}

/// A preference that may be missing: its value is nil then, and setting nil removes the key.
extension Optional: PreferenceValue where Wrapped: PreferenceValue {
  @inlinable public static func value(from propertyList: PropertyList.Value) -> Wrapped?? {
    Wrapped.value(from: propertyList).map { .some($0) }
  }

  public static func value(
    from propertyList: PropertyList.Value, filledFrom other: Wrapped??, ignored: inout [String]
  ) -> Wrapped?? {
    let known = other.flatMap { $0 }
    return Wrapped.value(from: propertyList, filledFrom: known, ignored: &ignored)
      .map { .some($0) }
  }

  /// Throws `PreferenceError.noValue` for nil, because nothing stands for nil in a property list.
  public func propertyList() throws -> PropertyList.Value {
    guard let value = self else { throw PreferenceError.noValue }
    return try value.propertyList()
  }
}
