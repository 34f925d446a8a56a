/// A property wrapper for a variable that is a preference:
///
/// ```swift
/// @Preference("TabWidth") var tabWidth = 4
/// ```
///
/// Reading and setting it work as with ``UserDefaults``: a read of a value that has not changed
/// makes no system call, and setting does not wait. `$tabWidth` gives access to the key and its
/// changes.
@propertyWrapper
public struct Preference<Value: PreferenceValue>: Sendable {
  /// The key.
  public let key: PreferenceKey<Value>
  /// The preferences that the key is read from and set in.
  public let defaults: UserDefaults

  /// Creates a preference with this name; the initial value is its default.
  public init(
    wrappedValue: Value, _ name: String, in defaults: UserDefaults = .standard
  ) {
    self.init(PreferenceKey(name, default: wrappedValue), in: defaults)
  }

  /// Creates a preference with this name and without a default: its value is nil if there is none.
  public init<Wrapped>(
    _ name: String, in defaults: UserDefaults = .standard
  ) where Value == Wrapped? {
    self.init(PreferenceKey(name, default: nil), in: defaults)
  }

  /// Creates a preference for a key.
  public init(_ key: PreferenceKey<Value>, in defaults: UserDefaults = .standard) {
    (self.key, self.defaults) = (key, defaults)
  }

  /// The value of the preference.
  public var wrappedValue: Value {
    get { defaults[key] }
    nonmutating set { defaults[key] = newValue }
  }

  /// The preference itself, for its key and its changes.
  public var projectedValue: Self { self }

  /// Changes the value by a function of it: see ``UserDefaults/update(_:_:)``.
  @discardableResult
  public func update(_ body: (inout Value) throws -> Void) throws -> Value {
    try defaults.update(key, body)
  }

  /// The changes of the value from the moment when this property is read, whichever process makes
  /// them.
  public var changes: PreferenceChanges<Value> { defaults.changes(of: key) }

  /// The changes as ``changes`` has them, the first of which has the present value, if asked for.
  public func changes(withInitial: Bool) -> PreferenceChanges<Value> {
    defaults.changes(of: key, withInitial: withInitial)
  }
}
