import Foundation
public import PropertyList

// Codable types and enumerations as property lists. Foundation's coders convert them; each value is
// wrapped in an array for that, because the top of a list must not be a scalar.

/// Why a value cannot be kept as a preference.
public enum PreferenceError: Error, Equatable, Sendable {
  /// The value is nil, or has nil inside an array or a dictionary: a property list has nothing that
  /// stands for nil.
  case noValue
}

extension PreferenceValue where Self: Codable {
  public static func value(from propertyList: PropertyList.Value) -> Self? {
    let list = Data(Document.binary(.array([propertyList])))
    return try? PropertyListDecoder().decode([Self].self, from: list).first
  }

  /// Throws what `encode(to:)` throws.
  public func propertyList() throws -> PropertyList.Value {
    let encoder = PropertyListEncoder()
    encoder.outputFormat = .binary
    let list = try Document.read([UInt8](try encoder.encode([self]))).value
    guard case .array(let elements) = list, let value = elements.first else {
      throw PreferenceError.noValue
    }
    return value
  }
}

extension PreferenceValue where Self: RawRepresentable, RawValue: PreferenceValue {
  public static func value(from propertyList: PropertyList.Value) -> Self? {
    RawValue.value(from: propertyList).flatMap { Self(rawValue: $0) }
  }

  /// Throws what the raw value throws.
  public func propertyList() throws -> PropertyList.Value { try rawValue.propertyList() }
}

extension PreferenceValue where Self: RawRepresentable & Codable, RawValue: PreferenceValue {
  public static func value(from propertyList: PropertyList.Value) -> Self? {
    RawValue.value(from: propertyList).flatMap { Self(rawValue: $0) }
  }

  /// Throws what the raw value throws.
  public func propertyList() throws -> PropertyList.Value { try rawValue.propertyList() }
}
