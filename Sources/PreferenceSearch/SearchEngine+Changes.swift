import PreferenceModel
import PropertyList

// Changes.

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
    places.post(intents, by: author) { [weak self] error in
      self?.forget(intents)
      done(error)
    }
    forget(intents)
  }

  /// Has the readers look up again the keys that the intents set or remove.
  func forget(_ intents: [Intent]) {
    var changeset = Changeset()
    for case .set(let key, let domain, _, _) in intents {
      changeset.items.append(.init(Location(.user, domain), .remove(key)))
    }
    for case .remove(let key, let domain) in intents {
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
      guard refusesShadowed, arguments.find(key, in: .global) != nil else { return }
      for location in SearchList.forced(domain)
      where try places.find(key, at: location) != nil { return }
      throw EngineError(
        .argument, domain: domain, key: key, "an argument (-\(key)) sets it")
    case .removeDomain(let domain):
      guard registered.keys(of: domain).isEmpty else {
        throw EngineError(.domainNotEmpty, domain: domain, "it has registered defaults")
      }
    case .renameDomain(_, let new):
      guard registered.keys(of: new).isEmpty else {
        throw EngineError(.domainNotEmpty, domain: new, "it has registered defaults")
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
