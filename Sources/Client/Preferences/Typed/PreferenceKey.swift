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
/// A stored value of another type is ignored: the default is read. Members of a Codable value that
/// are not stored, or that are of another type, come from the default. The first time that a
/// program reads a value that is ignored, in part or as a whole, the log says so, and again when
/// the program sets the key, because that replaces the value; the history has it (<doc:History>).
/// Without a default the type is optional, and setting nil removes the key.
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
  /// The value of a key. Setting it does not wait. `defaults[.count] += 1` is a read and then a
  /// set; ``update(_:_:)`` loses no change in between. A value that cannot be encoded is refused
  /// and logged; ``set(_:for:)`` throws instead. Reading it costs what `integer(forKey:)` does.
  public subscript<Value>(key: PreferenceKey<Value>) -> Value {
    // Inlined, so that the caller's compiler makes it for the caller's type.
    @inlinable get { typed(value(key.name), of: key) }
    set {
      do {
        try set(newValue, for: key)
      } catch {
        Session.note("\(domain) \(key.name): \(error); it was not set")
      }
    }
  }

  /// Returns what is found of a key as its type, and logs where it cannot be read.
  @inlinable func typed<Value>(
    _ found: PropertyList.Value?, of key: PreferenceKey<Value>
  ) -> Value {
    guard let found else { return key.defaultValue }
    return Value.value(from: found) ?? value(found, of: key)
  }

  /// Sets a key, without waiting. Throws what the value's encoding throws.
  public func set<Value>(_ value: Value, for key: PreferenceKey<Value>) throws {
    let list = try value.listIfPresent()
    noteReplacement(of: key)
    if let list { set(list, key.name) } else { removeObject(forKey: key.name) }
  }

  /// Removes a key from the user's list. Another place's value is read then, or else the default.
  public func remove<Value>(_ key: PreferenceKey<Value>) { removeObject(forKey: key.name) }
}

extension PreferenceKey {
  /// Returns `found` as `Value`; the default if it is nil or of another type.
  func typed(_ found: PropertyList.Value?) -> Value {
    guard let found else { return defaultValue }
    return Value.value(from: found) ?? filled(found).value ?? defaultValue
  }

  /// Returns what is found with the members of the default that it lacks, and the names of the
  /// members that cannot be read; no value if it is not one of the type even so.
  func filled(_ found: PropertyList.Value) -> (value: Value?, ignored: [String]) {
    var ignored: [String] = []
    let value = Value.value(from: found, filledFrom: defaultValue, ignored: &ignored)
    return (value, ignored)
  }
}

extension PreferenceValue {
  /// Returns the property list of the value; nil if the value stands for a missing key.
  func listIfPresent() throws -> PropertyList.Value? {
    if let optional = self as? any Absentable, optional.isAbsent { return nil }
    return try propertyList()
  }
}

/// A type with a value that stands for a missing key: Optional.
private protocol Absentable {
  var isAbsent: Bool { get }
}

extension Optional: Absentable {
  fileprivate var isAbsent: Bool { self == nil }
}
