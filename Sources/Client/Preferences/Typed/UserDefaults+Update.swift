internal import PreferenceModel
internal import PreferenceSearch
internal import PropertyList
internal import SystemCalls

extension UserDefaults {
  /// Changes the value of a key by a function of it. No change of another thread, process, mount or
  /// person is lost: where one comes in between, the body is called again, with the new value.
  ///
  /// ```swift
  /// try UserDefaults.standard.update(.launches) { $0 += 1 }
  /// ```
  ///
  /// It waits for the owner of the store, unlike a setter. If the body leaves the value as it is,
  /// nothing is set. In a subclass it is a read and a set.
  /// - Parameter body: may be called several times.
  /// - Returns: the new value.
  /// - Throws: ``PreferenceError/unavailable(_:)`` if the change is refused (an administrator
  ///   forces the key), if the owner does not answer, or if others change the key again and again
  ///   for 10 s; what the body and the value's encoding throw. Nothing is set then.
  @discardableResult
  public func update<Value>(
    _ key: PreferenceKey<Value>, _ body: (inout Value) throws -> Void
  ) throws -> Value {
    let end = Instant.now.advanced(milliseconds: 10_000)
    while true {
      do {
        return try updateOnce(key, body)
      } catch let error as EngineError {
        guard error.reason == .changedMeanwhile, Instant.now < end else {
          throw PreferenceError.unavailable("\(error)")
        }
        // Others make progress, but one that takes long between reading and setting never would.
        Instant.sleep(microseconds: UInt32.random(in: 0..<200))
      }
    }
  }

  /// Throws an `EngineError` with the reason `.changedMeanwhile` if the key has changed meanwhile.
  private func updateOnce<Value>(
    _ key: PreferenceKey<Value>, _ body: (inout Value) throws -> Void
  ) throws -> Value {
    guard isPlain else {
      var value = self[key]
      try body(&value)
      try set(value, for: key)
      return value
    }
    let name = Key(key.name)
    // Before the value is read: a change after this is found when the key is set.
    let (expected, isSet) = try session.expectations(of: name, in: domain)
    let found = try session.engine.resolve(name, in: domain)
    var value = typed(found?.value, of: key)
    let former = try value.listIfPresent()
    try body(&value)
    let list = try value.listIfPresent()
    guard list != former, list != nil || isSet else { return value }
    noteReplacement(of: key)
    var intents = expected
    if let found, found.location.place.isPersistent {
      intents.append(.expect(name, found.location, found.value))
    }
    if let list {
      intents.append(.set(name, domain, list, .unknown))
    } else {
      intents.append(.remove(name, domain))
    }
    try session.apply(intents, to: name, list, in: domain)
    noteChange()
    return value
  }
}

extension Session {
  /// Returns what a transaction expects of a key in the places that setters change, so that it is
  /// refused where the key has changed since; and whether one of them has the key.
  func expectations(
    of key: Key, in domain: DomainName
  ) throws(EngineError) -> (intents: [Intent], isSet: Bool) {
    var intents: [Intent] = []
    for place in Place.own {
      let location = Location(place, domain)
      let found = try engine.places.find(key, at: location)?.value
      intents.append(.expect(key, location, found))
      if found != nil { return (intents, true) }
    }
    return (intents, false)
  }

  /// Applies intents that set a key, or remove it if the value is nil, and waits for the answer.
  /// Observers are told of it as of this process's own change.
  func apply(
    _ intents: [Intent], to key: Key, _ value: Value?, in domain: DomainName
  ) throws(EngineError) {
    dispatcher.expect([Dispatcher.Event(domain: domain, key: key, maker: .own, value: value)])
    _ = try engine.apply(intents, by: author)
  }
}
