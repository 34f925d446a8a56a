import PropertyList

/// Turns intents into edits by the write and removal rules of the search list, over any places. The
/// places must not change while the rules are asked.
public struct ChangeRules<Places: StoredPlaces> {
  let places: Places
  private let heedsLocks: Bool

  /// Creates the rules over these places.
  /// - Parameter heedsLocks: whether changes in domains that the administrator has locked are
  ///   refused.
  public init(_ places: Places, heedsLocks: Bool = true) {
    (self.places, self.heedsLocks) = (places, heedsLocks)
  }

  /// Throws `.forced` if one of a transaction's intents would change something of the user's in a
  /// locked domain. Ask this before `items`: an expectation about a value that the lock hides would
  /// be refused first, as one that no longer holds.
  public func requireUnlocked(_ intents: [Intent]) throws(EngineError) {
    guard heedsLocks else { return }
    // By index: a loop over the intents would allocate.
    for index in intents.indices where intents[index].mayChangeOwn {
      try places.domainLocks().refuse(intents[index])
    }
  }

  /// Returns the edits that carry out the intent. Throws where the intent is refused, and says why.
  public func items(for intent: Intent) throws(EngineError) -> [Changeset.Item] {
    switch intent {
    case .set(let key, let domain, let value, let text):
      let place = try placeOfWrite(of: key, in: domain)
      return [Changeset.Item(Location(place, domain), .set(key, value, text))]
    case .splice(let key, let domain, let splice):
      let location = try holder(of: key, in: domain)
      guard try places.find(key, at: location)?.accepts(splice) == true else {
        throw .changedMeanwhile(key, domain)
      }
      return [Changeset.Item(location, .splice(key, splice))]
    case .describe(let key, let domain, let description):
      return [Changeset.Item(try holder(of: key, in: domain), .describe(key, description))]
    case .remove(let key, let domain):
      let location = try holder(of: key, in: domain)
      if try places.find(key, at: location) == nil { try refuseRemoval(key, in: domain) }
      return [Changeset.Item(location, .remove(key))]
    case .setOwn(let key, let domain, let value, let text):
      let place = try placeOfWrite(of: key, in: domain)
      let places = place == .host ? [.host, .user] : [place]
      return places.map { .init(Location($0, domain), .set(key, value, text)) }
    case .removeOwn(let key, let domain):
      _ = try items(for: .remove(key, domain))
      var items: [Changeset.Item] = []
      for location in Place.own.map({ Location($0, domain) })
      where try places.find(key, at: location) != nil {
        items.append(Changeset.Item(location, .remove(key)))
      }
      return items
    case .createDomain(let domain):
      guard try !places.hasDomain(domain) else {
        throw EngineError(.domainExists, domain: domain, "a domain of that name exists already")
      }
      return [Changeset.Item(Location(.user, domain), .createDomain)]
    case .removeDomain(let domain):
      guard try isEmpty(domain) else {
        throw EngineError(.domainNotEmpty, domain: domain, "remove its keys first")
      }
      return try ownItems(of: domain).map { Changeset.Item($0, .removeDomain) }
    case .renameDomain(let old, let new): return try rename(old, to: new)
    case .at(let place, let intent): return try items(for: intent, in: place)
    case .edit(let location, .removeDomain):
      return removal(of: location, try places.keys(at: location))
    case .edit(let location, let edit):
      switch edit {
      case .set(let key, _, _), .remove(let key), .splice(let key, _):
        try requireVisible(key, at: location)
        if case .remove = edit { break }
        try requireCloudDomain(location)
      case .createDomain: try requireCloudDomain(location)
      case .describe, .removeDomain: break
      }
      return [Changeset.Item(location, edit)]
    case .replace(let location, let values): return try replace(location, values)
    case .judged: return []
    case .expect(let key, let location, let value):
      guard try places.find(key, at: location)?.value == value else {
        throw .changedMeanwhile(key, location.domain)
      }
      return []
    case .expectUnchanged(let key, let location, let time):
      guard try places.find(key, at: location)?.modified == time else {
        throw .changedMeanwhile(key, location.domain)
      }
      return []
    }
  }

  /// Returns the place that a write of the key goes to: the cloud for a key of the cloud; else the
  /// host's list if it has the key, else the user's list. Throws `.forced` where a managed list or
  /// a profile has the key, or the domain is locked.
  ///
  /// Only the managed places, the cloud's and the host's list are asked, so that a damaged list
  /// elsewhere stops no write.
  public func writePlace(of key: Key, in domain: DomainName) throws(EngineError) -> Place {
    if heedsLocks { try places.domainLocks().refuse(.remove(key, domain)) }
    return try placeOfWrite(of: key, in: domain)
  }

  private func placeOfWrite(of key: Key, in domain: DomainName) throws(EngineError) -> Place {
    let held = try holder(of: key, in: domain)
    if held.place == .cloud || places.belongsInCloud(key, of: domain) { return .cloud }
    // A key of the cloud that was removed and is made again, as some programs write files.
    if held.place == .user, places.hasLeftCloud(key, of: domain),
      try places.find(key, at: held) == nil
    {
      return .cloud
    }
    return held.place
  }

