internal import PreferenceModel
public import PropertyList
internal import Synchronization

/// The values that typed keys found and could not read, or not all of: each is logged once, and
/// again when a change of this process replaces it.
///
/// Threads: any. One lock, held for a look.
final class UnreadValues: Sendable {
  private let values = Mutex<[DomainName: ValueDictionary]>([:])

  /// Notes a value. Returns false if it was noted before.
  func insert(_ value: Value, _ key: Key, in domain: DomainName) -> Bool {
    values.withLock { $0[domain, default: [:]].updateValue(value, forKey: key) != value }
  }

  /// Returns the value of a key that was noted last, and forgets it.
  func remove(_ key: Key, in domain: DomainName) -> Value? {
    values.withLock { $0[domain]?.removeValue(forKey: key) }
  }
}

extension UserDefaults {
  /// Returns what a key reads where a value of another type was found: the value with members of
  /// the default, or the default. The log says so once, unless the value only lacks members.
  @usableFromInline func value<Value>(
    _ found: PropertyList.Value, of key: PreferenceKey<Value>
  ) -> Value {
    let (value, ignored) = key.filled(found)
    if value != nil, ignored.isEmpty { return value ?? key.defaultValue }
    if session.unread.insert(found, Key(key.name), in: domain) {
      let names = Set(ignored).sorted().joined(separator: ", ")
      Session.note(
        value == nil
          ? "\(domain) \(key.name): \(found.kind.noun) cannot be read as \(Value.self); "
            + "the key's default is used until the key is set"
          : "\(domain) \(key.name): these members cannot be read as those of \(Value.self), and "
            + "the default's are used: \(names)")
    }
    return value ?? key.defaultValue
  }

  /// Logs that a change replaces a value that this process could not read, if it does.
  func noteReplacement<Value>(of key: PreferenceKey<Value>) {
    let name = Key(key.name)
    guard let unread = session.unread.remove(name, in: domain) else { return }
    let found: Resolution? = reading(nil) { () throws(EngineError) in
      try session.engine.resolve(name, in: domain)
    }
    guard let found, found.value == unread, found.location.place.isOwn else { return }
    Session.note(
      "\(domain) \(key.name): the stored value, which could not be read as \(Value.self), is "
        + "replaced; `prefs history \(domain) \(key.name)` shows it")
  }
}
