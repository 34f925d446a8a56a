import Foundation
internal import PreferenceModel

extension UserDefaults {
  /// The value as String, Int (UInt64 above Int.max), Double, Bool, Date, Data, [Any] or [String: Any]; nil
  /// where there is none.
  public func object(forKey defaultName: String) -> Any? { value(defaultName).map(Objects.object) }

  /// A string, or a number or boolean as text; else nil.
  public func string(forKey defaultName: String) -> String? {
    value(defaultName).flatMap(Conversions.string)
  }

  /// An array; else nil.
  public func array(forKey defaultName: String) -> [Any]? { object(forKey: defaultName) as? [Any] }

  /// An array whose elements are all strings; else nil.
  public func stringArray(forKey defaultName: String) -> [String]? {
    value(defaultName).flatMap(Conversions.strings)
  }

  /// A dictionary; else nil.
  public func dictionary(forKey defaultName: String) -> [String: Any]? {
    object(forKey: defaultName) as? [String: Any]
  }

  /// Data; else nil.
  public func data(forKey defaultName: String) -> Data? {
    value(defaultName).flatMap(Conversions.data)
  }

  /// A number, a boolean as 1 or 0, the number that a string begins with; else 0.
  public func integer(forKey defaultName: String) -> Int {
    value(defaultName).map(Conversions.integer) ?? 0
  }

  /// As ``double(forKey:)``, to the nearest number of single precision.
  public func float(forKey defaultName: String) -> Float { Float(double(forKey: defaultName)) }

  /// A number, or the number that a string begins with; else, for booleans too, 0.
  public func double(forKey defaultName: String) -> Double {
    value(defaultName).map(Conversions.double) ?? 0
  }

  /// A boolean, whether a number is not 0, whether a string is YES, true or 1; else false.
  public func bool(forKey defaultName: String) -> Bool {
    value(defaultName).map(Conversions.boolean) ?? false
  }

  /// A string as a file's path, in which `~` is the home directory, or an archived URL; else nil.
  public func url(forKey defaultName: String) -> URL? {
    value(defaultName).flatMap(Conversions.url)
  }

  /// Every key of the search list with its value. Cost: O(keys).
  public func dictionaryRepresentation() -> [String: Any] { Objects.dictionary(effectiveValues()) }

  /// Whether an administrator forces the key: it cannot be changed.
  public func objectIsForced(forKey key: String) -> Bool { isForced(key, in: domain) }

  /// Whether an administrator forces the key of a domain.
  public func objectIsForced(forKey key: String, inDomain domain: String) -> Bool {
    isForced(key, in: DomainName(domain))
  }
}
