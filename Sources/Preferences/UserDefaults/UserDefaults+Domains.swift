import Foundation
internal import PreferenceModel
internal import PropertyList

// MARK: - Registration and suites

extension UserDefaults {
  /// Adds defaults: what no other place of any search list of this process has. Of a key that is registered
  /// twice the last value counts. They are gone with the process. URLs become what ``set(_:forKey:)`` makes of
  /// them; an object that is no property list is left out, and logged.
  public func register(defaults registrationDictionary: [String: Any]) {
    let (values, others) = Objects.valuesAndOthers(registrationDictionary)
    for name in others { Session.note("\(name): no property list; it was not registered") }
    session.engine.register(values, for: .global)
    noteChange()
  }

  /// Puts a domain into the search list, behind the program's own and before the global one; the last that
  /// was added comes first.
  public func addSuite(named suiteName: String) {
    let suite = DomainName(suiteName)
    session.changeSuites(of: domain) { suites in
      suites.removeAll { $0 == suite }
      suites.append(suite)
    }
  }

  /// Takes a domain out of the search list.
  public func removeSuite(named suiteName: String) {
    let suite = DomainName(suiteName)
    session.changeSuites(of: domain) { suites in suites.removeAll { $0 == suite } }
  }
}

// MARK: - Volatile domains

extension UserDefaults {
  /// Whether the name is that of a volatile domain of the search list.
  private static func isVolatile(_ name: String) -> Bool {
    [argumentDomain, registrationDomain].contains(name)
  }

  /// The names of the volatile domains: arguments, registered defaults, and those that were set.
  public var volatileDomainNames: [String] {
    [Self.argumentDomain, Self.registrationDomain] + session.volatile.withLock { $0.keys.sorted() }
  }

  /// The keys of a volatile domain; none where there is no such domain.
  public func volatileDomain(forName domainName: String) -> [String: Any] {
    switch domainName {
    case Self.argumentDomain: Objects.dictionary(session.engine.argumentValues)
    case Self.registrationDomain: Objects.dictionary(session.engine.registeredValues(for: .global))
    default: Objects.dictionary(session.volatile.withLock { $0[domainName] ?? [:] })
    }
  }

  /// Gives a volatile domain these keys and no others. Those of arguments and of registered defaults are in
  /// every search list; others are in none, as on Apple's systems.
  public func setVolatileDomain(_ domain: [String: Any], forName domainName: String) {
    guard let values = Objects.values(domain) else {
      return Session.note("\(domainName): an object is no property list; nothing was set")
    }
    switch domainName {
    case Self.argumentDomain: session.engine.argumentValues = values
    case Self.registrationDomain: session.engine.setRegisteredValues(values, for: .global)
    default: session.volatile.withLock { $0[domainName] = values }
    }
    noteChange()
  }

  /// Removes a volatile domain; the arguments and the registered defaults are empty then.
  public func removeVolatileDomain(forName domainName: String) {
    if Self.isVolatile(domainName) { return setVolatileDomain([:], forName: domainName) }
    session.volatile.withLock { $0[domainName] = nil }
  }
}

// MARK: - Persistent domains

extension UserDefaults {
  /// The keys of a domain in the user's list; nil where there is none. Cost: O(keys).
  public func persistentDomain(forName domainName: String) -> [String: Any]? {
    let location = Location(.user, DomainName(domainName))
    let values: ValueDictionary = reading([:]) { () throws(EngineError) in
      var values: ValueDictionary = [:]
      for key in try session.engine.keys(at: location) {
        values[key] = try session.engine.find(key, at: location)?.value
      }
      return values
    }
    return values.isEmpty ? nil : Objects.dictionary(values)
  }

  /// Gives a domain in the user's list these keys and no others, as one transaction. It waits for the
  /// answer, 5 s at most; what fails is logged, and nothing is changed.
  /// The names of volatile domains are refused.
  public func setPersistentDomain(_ domain: [String: Any], forName domainName: String) {
    guard let values = Objects.values(domain) else {
      return Session.note("\(domainName): an object is no property list; nothing was set")
    }
    let location = Location(.user, DomainName(domainName))
    change(domainName, .replace(location, values), values.keys)
  }

  /// Removes a domain from the user's list. It waits for the answer.
  public func removePersistentDomain(forName domainName: String) {
    let location = Location(.user, DomainName(domainName))
    change(domainName, .edit(location, .removeDomain), [])
  }

  private func change(_ name: String, _ intent: Intent, _ keys: [Key]) {
    guard !Self.isVolatile(name) else {
      return Session.note("\(name) is a volatile domain; use setVolatileDomain(_:forName:)")
    }
    reading(()) { () throws(EngineError) in
      _ = try session.engine.apply([intent], by: session.author)
    }
    noteChange()
  }
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
  private func reading<Result>(
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
