import PreferenceModel
import PreferenceStore
import PropertyList
import Synchronization
import SystemCalls

// The write and removal rules of the search list.

extension LocalEngine {
  public func apply(_ intents: [Intent], by author: Author) throws(EngineError) -> Changeset {
    try applying.withLock { _ throws(EngineError) in
      var items: [Changeset.Item] = []
      for intent in intents { items += try self.items(for: intent) }
      let (change, isFirstUnsaved) = try store.commit(items)
      if isFirstUnsaved { writer.wake() }
      announce(change, author: author)
      return change.changeset
    }
  }

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
      guard try keys(of: domain).isEmpty else {
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
    where try sources[.managed]?.find(key, in: location.domain) != nil {
      throw EngineError(
        .forced, domain: domain, key: key, "the administrator has set it (a managed list)")
    }
    if try sources[.arguments]?.find(key, in: .global) != nil {
      throw EngineError(
        .argument, domain: domain, key: key, "an argument of the mount (-\(key)) sets it")
    }
    return try sources[.host]?.find(key, in: domain) != nil ? .host : .user
  }

  private func refuseRemoval(_ key: Key, in domain: DomainName) throws(EngineError) -> Never {
    guard let found = try resolve(key, in: domain) else {
      throw EngineError(.noSuchKey, domain: domain, key: key, "there is no such key")
    }
    throw EngineError(
      .heldElsewhere, domain: domain, key: key,
      "it comes from \(found.location.source(seenFrom: domain)), which a removal does not reach")
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
      guard try keys(of: new).isEmpty else {
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
