import PreferenceModel
import PropertyList

// What changes of the store mean for domains that find keys in several places.

extension SearchEngine {
  public func inherits(_ domain: DomainName, from other: DomainName) -> Bool {
    // Suites that are not known may be any.
    domain != other && (other == .global || knownSuites(of: domain)?.contains(other) != false)
  }

  public func inherits(_ domain: DomainName, fromAny others: Set<DomainName>) -> Bool {
    if domain != .global, others.contains(.global) { return true }
    guard let known = knownSuites(of: domain) else {
      return others.count > (others.contains(domain) ? 1 : 0)
    }
    return known.contains { $0 != domain && others.contains($0) }
  }

  public func reaches(_ location: Location, of domain: DomainName) -> Bool {
    location.domain == domain && location.place.isOwn
  }

  public func domainsNeeded(for key: Key?, in domain: DomainName) -> [DomainName] {
    let knowsLocks = knowsLocks
    if domain == .global { return knowsLocks ? [domain] : [domain, KeptSuites.domain] }
    if knowsLocks, let known = knownSuites(of: domain) {
      return known.isEmpty ? [domain] : [domain] + known
    }
    // The suites are looked up once the lists that may keep them are in memory.
    let areListsRead = lists?.isAtHand(KeptSuites.domain) ?? true
    return [domain, KeptSuites.domain] + (areListsRead ? suites(of: domain) : [])
  }

  /// A domain whose suites or languages changed is invalidated; all are if the locks did.
  public func shown(_ changeset: Changeset) -> Changeset {
    var shown = changeset
    if changeset.concernsLocks { shown.invalidated.insert(Location(.user, .global)) }
    // Each write asks this: an item is looked at in place, because a copy takes longer than the look.
    for index in changeset.items.indices {
      if let domain = KeptSuites.domain(of: changeset.items[index]) {
        shown.invalidated.insert(Location(.user, domain))
      } else if changeset.items[index].edit.key == Languages.key {
        shown.invalidated.insert(changeset.items[index].location)
      }
    }
    return shown
  }

  public func notice(of changeset: Changeset) -> Notice {
    let has = { [places] (key: Key, domain: DomainName, asked: ArraySlice<Place>) in
      asked.contains { place in
        let location = Location(place, domain)
        return places.isLoaded(location) && (try? places.find(key, at: location)) != nil
      }
    }
    let seen = seen(Notice(changeset: changeset, events: changeset.events(has), author: nil))
    let registered = changeset.items.filter { $0.location.place == .registered }
    let others = registered.compactMap(\.event).map { event in
      let isHeld = has(event.key, event.domain, SearchList.persistentPlaces[...])
      return isHeld ? KeyEvent(event.domain, event.key, .changed) : event
    }
    return Notice(changeset: seen.changeset, events: seen.events + others, author: nil)
  }

  /// The notice as observers of this engine see it: a key that has a registered default does not
  /// come or go with its stored value, but changes; a domain whose suites or languages changed is
  /// invalidated.
  func seen(_ notice: Notice) -> Notice {
    let events = notice.events.map { event in
      registered.find(event.key, in: event.domain) == nil
        ? event : KeyEvent(event.domain, event.key, .changed)
    }
    return Notice(
      changeset: shown(notice.changeset), events: events, author: notice.author,
      origin: notice.origin)
  }
}

extension Changeset {
  /// Whether any domain may have other kept suites after the change.
  var concernsAllSuites: Bool {
    invalidated.contains { $0.domain == KeptSuites.domain }
      || items.contains { $0.location.domain == KeptSuites.domain && $0.edit == .removeDomain }
  }

  /// Whether domains may have different languages after the change.
  var concernsLanguages: Bool {
    !invalidated.isEmpty
      || items.contains { $0.edit.key == Languages.key || KeptSuites.domain(of: $0) != nil }
      || items.contains { if case .removeDomain = $0.edit { true } else { false } }
  }
}
