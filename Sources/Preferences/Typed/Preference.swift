/// A variable that is a preference:
///
/// ```swift
/// @Preference("TabWidth") var tabWidth = 4
/// ```
///
/// Reading and setting are those of ``UserDefaults``: a read of what has not changed makes no system call, and
/// setting does not wait. `$tabWidth` has the key and its changes.
@propertyWrapper
public struct Preference<Value: PreferenceValue>: Sendable {
  /// The key.
  public let key: PreferenceKey<Value>
  /// Whose key it is.
  public let defaults: UserDefaults

  /// A preference of this name.
  public init(
    wrappedValue: Value, _ name: String, in defaults: UserDefaults = .standard
  ) {
    self.init(PreferenceKey(name, default: wrappedValue), in: defaults)
  }

  /// The preference of a key.
  public init(_ key: PreferenceKey<Value>, in defaults: UserDefaults = .standard) {
    (self.key, self.defaults) = (key, defaults)
  }

  /// The value.
  public var wrappedValue: Value {
    get { defaults[key] }
    nonmutating set { defaults[key] = newValue }
  }

  /// The preference itself.
  public var projectedValue: Self { self }

  /// The changes of the value from now on, made by whomever.
  public var changes: PreferenceChanges<Value> { defaults.changes(of: key) }
}
