import Foundation
internal import PreferenceModel
internal import PropertyList

extension UserDefaults {
  /// Sets a key to a String, number, Bool, Date, Data, array or dictionary of these, or a URL; nil removes
  /// it. Any other object is refused and logged.
  public func set(_ value: Any?, forKey defaultName: String) {
    switch value {
    case nil: removeObject(forKey: defaultName)
    case let object?:
      guard let value = Objects.value(object) else {
        return Session.note(
          "\(domain) \(defaultName): a \(type(of: object)) is no property list; it was not set")
      }
      set(value, defaultName)
    }
  }

  /// Sets a key to an integer.
  public func set(_ value: Int, forKey defaultName: String) {
    set(.integer(WideInteger(Int64(value))), defaultName)
  }

  /// Sets a key to a real of single precision, which it stays.
  public func set(_ value: Float, forKey defaultName: String) {
    set(.single(value), defaultName)
  }

  /// Sets a key to a real.
  public func set(_ value: Double, forKey defaultName: String) { set(.real(value), defaultName) }

  /// Sets a key to a boolean.
  public func set(_ value: Bool, forKey defaultName: String) { set(.boolean(value), defaultName) }

  /// Sets a key to a URL: a file's as its path, with `~` for the home directory, any other as an archive;
  /// nil removes the key.
  public func set(_ url: URL?, forKey defaultName: String) {
    guard let url else { return removeObject(forKey: defaultName) }
    set(ArchivedURL.value(url), defaultName)
  }

  /// Removes the key from the user's list (the host's, if it stands there). Another place may still have it:
  /// then its value is read.
  public func removeObject(forKey defaultName: String) { change([Key(defaultName): nil]) }

  /// Sets several keys in one message and as one transaction: all of them or, where one is refused, none.
  public func setValuesForKeys(_ keyedValues: [String: Any]) {
    var values: [Key: Value?] = [:]
    for (name, object) in keyedValues {
      guard let value = Objects.value(object) else {
        return Session.note(
          "\(domain) \(name): a \(type(of: object)) is no property list; nothing was set")
      }
      values[Key(name)] = value
    }
    change(values)
  }

  func set(_ value: Value, _ name: String) { change([Key(name): value]) }

  private func change(_ values: [Key: Value?]) {
    session.post(values, in: domain)
    noteChange()
  }
}
