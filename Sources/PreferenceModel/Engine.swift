import PropertyList
import SystemCalls

/// The value of a key as the search list resolves it, and where it was found.
public struct Resolution: Equatable, Sendable {
  /// The value, and what is kept beside it.
  public let stored: StoredValue
  /// The list, or the volatile table, that holds the value.
  public let location: Location

  /// Creates a resolution from a value and where it was found.
  public init(_ stored: StoredValue, location: Location) {
    self.stored = stored
    self.location = location
  }

  /// The value.
  public var value: Value { stored.value }
  /// The value's kind. Cost: O(1).
  public var kind: Kind { stored.kind }
  /// The bytes last written for the value, where they are not its canonical text.
  public var text: [UInt8]? { stored.text }
  /// When the value, or its text, last changed; or the time that utimensat(2) set.
  public var modified: Timestamp { stored.metadata.modified }
  /// The permission bits that chmod(2) gave the key; nil for the usual ones.
  public var mode: UInt32? { stored.metadata.mode }

  /// Whether only the administrator can change the value ("forced").
  public var isForced: Bool { location.place.isForced }

  /// Whether a write of the key would be refused.
  public var isReadOnly: Bool { isForced || location.place == .arguments }
}

/// The preference engine as all modules above it see it: the search list over all places. A caller
/// cannot tell whether this process owns the store or another one does.
public protocol Engine: ChangeService {
  /// Every domain that a persistent place has, and the global domain. Cost: a listing of the
  /// places' directories.
  func domains() throws(EngineError) -> Set<DomainName>

  /// Whether a persistent place has the domain. The global domain always exists.
  func hasDomain(_ domain: DomainName) throws(EngineError) -> Bool

  /// The keys that the domain itself has in any place, not what it inherits.
  func keys(of domain: DomainName) throws(EngineError) -> Set<Key>

  /// The keys that every domain inherits: those of the global domain and of the arguments.
  func inheritedKeys() throws(EngineError) -> Set<Key>

  /// When the domain's own lists last changed; nil where it has none.
  func modified(_ domain: DomainName) throws(EngineError) -> Timestamp?

  /// The first hit of the search list; nil where no place holds the key.
  func resolve(_ key: Key, in domain: DomainName) throws(EngineError) -> Resolution?

  /// Registers defaults for a domain: keys that no other place holds are read from them, until the
  /// process ends. A key that is registered again gets the new value (NSUserDefaults
  /// registerDefaults:).
  func register(_ defaults: ValueDictionary, for domain: DomainName)
}
