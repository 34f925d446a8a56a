import Foundation
internal import PreferenceModel
public import PropertyList

// Helpers of the public members of `UserDefaults`.

extension UserDefaults {
  /// Whether this is the class itself, so that no member can be overridden.
  var isPlain: Bool { type(of: self) == UserDefaults.self }

  /// Returns the value that the search list gives; in a subclass, the one that its
  /// `object(forKey:)` gives. A list that cannot be read is logged and gives nil.
  @usableFromInline func value(_ name: String) -> Value? {
    isPlain ? storedValue(name) : object(forKey: name).flatMap(Objects.value)
  }

  /// Returns the value that the search list gives. A list that cannot be read is logged and gives
  /// nil. While no owner of the store answers, a value that was never read is that of the arguments
  /// or the registered defaults.
  func storedValue(_ name: String) -> Value? {
    let key = Key(name)
    do throws(EngineError) {
      return try reader.value(key)
    } catch {
      Session.note(error)
      let isUnanswered = error.reason == .system(.timedOut)
      return isUnanswered ? session.engine.volatileValue(key, in: domain) : nil
    }
  }

  /// Sets a key; in a subclass, through its `set(_:forKey:)`.
  func set(_ value: Value, _ name: String) {
    if isPlain { store(value, name) } else { set(Objects.object(value) as Any?, forKey: name) }
  }

  func store(_ value: Value, _ name: String) { change([Key(name): value]) }

  /// Sets keys, or removes those with nil, as one transaction, without waiting for the answer.
  func change(_ values: [Key: Value?]) {
    session.post(values, in: domain)
    noteChange()
  }
}

extension UserDefaults {
  /// Whether the name is that of a volatile domain of the search list: the arguments or the
  /// registered defaults.
  static func isVolatile(_ name: String) -> Bool {
    [argumentDomain, registrationDomain].contains(name)
  }

  /// Carries out an intent about a persistent domain, and waits for the answer. A failure is
  /// logged; the name of a volatile domain is refused.
  func change(_ name: String, _ intent: Intent) {
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

  /// For example `<UserDefaults com.example.editor>`.
  public var description: String { "<\(type(of: self)) \(domain)>" }
}

// MARK: - Look-ups that may fail

extension UserDefaults {
  /// Returns every key of the search list with its value; while no owner of the store answers, those
  /// of the arguments and the registered defaults.
  func effectiveValues() -> ValueDictionary {
    do throws(EngineError) {
      var values: ValueDictionary = [:]
      for key in try session.engine.allKeys(of: domain) { values[key] = try reader.value(key) }
      return values
    } catch {
      Session.note(error)
      guard error.reason == .system(.timedOut) else { return [:] }
      let engine = session.engine
      let registered = engine.registeredValues(for: .global)
        .merging(engine.registeredValues(for: domain))
      return registered.merging(engine.argumentValues)
    }
  }

  /// The languages of the search list.
  var languages: [String] {
    reading([]) { () throws(EngineError) in try session.engine.languages(of: domain) }
  }

  func isForced(_ key: String, in domain: DomainName) -> Bool {
    reading(false) { () throws(EngineError) in
      if try session.engine.isLocked(domain) { return true }
      return try session.engine.resolve(Key(key), in: domain)?.isForced ?? false
    }
  }

  /// Returns what the body gives; if it fails, logs the error and returns `other`.
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
