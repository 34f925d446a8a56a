import PropertyList

// The rules for one place alone, without the search list.

extension ChangeRules {
  /// Returns the edits that carry out the intent in one place alone. An intent that names its own
  /// location is carried out there.
  ///
  /// Throws `.forced` for a value that a profile, a fragment or a vendor's list sets, because those
  /// are never written; a description of such a key is accepted. Throws `.noSuchKey`, `.noSuchDomain`,
  /// `.domainExists` or `.domainNotEmpty` where the place is not as the intent needs it.
  func items(for intent: Intent, in place: Place) throws(EngineError) -> [Changeset.Item] {
    switch intent {
    case .set(let key, let domain, let value, let text),
      .setOwn(let key, let domain, let value, let text):
      return [try item(.set(key, value, text), Location(place, domain))]
    case .splice(let key, let domain, let splice):
      let location = Location(place, domain)
      guard try places.find(key, at: location)?.accepts(splice) == true else {
        throw .changedMeanwhile(key, domain)
      }
      return [try item(.splice(key, splice), location)]
    case .describe(let key, let domain, let description):
      return [Changeset.Item(Location(place, domain), .describe(key, description))]
    case .remove(let key, let domain), .removeOwn(let key, let domain):
      guard try places.find(key, at: Location(place, domain)) != nil else {
        throw EngineError(.noSuchKey, domain: domain, key: key, "there is no such key")
      }
      return [try item(.remove(key), Location(place, domain))]
    case .createDomain(let domain):
      try requireCloudDomain(Location(place, domain))
      guard try !places.exists(Location(place, domain)) else {
        throw EngineError(.domainExists, domain: domain, "a domain of that name exists already")
      }
      return [Changeset.Item(Location(place, domain), .createDomain)]
    case .removeDomain(let domain):
      try requireEmpty(Location(place, domain))
      return [Changeset.Item(Location(place, domain), .removeDomain)]
    case .renameDomain(let old, to: let new):
      return try rename(Location(place, old), to: Location(place, new))
    case .expect(_, let location, _), .expectUnchanged(_, let location, _):
      return location.place == place ? try items(for: intent) : []
    case .at, .edit, .replace, .judged: return try items(for: intent)
    }
  }

  /// The edit of a key; throws `.forced` where something beside the list sets the key.
  private func item(_ edit: Edit, _ location: Location) throws(EngineError) -> Changeset.Item {
    if let key = edit.key, let setter = try places.find(key, at: location)?.metadata.setter {
      throw EngineError(
        .forced, domain: location.domain, key: key,
        "\(setter) sets it, and is never written; change or remove it")
    }
    // What an earlier version has left there can be removed.
    if case .remove = edit { return Changeset.Item(location, edit) }
    try requireCloudDomain(location)
    return Changeset.Item(location, edit)
  }

  /// Throws where the location is one of the cloud that must not be there.
  func requireCloudDomain(_ location: Location) throws(EngineError) {
    if location.place == .cloud, !location.domain.mayBeInCloud {
      throw EngineError(
        .forced, domain: location.domain,
        "the settings of prefsfs are those of one machine, and never go to the cloud")
    }
  }

  /// Throws unless the domain exists and has no keys.
  private func requireEmpty(_ location: Location) throws(EngineError) {
    guard try places.exists(location) else {
      throw EngineError(.noSuchDomain, domain: location.domain, "there is no such domain")
    }
    guard try places.keys(at: location).isEmpty else {
      throw EngineError(.domainNotEmpty, domain: location.domain, "remove its keys first")
    }
  }

  /// The edits that rename a domain; an empty domain may have the new name already.
  private func rename(
    _ old: Location, to new: Location
  ) throws(EngineError) -> [Changeset.Item] {
    if try places.exists(new) { try requireEmpty(new) }
    guard try places.exists(old), old.domain != .global else {
      throw EngineError(.noSuchDomain, domain: old.domain, "there is no such domain to rename")
    }
    for key in try places.keys(at: old) { _ = try item(.remove(key), old) }
    return try moves(from: old, to: new)
  }
}
