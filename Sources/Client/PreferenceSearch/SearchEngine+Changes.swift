import PreferenceModel
import PropertyList

// Changes.

extension Intent {
  /// The key that the intent sets or removes, and its domain; nil for other intents.
  fileprivate var changed: (key: Key, domain: DomainName)? {
    switch self {
    case .set(let key, let domain, _, _), .remove(let key, let domain): (key, domain)
    default: nil
    }
  }
}

extension SearchEngine {
  /// Applies the intents without waiting for the answer (see `PersistentPlaces.post`). What they
  /// set is read here at once.
  public func post(
    _ intents: [Intent], by author: Author, done: @escaping @Sendable (EngineError?) -> Void
  ) {
    do throws(EngineError) {
      for intent in intents { try refuseForVolatile(intent) }
    } catch {
      return done(error)
    }
    beginChanging(intents)
    places.post(intents, by: author) { [weak self] error in
      self?.endChanging(intents)
      done(error)
    }
    forget(intents)
  }

  /// Has no reader keep what it finds of the keys that the intents set or remove, until
  /// `endChanging`. What one finds may be older than what another one has found since: the places
  /// show a posted change, and its end, before the readers are told to forget.
  private func beginChanging(_ intents: [Intent]) {
    changing.withLock { changing in
      for (key, _) in intents.lazy.compactMap(\.changed) { changing[key, default: 0] += 1 }
    }
    forget(intents)
  }

  private func endChanging(_ intents: [Intent]) {
    // First: a look-up that began before must find that something has changed.
    forget(intents)
    changing.withLock { changing in
      for (key, _) in intents.lazy.compactMap(\.changed) {
        let count = (changing[key] ?? 1) - 1
        changing[key] = count == 0 ? nil : count
      }
    }
  }

  /// Whether a posted change of the key, in any domain, is not over.
  func isChanging(_ key: Key) -> Bool { changing.withLock { $0[key] != nil } }

  /// Has the readers look up again the keys that the intents set or remove.
  func forget(_ intents: [Intent]) {
    var changeset = Changeset()
    for (key, domain) in intents.lazy.compactMap(\.changed) {
      changeset.items.append(.init(Location(.user, domain), .remove(key)))
    }
    forget(changeset)
  }

  public func apply(_ intents: [Intent], by author: Author) throws(EngineError) -> Changeset {
    try lists?.refuse(intents)
    for intent in intents { try refuseForVolatile(intent) }
    do {
      return try places.apply(intents, by: author)
    } catch  where error.reason == .noSuchKey {
      guard let domain = error.domain, let key = error.key,
        let location = try resolve(key, in: domain)?.location
      else { throw error }
      throw EngineError(
        .heldElsewhere, domain: domain, key: key,
        "it comes from \(location.source(seenFrom: domain)), which a removal does not reach")
    }
  }

  /// Throws where arguments or registered defaults stand in the way of the change. Managed lists
  /// come before the arguments: the owner refuses a change of a key that they hold.
  private func refuseForVolatile(_ intent: Intent) throws(EngineError) {
    switch intent {
    case .set(let key, let domain, _, _), .describe(let key, let domain, _),
      .remove(let key, let domain), .splice(let key, let domain, _),
      .setOwn(let key, let domain, _, _), .removeOwn(let key, let domain):
      guard refusesShadowed, arguments.find(key, in: .global) != nil, !isKnownLocked(domain) else {
        return
      }
      for location in SearchList.forced(domain)
      where try places.find(key, at: location) != nil { return }
      throw EngineError(
        .argument, domain: domain, key: key, "an argument (-\(key)) sets it")
    case .removeDomain(let domain), .renameDomain(_, let domain):
      guard registered.keys(of: domain).isEmpty else {
        throw EngineError(.domainNotEmpty, domain: domain, "it has registered defaults")
      }
    case .createDomain, .at, .edit, .replace, .expect, .expectUnchanged, .judged: break
    }
  }

  public func observe(
    except author: Author?, _ observer: @escaping @Sendable (Notice) -> Void
  ) {
    observers.add(except: author, observer)
    places.observe(except: author) { [weak self] notice in
      observer(self?.seen(notice) ?? notice)
    }
  }

  public var isReadOnly: Bool { places.isReadOnly }
}
