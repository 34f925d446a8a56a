import Foundation
public import PropertyList

// Codable types and enumerations as property lists. Foundation's encoder writes them; each value is
// wrapped in an array for that, because the top of a list must not be a scalar. `MemberDecoder`
// reads them.

/// A Codable type all of whose members have a default, for values in arrays, in dictionaries and in
/// other values: members that are not stored come from `init()`. A key's own value needs it not,
/// because its members come from the key's default.
///
/// ```swift
/// struct Tab: PreferenceRecord { var title = "", isPinned = false }
/// ```
public protocol PreferenceRecord: PreferenceValue, Codable {
  /// Creates the value whose members stand for those that are not stored.
  init()
}

/// Why a value cannot be kept as a preference.
public enum PreferenceError: Error, Equatable, Sendable {
  /// The value is nil, or has nil inside an array or a dictionary: a property list has nothing that
  /// stands for nil.
  case noValue
  /// A change was refused, or the owner of the store does not answer. The text says why.
  case unavailable(String)
}

extension PreferenceValue where Self: Codable {
  public static func value(from propertyList: PropertyList.Value) -> Self? {
    try? MemberDecoder(propertyList).read(Self.self)
  }

  public static func value(
    from propertyList: PropertyList.Value, filledFrom other: Self?, ignored: inout [String]
  ) -> Self? {
    let members = MemberDecoder.Ignored()
    let decoder = MemberDecoder(
      propertyList, filledFrom: try? other?.propertyList(), ignored: members)
    let filled = try? decoder.read(Self.self)
    ignored += members.names
    // The type may have a stricter `value(from:)` of its own.
    guard let list = try? filled?.propertyList() else { return nil }
    return value(from: list)
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
