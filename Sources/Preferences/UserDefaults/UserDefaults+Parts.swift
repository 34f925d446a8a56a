import Foundation
internal import PreferenceModel
internal import PropertyList

// What the public members of `UserDefaults` are made of.

extension UserDefaults {
  /// Whether nobody has overridden anything.
  private var isPlain: Bool { type(of: self) == UserDefaults.self }

  /// The value that the search list gives, or that a subclass has. A list that cannot be read is logged and
  /// gives nil.
  func value(_ name: String) -> Value? {
    isPlain ? storedValue(name) : object(forKey: name).flatMap(Objects.value)
  }

  func storedValue(_ name: String) -> Value? {
    do throws(EngineError) {
      return try reader.value(Key(name))
    } catch {
      Session.note(error)
      return nil
    }
  }

  /// Sets a key, or has a subclass do it.
  func set(_ value: Value, _ name: String) {
    if isPlain { store(value, name) } else { set(Objects.object(value) as Any?, forKey: name) }
  }

  func store(_ value: Value, _ name: String) { change([Key(name): value]) }

  func change(_ values: [Key: Value?]) {
    session.post(values, in: domain)
    noteChange()
  }
}

extension UserDefaults {
  /// Whether the name is that of a volatile domain of the search list.
  static func isVolatile(_ name: String) -> Bool {
    [argumentDomain, registrationDomain].contains(name)
  }

  func change(_ name: String, _ intent: Intent, _ keys: [Key]) {
    guard !Self.isVolatile(name) else {
      return Session.note("\(name) is a volatile domain; use setVolatileDomain(_:forName:)")
    }
    reading(()) { () throws(EngineError) in
      _ = try session.engine.apply([intent], by: session.author)
    }
    noteChange()
  }
}

extension UserDefaults: Hashable, CustomStringConvertible {
  public static func == (left: UserDefaults, right: UserDefaults) -> Bool { left === right }

  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }

  /// e.g. `<UserDefaults com.example.editor>`.
  public var description: String { "<\(type(of: self)) \(domain)>" }
}

// MARK: - Look-ups that may fail

extension UserDefaults {
  /// Every key of the search list.
  func effectiveValues() -> ValueDictionary {
    reading([:]) { () throws(EngineError) in
      var values: ValueDictionary = [:]
      for key in try session.engine.allKeys(of: domain) { values[key] = try reader.value(key) }
      return values
    }
  }

  func isForced(_ key: String, in domain: DomainName) -> Bool {
    reading(false) { () throws(EngineError) in
      try session.engine.resolve(Key(key), in: domain)?.isForced ?? false
    }
  }

  /// What the body gives; where it fails, the log says why and the other is given.
  func reading<Result>(
    _ other: Result, _ body: () throws(EngineError) -> Result
  ) -> Result {
    do throws(EngineError) {
      return try body()
    } catch {
      Session.note(error)
      return other
    }
  }
}