  /// Returns the user's location of the domain that has the key, the one that wins first; the user's
  /// list if none has it. Throws `.forced` where a managed list or a profile has the key.
  private func holder(of key: Key, in domain: DomainName) throws(EngineError) -> Location {
    guard let found = try places.findFirst(key, in: SearchList.beforeUser(domain)) else {
      return Location(.user, domain)
    }
    guard found.location.place.isForced else { return found.location }
    let source = found.stored.metadata.setter.map { "\($0)" } ?? "a managed list"
    throw EngineError(
      .forced, domain: domain, key: key, "the administrator has set it (\(source))")
  }

  private func isEmpty(_ domain: DomainName) throws(EngineError) -> Bool {
    for place in SearchList.persistentPlaces
    where try !places.keys(at: Location(place, domain)).isEmpty { return false }
    return true
  }

  /// Throws why a key that the write place lacks cannot be removed: another place has it, or no
  /// place does.
  private func refuseRemoval(_ key: Key, in domain: DomainName) throws(EngineError) -> Never {
    for location in SearchList.locations(for: domain)
    where SearchList.persistentPlaces.contains(location.place) {
      guard try places.find(key, at: location) != nil else { continue }
      throw EngineError(
        .heldElsewhere, domain: domain, key: key,
        "it comes from \(location.source(seenFrom: domain)), which a removal does not reach")
    }
    throw EngineError(.noSuchKey, domain: domain, key: key, "there is no such key")
  }

  /// The user's own locations of a domain, as far as they exist. Throws for the global
  /// domain, and where the domain is in another place too, or in no place.
  private func ownItems(of domain: DomainName) throws(EngineError) -> [Location] {
    guard domain != .global else {
      throw EngineError(.heldElsewhere, domain: domain, "the global domain is always there")
    }
    for place in Place.forced + Place.shared {
      let location = Location(place, domain)
      guard try places.exists(location) else { continue }
      let name = location.source(seenFrom: domain)
      throw EngineError(
        .heldElsewhere, domain: domain,
        "the place \(name) has the domain too, which this change does not reach")
    }
    var own: [Location] = []
    for place in Place.own.reversed() where try places.exists(Location(place, domain)) {
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
    if try places.hasDomain(new) {
      guard try isEmpty(new) else {
        throw EngineError(.domainNotEmpty, domain: new, "it has keys; remove them first")
      }
      _ = try ownItems(of: new)
    }
    var items: [Changeset.Item] = []
    for location in try ownItems(of: old) {
      items += try moves(from: location, to: Location(location.place, new))
    }
    return items
  }

  /// The edits that move every key, with its text, mode and time, from one location to another, and
  /// remove the first one.
  func moves(
    from location: Location, to target: Location
  ) throws(EngineError) -> [Changeset.Item] {
    try requireCloudDomain(target)
    var items = [Changeset.Item(target, .createDomain)]
    let keys = try places.keys(at: location)
    for key in keys {
      guard let entry = try places.find(key, at: location) else { continue }
      let text: WrittenText = entry.text.map { .exact($0) } ?? .canonical
      items.append(Changeset.Item(target, .set(key, entry.value, text)))
      let description = Description(mode: entry.metadata.mode, modified: entry.modified)
      items.append(Changeset.Item(target, .describe(key, description)))
    }
    // Behind the keys: else they would have made it.
    if !keys.isEmpty, try places.isMade(location) {
      items.append(Changeset.Item(target, .createDomain))
    }
    return items + removal(of: location, keys)
  }

  /// Each key goes by itself: other domains may show it, and observers are told of it.
  private func removal(of location: Location, _ keys: [Key]) -> [Changeset.Item] {
    keys.map { Changeset.Item(location, .remove($0)) } + [Changeset.Item(location, .removeDomain)]
  }

  /// Throws `.forced` where a fragment sets the key, so that nobody would see a change of the list.
  private func requireVisible(_ key: Key, at location: Location) throws(EngineError) {
    guard location.place.hasAdditions,
      case .file(let path)? = try places.find(key, at: location)?.metadata.setter
    else { return }
    throw EngineError(
      .forced, domain: location.domain, key: key,
      "\(Setter.file(path)) sets it, and is never written; change or remove it")
  }

  private func replace(
    _ location: Location, _ values: ValueDictionary
  ) throws(EngineError) -> [Changeset.Item] {
    if !values.isEmpty { try requireCloudDomain(location) }
    let gone = try places.keys(at: location).filter { values[$0] == nil }.map(Edit.remove)
    for edit in gone { if let key = edit.key { try requireVisible(key, at: location) } }
    if location.place.hasAdditions {
      for (key, value) in values {
        let old = try places.find(key, at: location)?.value
        if old != value { try requireVisible(key, at: location) }
      }
    }
    let set = values.map { Edit.set($0.key, $0.value, .unknown) }
    return ([.createDomain] + gone + set).map { Changeset.Item(location, $0) }
  }
}
