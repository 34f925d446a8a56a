import PreferenceModel
import PreferenceStore
import PropertyList
import Synchronization
import SystemCalls

// The write and removal rules of the search list.

extension LocalPlaces {
  public func apply(_ intents: [Intent], by author: Author) throws(EngineError) -> Changeset {
    try commit(intents, by: author, origin: nil)
  }

  /// A request that an earlier owner may have carried out: what it changed then. It is asked for in
  /// this process, which needs no answer that survives it.
  public func apply(
    _ intents: [Intent], by author: Author, origin: Origin, until deadline: Instant
  ) throws(EngineError) -> Changeset {
    if let known = store.outcome(of: origin) { return known }
    return try commit(intents, by: author, origin: nil)
  }

  /// Another process's request: one that was carried out before gives what it changed then. It is kept
  /// until `noteAnswered`, for the next owner.
  public func serve(
    _ intents: [Intent], by author: Author, origin: Origin, until deadline: Instant
  ) throws(EngineError) -> Changeset {
    try commit(intents, by: author, origin: origin, until: deadline)
  }

  private func commit(
    _ intents: [Intent], by author: Author, origin: Origin?, until deadline: Instant? = nil
  ) throws(EngineError) -> Changeset {
    let (changeset, isFirstUnsaved) = try applying.withLock { _ throws(EngineError) in
      if let origin, let known = store.outcome(of: origin) { return (known, false) }
      var items: [Changeset.Item] = []
      for intent in intents { items += try self.items(for: intent) }
      if let deadline, deadline <= .now {
        throw EngineError(.system(.timedOut), "the owner of the store was stopped for too long")
      }
      return try store.commit(items, by: author, origin: origin)
    }
    if isFirstUnsaved { writer.wake() }
    announce()
    return changeset
  }

  /// The client has its answer.
  public func noteAnswered(_ origin: Origin) { store.noteAnswered(origin) }

  private func items(for intent: Intent) throws(EngineError) -> [Changeset.Item] {
    switch intent {
    case .set(let key, let domain, let value, let text):
      let place = try writePlace(of: key, in: domain)
      return [Changeset.Item(Location(place, domain), .set(key, value, text))]
    case .describe(let key, let domain, let description):
      let location = Location(try writePlace(of: key, in: domain), domain)
      return [Changeset.Item(location, .describe(key, description))]
    case .remove(let key, let domain):
      let place = try writePlace(of: key, in: domain)
      let location = Location(place, domain)
      if try store.find(key, at: location) == nil { try refuseRemoval(key, in: domain) }
      return [Changeset.Item(location, .remove(key))]
    case .createDomain(let domain):
      guard try !hasDomain(domain) else {
        throw EngineError(.domainExists, domain: domain, "there is such a domain")
      }
      return [Changeset.Item(Location(.user, domain), .createDomain)]
    case .removeDomain(let domain):
      guard try isEmpty(domain) else {
        throw EngineError(.domainNotEmpty, domain: domain, "remove its keys first")
      }
      return try ownItems(of: domain).map { Changeset.Item($0, .removeDomain) }
    case .renameDomain(let old, let new): return try rename(old, to: new)
    }
  }

  /// Where a write of the key goes: the host's list if the key stands there, else the user's.
  /// Only the places before them are asked, so that a damaged list elsewhere stops no write.
  private func writePlace(of key: Key, in domain: DomainName) throws(EngineError) -> Place {
    for location in [Location(.managed, domain), Location(.managed, .global)]
    where try store.find(key, at: location) != nil {
      throw EngineError(
        .forced, domain: domain, key: key, "the administrator has set it (a managed list)")
    }
    return try store.find(key, at: Location(.host, domain)) != nil ? .host : .user
  }

  private func isEmpty(_ domain: DomainName) throws(EngineError) -> Bool {
    for place in SearchList.persistentPlaces
    where try !store.snapshot(of: Location(place, domain)).isEmpty { return false }
    return true
  }

  private func refuseRemoval(_ key: Key, in domain: DomainName) throws(EngineError) -> Never {
    for location in SearchList.locations(for: domain)
    where SearchList.persistentPlaces.contains(location.place) {
      guard try store.find(key, at: location) != nil else { continue }
      throw EngineError(
        .heldElsewhere, domain: domain, key: key,
        "it comes from \(location.source(seenFrom: domain)), which a removal does not reach")
    }
    throw EngineError(.noSuchKey, domain: domain, key: key, "there is no such key")
  }

  /// The user's own locations of a domain that has no others.
  private func ownItems(of domain: DomainName) throws(EngineError) -> [Location] {
    guard domain != .global else {
      throw EngineError(.heldElsewhere, domain: domain, "the global domain is always there")
    }
    for place in [Place.managed, .anyUser] where try store.exists(Location(place, domain)) {
      throw EngineError(
        .heldElsewhere, domain: domain, "the place \(place.rawValue) has the domain too")
    }
    var own: [Location] = []
    for place in [Place.user, .host] where try store.exists(Location(place, domain)) {
      own.append(Location(place, domain))
    }
    guard !own.isEmpty else {
      throw EngineError(.noSuchDomain, domain: domain, "there is no such domain")
    }
    return own
  }

  private func rename(
    _ old: DomainName, to new: DomainName
  ) throws(EngineError) -> [Changeset.Item] {
    if try hasDomain(new) {
      guard try isEmpty(new) else {
        throw EngineError(.domainNotEmpty, domain: new, "it has keys; remove them first")
      }
      _ = try ownItems(of: new)
    }
    var items: [Changeset.Item] = []
    for location in try ownItems(of: old) {
      let target = Location(location.place, new)
      let snapshot = try store.snapshot(of: location)
      items.append(Changeset.Item(target, .createDomain))
      for key in snapshot.keys {
        guard let entry = snapshot.entry(key) else { continue }
        let text: WrittenText = entry.text.map { .exact($0) } ?? .canonical
        items.append(Changeset.Item(target, .set(key, entry.value, text)))
        if let mode = entry.metadata.mode {
          items.append(Changeset.Item(target, .describe(key, Description(mode: mode))))
        }
      }
      items.append(Changeset.Item(location, .removeDomain))
    }
    return items
  }
}
