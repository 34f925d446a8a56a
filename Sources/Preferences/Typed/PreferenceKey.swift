internal import PreferenceModel
public import PropertyList

/// A key with its type and its default, declared once:
///
/// ```swift
/// extension PreferenceKey<Int> {
///   static var tabWidth: Self { Self("TabWidth", default: 4) }
/// }
///
/// UserDefaults.standard[.tabWidth] += 4
/// ```
///
/// A stored value of another type is ignored: the default is read. Without a default the type is
/// optional, and setting nil removes the key.
public struct PreferenceKey<Value: PreferenceValue>: Sendable {
  /// The key's name.
  public let name: String
  /// The value that is read if the search list gives no value of the type.
  public let defaultValue: Value

  /// Creates a key with a default.
  public init(_ name: String, default defaultValue: Value) {
    (self.name, self.defaultValue) = (name, defaultValue)
  }

  /// Creates a key without a default: its value is nil if there is none.
  public init<Wrapped>(_ name: String) where Value == Wrapped? {
    self.init(name, default: nil)
  }
}

extension UserDefaults {
  /// The value of a key. Setting it does not wait. A value that cannot be encoded is refused and
  /// logged; ``set(_:for:)`` throws instead. Reading it costs what `integer(forKey:)` does.
  public subscript<Value>(key: PreferenceKey<Value>) -> Value {
    // Inlined, so that the caller's compiler makes it for the caller's type.
    @inlinable get { key.typed(value(key.name)) }
    set {
      do {
        try set(newValue, for: key)
      } catch {
        Session.note("\(domain) \(key.name): \(error); it was not set")
      }
    }
  }

  /// Sets a key, without waiting. Throws what the value's encoding throws.
  public func set<Value>(_ value: Value, for key: PreferenceKey<Value>) throws {
    if let optional = value as? any Absentable, optional.isAbsent {
      return removeObject(forKey: key.name)
    }
    set(try value.propertyList(), key.name)
  }

  /// Removes a key from the user's list. Another place's value is read then, or else the default.
  public func remove<Value>(_ key: PreferenceKey<Value>) { removeObject(forKey: key.name) }
}

extension PreferenceKey {
  /// Returns `found` as `Value`; the default if it is nil or of another type.
  @inlinable func typed(_ found: PropertyList.Value?) -> Value {
    found.flatMap { Value.value(from: $0) } ?? defaultValue
  }
}

/// A type with a value that stands for a missing key: Optional.
private protocol Absentable {
  var isAbsent: Bool { get }
}

extension Optional: Absentable {
  fileprivate var isAbsent: Bool { self == nil }
}
