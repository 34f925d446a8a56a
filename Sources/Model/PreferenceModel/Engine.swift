import PropertyList
import SystemCalls

/// The value of a key as the search list resolves it, and where it was found.
public struct Resolution: Equatable, Sendable {
  /// The value, and what is kept beside it.
  public let stored: StoredValue
  /// The list, or the volatile table, that holds the value.
  public let location: Location
  /// Whether a write of the key would be refused.
  public let isReadOnly: Bool

  /// Creates a resolution from a value and where it was found.
  /// - Parameter isReadOnly: whether a write of the key would be refused; nil means as in the
  ///   search list, where forced values and arguments are read-only.
  public init(
    _ stored: StoredValue, location: Location, isReadOnly: Bool? = nil
  ) {
    self.stored = stored
    self.location = location
    self.isReadOnly = isReadOnly ?? (location.place.isForced || location.place == .arguments)
  }

  /// The value.
  public var value: Value { stored.value }
  /// The value's kind. Cost: O(1).
  public var kind: Kind { stored.kind }
  /// The bytes last written for the value, where they are not its canonical text.
  public var text: [UInt8]? { stored.text }
  /// When the value, or its text, last changed; or the time that utimensat(2) set.
  public var modified: Timestamp { stored.metadata.modified }
  /// When the value, its text, time or mode last changed. It never goes back.
  public var changed: Timestamp { stored.metadata.lastChanged }
  /// The permission bits that chmod(2) gave the key; nil for the usual ones.
  public var mode: UInt32? { stored.metadata.mode }

  /// Whether only the administrator can change the value ("forced").
  public var isForced: Bool { location.place.isForced }
}

/// Preferences as the modules above see them: domains, keys, and for each key the value that
/// counts. `SearchEngine` is the search list over all places; other engines show a part of a store
/// in the same form, so that one tree serves them all.
///
/// `apply` returns the change in the terms of the store, and observers get it so: with locations
/// and keys of lists. `notice` translates it into the domains and keys of this engine.
public protocol Engine: ChangeService {
  /// Every domain that a persistent place has, and the global domain. Cost: a listing of the
  /// places' directories.
  func domains() throws(EngineError) -> Set<DomainName>

  /// Whether the domain exists: a persistent place has it, or its schema has defaults. Then it is
  /// not in `domains`. The global domain always exists.
  func hasDomain(_ domain: DomainName) throws(EngineError) -> Bool

  /// Whether the domain exists only because its schema has defaults. Its first key makes it one of
  /// `domains`. Cost: of a domain without a schema, a hash look-up.
  func isUnmade(_ domain: DomainName) -> Bool

  /// Reads the domain's lists into memory, as far as they can be read, so that changes that are
  /// made directly in a list are noticed. Cost: the first time O(their size).
  func load(_ domain: DomainName)

  /// The keys that the domain itself has in any place, not what it inherits.
  func keys(of domain: DomainName) throws(EngineError) -> Set<Key>

  /// Whether the domain has more than `manyKeys` keys, so that listing them takes longer than
  /// another request may have to wait. Cost: a few locks; no list is read for it.
  func hasManyKeys(_ domain: DomainName) -> Bool

  /// The keys that the domain inherits: from the arguments, its suites, the global domain and its
  /// languages.
  func inheritedKeys(of domain: DomainName) throws(EngineError) -> Set<Key>

  /// When the domain's own lists last changed; nil where it has none.
  func modified(_ domain: DomainName) throws(EngineError) -> Timestamp?

  /// The first hit of the search list; nil where no place holds the key.
  func resolve(_ key: Key, in domain: DomainName) throws(EngineError) -> Resolution?

  /// How many changes answers of `resolve` contain. An answer holds while this number, read before
  /// it, is the same; nil if no answer may be kept at the moment. Cost: a few loads.
  var generation: UInt64? { get }

  /// Whether keys of the other domain may be found in the domain too, unless it has them itself. Of
  /// a domain whose suites are not known, those of any other domain may.
  func inherits(_ domain: DomainName, from other: DomainName) -> Bool

  /// Whether `inherits` holds for one of the others. Cost: O(suites of the domain).
  func inherits(_ domain: DomainName, fromAny others: Set<DomainName>) -> Bool

  /// Whether a removal of a key of the domain removes a value that was found at the location.
  func reaches(_ location: Location, of domain: DomainName) -> Bool

  /// The place that gets a key that is made, unless the rules of writes choose another one of the
  /// user's.
  var placeOfNew: Place { get }

  /// What a change of the store means for the domains and keys of this engine. The notice has no
  /// author. It asks places, but only for lists that are in memory or that the change concerns.
  func notice(of changeset: Changeset) -> Notice

  /// The changeset of `notice`, without its events. Cost: less, where nobody needs them.
  func shown(_ changeset: Changeset) -> Changeset

  /// The domains whose lists a look-up of the key, or of the domain (nil), asks, as far as that is
  /// known without reading a list. A caller that must not wait has them read first.
  func domainsNeeded(for key: Key?, in domain: DomainName) -> [DomainName]

  /// The type that schemas give a key that is made; nil if it follows from the text. If `isCertain`
  /// is false, it follows from the text too if the text is not a value of this type. Where the caller
  /// must not wait, and a schema is not in memory, this and `summary` answer as if there were none.
  func newKind(of key: Key, in domain: DomainName) -> (kind: Kind, isCertain: Bool)?

  /// What a key is for; nil if no schema says it.
  func summary(of key: Key, in domain: DomainName) -> String?
}

/// From how many names on a listing is made on a thread of its own, because it would hold up the
/// loop.
public let manyKeys = 2000

extension Engine {
  public func newKind(
    of key: Key, in domain: DomainName
  ) -> (kind: Kind, isCertain: Bool)? { nil }
  public func summary(of key: Key, in domain: DomainName) -> String? { nil }

  public func load(_ domain: DomainName) { _ = try? keys(of: domain) }

  public func hasManyKeys(_ domain: DomainName) -> Bool { false }

  /// The user's list.
  public var placeOfNew: Place { .user }

  /// There is no such domain.
  public func isUnmade(_ domain: DomainName) -> Bool { false }

  /// No answer may be kept.
  public var generation: UInt64? { nil }

  /// Nothing is inherited.
  public func inheritedKeys(of domain: DomainName) throws(EngineError) -> Set<Key> { [] }
  public func inherits(_ domain: DomainName, from other: DomainName) -> Bool { false }
  public func inherits(_ domain: DomainName, fromAny others: Set<DomainName>) -> Bool { false }

  /// As `notice` has it.
  public func shown(_ changeset: Changeset) -> Changeset { notice(of: changeset).changeset }
}
