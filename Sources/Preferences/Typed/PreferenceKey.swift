internal import PreferenceModel
internal import PropertyList

/// A key with its type and its default, said once:
///
/// ```swift
/// extension PreferenceKey<Int> {
///   static var tabWidth: Self { Self("TabWidth", default: 4) }
/// }
///
/// UserDefaults.standard[.tabWidth] += 4
/// ```
///
/// A value of another type counts as none. Without a default the type is optional, and setting nil removes
/// the key.
public struct PreferenceKey<Value: PreferenceValue>: Sendable {
  /// The key.
  public let name: String
  /// What is read where no place of the search list has a value of the type.
  public let defaultValue: Value

  /// A key, and what it is where nobody has set it.
  public init(_ name: String, default defaultValue: Value) {
    (self.name, self.defaultValue) = (name, defaultValue)
  }

  /// A key that need not be there.
  public init<Wrapped>(_ name: String) where Value == Wrapped? {
    self.init(name, default: nil)
  }
}

extension UserDefaults {
  /// The value of a key; setting it does not wait. A value that cannot be encoded is refused and logged
  /// (``set(_:for:)`` throws then).
  public subscript<Value>(key: PreferenceKey<Value>) -> Value {
    get { key.typed(value(key.name)) }
    set {
      do {
        try set(newValue, for: key)
      } catch {
        Session.note("\(domain) \(key.name): \(error); it was not set")
      }
    }
  }

  /// Sets a key; does not wait. Throws what the value's encoding throws.
  public func set<Value>(_ value: Value, for key: PreferenceKey<Value>) throws {
    if let optional = value as? any Absentable, optional.isAbsent {
      return removeObject(forKey: key.name)
    }
    set(try value.propertyList(), key.name)
  }

  /// Removes a key: its default is read, or what another place has.
  public func remove<Value>(_ key: PreferenceKey<Value>) { removeObject(forKey: key.name) }
}

extension PreferenceKey {
  /// What is read where that is found.
  func typed(_ found: PropertyList.Value?) -> Value {
    found.flatMap { Value.value(from: $0) } ?? defaultValue
  }
}

/// What may be nothing.
private protocol Absentable {
  var isAbsent: Bool { get }
}

extension Optional: Absentable {
  fileprivate var isAbsent: Bool { self == nil }
}
