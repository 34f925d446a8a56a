import PropertyList
import SystemCalls

/// A change that is asked for. For most kinds of intent the engine chooses the place.
public enum Intent: Equatable, Sendable {
  /// Sets a key: in the cloud if it is a key of the cloud; else in the host's list if that has the
  /// key, else in the user's.
  case set(Key, DomainName, Value, WrittenText)
  /// Changes what is kept beside a key's value, in the first of the user's places that has the key.
  /// Changes nothing where none has it.
  case describe(Key, DomainName, Description)
  /// Changes a part of a key's string or data, in the first of the user's places that has it.
  /// Refused (`.changedMeanwhile`) where the value there does not have the length and kind that the
  /// splice was computed from.
  case splice(Key, DomainName, Splice)
  /// Removes a key from the first of the user's places that has it.
  case remove(Key, DomainName)
  /// Sets a key of the cloud there. Sets any other key in the user's list, and in the host's too if
  /// that has the key. Programs then read
  /// the new value, and it is found in whichever of the two lists somebody looks at. (defaults(1)
  /// of macOS changes the user's list alone.)
  case setOwn(Key, DomainName, Value, WrittenText)
  /// Removes a key from the cloud, the host's list and the user's list. Refused as `remove` is:
  /// `.forced`, `.heldElsewhere`, `.noSuchKey`.
  case removeOwn(Key, DomainName)
  /// Makes an empty domain in the user's place.
  case createDomain(DomainName)
  /// Removes an empty domain.
  case removeDomain(DomainName)
  /// Moves every key of a domain, in each of the user's places, to a new name.
  case renameDomain(DomainName, to: DomainName)
  /// Carries out the intent in that place, whatever the other places hold. An expectation about a
  /// different place is met.
  indirect case at(Place, Intent)
  /// Carries out an edit of one location, whatever the other places hold.
  case edit(Location, Edit)
  /// Makes these the only keys of the domain in that place.
  case replace(Location, ValueDictionary)
  /// Changes nothing, but the transaction is refused (`.changedMeanwhile`) where the key's value in
  /// that place is a different one; nil expects no value. A program that reads, computes and writes
  /// adds it to its transaction, so that no other writer's change is lost.
  case expect(Key, Location, Value?)
  /// Changes nothing, but the transaction is refused (`.changedMeanwhile`) where the key in that
  /// place was last changed at a different time; nil expects that the place does not have the key.
  /// It protects a change that was computed from the key's text.
  case expectUnchanged(Key, Location, since: Timestamp?)
  /// Changes nothing. Schemas judge the values that later intents of the transaction set: one that
  /// does not fit is refused (`.unfit`), unless the key has it already. Tools for people add it to
  /// their transactions; programs do not.
  case judged
}

extension Intent {
  /// The domains whose lists the intent needs.
  public var domains: [DomainName] {
    switch self {
    case .set(_, let domain, _, _), .describe(_, let domain, _), .splice(_, let domain, _),
      .remove(_, let domain), .setOwn(_, let domain, _, _), .removeOwn(_, let domain),
      .createDomain(let domain), .removeDomain(let domain):
      [domain]
    case .renameDomain(let old, to: let new): [old, new]
    case .at(_, let intent): intent.domains
    case .edit(let location, _), .replace(let location, _), .expect(_, let location, _),
      .expectUnchanged(_, let location, _):
      [location.domain]
    case .judged: []
    }
  }

  /// The locations that the intent names; nil where the rules choose them.
  public var locations: [Location]? {
    switch self {
    case .edit(let location, _), .replace(let location, _), .expect(_, let location, _),
      .expectUnchanged(_, let location, _):
      [location]
    case .at(let place, let intent): intent.domains.map { Location(place, $0) }
    case .judged: []
    case .set, .describe, .splice, .remove, .setOwn, .removeOwn, .createDomain, .removeDomain,
      .renameDomain:
      nil
    }
  }

  /// Whether the rules may ask every place of the search list (`ChangeRules`).
  package var asksEveryPlace: Bool {
    switch self {
    case .remove, .removeOwn, .createDomain, .removeDomain, .renameDomain: true
    case .set, .describe, .splice, .setOwn, .at, .edit, .replace, .expect, .expectUnchanged,
      .judged:
      false
    }
  }
}

extension EngineError {
  /// Returns the error with the domain and the key of the first intent, if that sets or removes a
  /// key, and the error does not say what it is about.
  package func about(_ intents: [Intent]) -> EngineError {
    if domain != nil { return self }
    return switch intents.first(where: { $0 != .judged }) {
    case .set(let key, let domain, _, _), .remove(let key, let domain):
      EngineError(reason, domain: domain, key: key, sentence)
    default: self
    }
  }
}
