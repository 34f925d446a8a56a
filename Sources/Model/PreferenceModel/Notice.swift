import PropertyList
import SystemCalls

/// Identifies who made a change, so that an observer is not notified of its own changes.
public struct Author: Hashable, Sendable {
  /// A number that is unique among the processes of a store, e.g. a random one.
  public let number: UInt64

  /// Creates the author with that number.
  public init(number: UInt64) { self.number = number }

  /// Returns an author with a new random number.
  public static func unique() -> Author { Author(number: .random(in: 1 ... .max)) }
}

/// What happened to a key that its domain lists, over all of the domain's own places.
public struct KeyEvent: Hashable, Sendable {
  /// What happened.
  public enum Kind: UInt8, Hashable, Sendable {
    /// The domain has the key and did not have it before.
    case created
    /// The key's value or its text changed.
    case changed
    /// The domain no longer has the key.
    case removed
  }

  /// The domain.
  public let domain: DomainName
  /// The key.
  public let key: Key
  /// What happened.
  public let kind: Kind

  /// Creates an event of a key.
  public init(_ domain: DomainName, _ key: Key, _ kind: Kind) {
    (self.domain, self.key, self.kind) = (domain, key, kind)
  }
}

extension Changeset {
  /// What the change did to the keys that domains list, over all of a domain's own places. A key
  /// that an earlier place of the search list holds too has no event. A key that only a later place
  /// holds too changes, and is neither created nor removed.
  /// - Parameter has: whether the domain has the key now in one of the places.
  public func events(_ has: (Key, DomainName, ArraySlice<Place>) -> Bool) -> [KeyEvent] {
    items.compactMap { item in
      let places = SearchList.persistentPlaces
      let domain = item.location.domain
      guard let event = item.event, let index = places.firstIndex(of: item.location.place) else {
        return nil
      }
      if has(event.key, domain, places[..<index]) { return nil }
      if event.kind != .changed, has(event.key, domain, places[(index + 1)...]) {
        return KeyEvent(domain, event.key, .changed)
      }
      return event
    }
  }
}

extension Changeset.Item {
  /// What the edit did to its key, in its location alone; nil for edits that change no value.
  public var event: KeyEvent? {
    let (key, isThere): (Key, Bool)
    switch edit {
    case .set(let name, _, _), .splice(let name, _): (key, isThere) = (name, true)
    case .remove(let name): (key, isThere) = (name, false)
    case .describe, .createDomain, .removeDomain: return nil
    }
    if isThere { return KeyEvent(location.domain, key, hadKey ? .changed : .created) }
    return hadKey ? KeyEvent(location.domain, key, .removed) : nil
  }
}

/// What observers are notified of: a change that has taken effect, and its author.
public struct Notice: Equatable, Sendable {
  /// The edits that changed something.
  public package(set) var changeset: Changeset
  /// What the edits did to keys that domains list.
  public let events: [KeyEvent]
  /// Who made the change; nil for changes by other programs and for changes of volatile places.
  public package(set) var author: Author?
  /// The request of a client that made the change; nil where there was none.
  public let origin: Origin?

  /// Creates the notice of a change.
  public init(
    changeset: Changeset, events: [KeyEvent] = [], author: Author?, origin: Origin? = nil
  ) {
    self.changeset = changeset
    self.events = events
    self.author = author
    self.origin = origin
  }
}
