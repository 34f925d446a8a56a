import PreferenceModel
import PropertyList

// What changes of the store mean for domains that find keys in several places.

extension SearchEngine {
  public func inherits(_ domain: DomainName, from other: DomainName) -> Bool {
    domain != other && (other == .global || suites(of: domain).contains(other))
  }

  public func reaches(_ location: Location, of domain: DomainName) -> Bool {
    location.domain == domain && [.host, .user].contains(location.place)
  }

  public func domainsNeeded(for key: Key?, in domain: DomainName) -> [DomainName] {
    knowsSuites(of: domain) || domain == .global
      ? [domain] + suites(of: domain) : [domain, KeptSuites.domain]
  }

  public func notice(of changeset: Changeset) -> Notice {
    let events = changeset.events { [places] key, location in
      places.isLoaded(location) && ((try? places.find(key, at: location)) ?? nil) != nil
    }
    return seen(Notice(changeset: changeset, events: events, author: nil))
  }

  /// The notice as observers of this engine see it: a key that has a registered default does not
  /// come or go with its stored value, but changes; a domain whose suites changed is invalidated.
  func seen(_ notice: Notice) -> Notice {
    let events = notice.events.map { event in
      registered.find(event.key, in: event.domain) == nil
        ? event : KeyEvent(event.domain, event.key, .changed)
    }
    var changeset = notice.changeset
    for item in changeset.items {
      guard let domain = KeptSuites.domain(of: item) else { continue }
      changeset.invalidated.insert(Location(.user, domain))
    }
    return Notice(
      changeset: changeset, events: events, author: notice.author, origin: notice.origin)
  }
}
