import PropertyList
import SystemCalls

/// A key's value as the search list resolves it.
public struct Resolution: Equatable, Sendable {
  /// The value, and what is kept beside it.
  public let stored: StoredValue
  /// Which list, or volatile table, answered.
  public let location: Location

  /// A value and where it was found.
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
  /// When the value last changed.
  public var modified: Timestamp { stored.metadata.modified }
  /// The permission bits that it was given.
  public var mode: UInt32? { stored.metadata.mode }

  /// Whether nobody but the administrator can change it ("forced").
  public var isForced: Bool { location.place == .managed }

  /// Whether a write of the key would be refused.
  public var isReadOnly: Bool { isForced || location.place == .arguments }
}

/// A wish to change something; the engine finds the place.
public enum Intent: Equatable, Sendable {
  /// Sets a key: in the host's list if it stands there, else in the user's.
  case set(Key, DomainName, Value, WrittenText)
  /// Changes what is kept beside a key's value, where the key stands in a place that a write would
  /// go to; elsewhere nothing.
  case describe(Key, DomainName, Description)
  /// Changes a part of a key's string or data, where a set would go; refused (`.changedMeanwhile`) where it is
  /// not the value that the splice was computed from.
  case splice(Key, DomainName, Splice)
  /// Removes a key from the place that a write would go to.
  case remove(Key, DomainName)
  /// Sets a key in the user's list, and in the host's too where the key stands there: whoever looks into one
  /// of the lists finds it, and programs read it (defaults(1) of macOS changes the user's list alone).
  case setOwn(Key, DomainName, Value, WrittenText)
  /// Removes a key from the user's and the host's lists.
  case removeOwn(Key, DomainName)
  /// Makes an empty domain in the user's place.
  case createDomain(DomainName)
  /// Removes an empty domain.
  case removeDomain(DomainName)
  /// Moves every key of a domain, in the user's and the host's place, to a new name.
  case renameDomain(DomainName, to: DomainName)
  /// Carries out an edit of one place, whatever the other places hold.
  case edit(Location, Edit)
  /// Makes the domain hold these keys in that place and no others.
  case replace(Location, ValueDictionary)
  /// Changes nothing; the transaction is refused (`.changedMeanwhile`) where the key's value in that
  /// place is another one. Who reads, computes and writes loses no other writer's change so.
  case expect(Key, Location, Value?)
  /// The same, for what was computed from a text: the key there must be as it was last changed at that
  /// time; nil: it must not be there.
  case expectUnchanged(Key, Location, since: Timestamp?)
}

extension Intent {
  /// The domains whose lists it needs.
  public var domains: [DomainName] {
    switch self {
    case .set(_, let domain, _, _), .describe(_, let domain, _), .splice(_, let domain, _),
      .remove(_, let domain), .setOwn(_, let domain, _, _), .removeOwn(_, let domain),
      .createDomain(let domain), .removeDomain(let domain):
      [domain]
    case .renameDomain(let old, to: let new): [old, new]
    case .edit(let location, _), .replace(let location, _), .expect(_, let location, _),
      .expectUnchanged(_, let location, _):
      [location.domain]
    }
  }
}

/// Who made a change, so that nobody answers an echo of his own.
public struct Author: Hashable, Sendable {
  /// Unique among the processes of a store; a random number, for instance.
  public let number: UInt64

  /// An author with the number.
  public init(number: UInt64) { self.number = number }

  /// An author like no other.
  public static func unique() -> Author { Author(number: .random(in: 1 ... .max)) }
}

/// What became of a key that its domain lists, over all of the domain's own places.
public struct KeyEvent: Hashable, Sendable {
  /// What happened.
  public enum Kind: UInt8, Hashable, Sendable {
    /// The domain has the key now, and had not.
    case created
    /// Its value, or its text, is another.
    case changed
    /// The domain has it no longer.
    case removed
  }

  /// The domain.
  public let domain: DomainName
  /// The key.
  public let key: Key
  /// What happened.
  public let kind: Kind

  /// An event of a key.
  public init(_ domain: DomainName, _ key: Key, _ kind: Kind) {
    (self.domain, self.key, self.kind) = (domain, key, kind)
  }
}

/// What observers are told: a change that has taken effect, and whose it was.
public struct Notice: Equatable, Sendable {
  /// The edits that changed something.
  public let changeset: Changeset
  /// What they did to the keys that domains list.
  public let events: [KeyEvent]
  /// Who made them; nil for changes from outside.
  public let author: Author?
  /// Which client's request it was; nil: none.
  public let origin: Origin?

  /// A notice of a change.
  public init(
    changeset: Changeset, events: [KeyEvent] = [], author: Author?, origin: Origin? = nil
  ) {
    self.changeset = changeset
    self.events = events
    self.author = author
    self.origin = origin
  }
}

/// How far a mount has told its kernel of a change.
public enum Settlement: UInt8, Sendable, CaseIterable {
  /// Attributes are dropped: the next stat(2), read(2) or open(2) of a known file is right.
  case attributes
  /// Entries are dropped too: so is the next look-up of a name that came or went.
  case entries
}

/// What every engine does, with volatile places or without: changes, and who hears of them.
///
/// Promises: any thread may call; no call waits for a disk but `synchronize`, the first use of a list
/// (which reads it), and `apply` for a full page cache; what `apply` has returned is read by
/// everyone and survives the end of every process. Where another process owns the store and does not
/// answer, reads go on from what this one knows, and changes fail with ETIMEDOUT after 5 s.
public protocol ChangeService: AnyObject, Sendable {
  /// Carries out the intents as one transaction: all take effect, or none.
  /// - Returns: what changed; an intent that changes nothing is not in it.
  func apply(_ intents: [Intent], by author: Author) throws(EngineError) -> Changeset

  /// Returns when everything that was applied before is on the disk: fsync(2). Blocks.
  func makeDurable() throws(EngineError)

  /// Returns when everything that was applied before is on the disk, and every mount has dropped
  /// what it told its kernel before. Blocks.
  func synchronize() throws(EngineError)

  /// Returns when the location's list has everything that was applied before. Blocks.
  func save(_ location: Location) throws(EngineError)

  /// Returns when every mount has dropped what it told its kernel before the change of that number, or
  /// was silent for a second. Blocks.
  func awaitMounts(through version: UInt64) throws(EngineError)

  /// Calls the observer for every change from now on that the author did not make (nil: for every
  /// change), after it took effect, in the order of their versions. The observer must not block and
  /// must not call the engine.
  func observe(except author: Author?, _ observer: @escaping @Sendable (Notice) -> Void)

  /// The mount of that author is one that changes wait for: it says with `settle` how far it is.
  func addMount(_ author: Author)

  /// The mount has told its kernel of every change up to the version.
  func settle(_ settlement: Settlement, through version: UInt64, by author: Author)

  /// Calls the body when every other mount has told its kernel of the changes up to the version, or
  /// was silent for a second: at once, where that is so already. Any thread may call it.
  func whenSettled(
    _ settlement: Settlement, through version: UInt64, except author: Author,
    _ body: @escaping @Sendable () -> Void)

  /// Whether a change would be answered soon: the store is this process's own, or its owner answers
  /// within so many milliseconds. Cost: nothing where he has answered something in the last 5 ms.
  func isAnswering(within milliseconds: Int64) -> Bool

  /// The size of the file system that holds the user's lists.
  func space() -> StoreSpace

  /// Whether every change is refused.
  var isReadOnly: Bool { get }

  /// Whether other processes use the store at the moment. Cost: a load.
  var isShared: Bool { get }
}

/// The preference engine as everything above it sees it: the search list over all places. Whether
/// the store is this process's own, or another's behind a socket, cannot be told from here.
public protocol Engine: ChangeService {
  /// Every domain that a persistent place has, and the global one. Cost: a listing of the
  /// places' directories.
  func domains() throws(EngineError) -> Set<DomainName>

  /// Whether a persistent place has the domain. The global one is always there.
  func hasDomain(_ domain: DomainName) throws(EngineError) -> Bool

  /// The keys that the domain itself has in any place, not what it inherits.
  func keys(of domain: DomainName) throws(EngineError) -> Set<Key>

  /// The keys that every domain inherits: those of the global domain and of the arguments.
  func inheritedKeys() throws(EngineError) -> Set<Key>

  /// When the domain's own lists last changed; nil where it has none.
  func modified(_ domain: DomainName) throws(EngineError) -> Timestamp?

  /// The first hit of the search list; nil where no place holds the key.
  func resolve(_ key: Key, in domain: DomainName) throws(EngineError) -> Resolution?

  /// Adds defaults for a domain: what no other place holds is read from them, until the process
  /// ends. Of a key registered twice the last value counts (NSUserDefaults registerDefaults:).
  func register(_ defaults: ValueDictionary, for domain: DomainName)
}

/// What the persistent places of a store hold.
public protocol StoredPlaces {
  /// A key's value in one place.
  func find(_ key: Key, at location: Location) throws(EngineError) -> StoredValue?

  /// The keys of a domain in one place, in no order.
  func keys(at location: Location) throws(EngineError) -> [Key]

  /// Whether the place has the domain.
  func exists(_ location: Location) throws(EngineError) -> Bool
}

/// The persistent places of one store, as a process has them: it owns the store (`LocalPlaces`), or
/// asks its owner (`RemotePlaces`). What they give is no older than any change that `apply` had
/// returned, in any process, when they were asked.
public protocol PersistentPlaces: ChangeService, StoredPlaces {
  /// `apply` as a request that may be asked again, of this owner of the store or of the next, because
  /// no answer came: it is carried out once. Throws ETIMEDOUT after the deadline; then it is not
  /// carried out later either.
  func apply(
    _ intents: [Intent], by author: Author, origin: Origin, until deadline: Instant
  ) throws(EngineError) -> Changeset

  /// `apply` without waiting: what it changes is read here at once, and has left this process when it
  /// returns, so that it happens whatever becomes of this process. Waits only while there is no owner, or
  /// one who takes nothing, 5 s at most. `done` is called, by any thread, where it was refused (then it
  /// is as if it had never been asked), and where it may have taken effect without a notice.
  func post(
    _ intents: [Intent], by author: Author, done: @escaping @Sendable (EngineError?) -> Void)

  /// Whether what the location holds is at hand: a look-up waits for no disk and for no other process.
  func isLoaded(_ location: Location) -> Bool

  /// The locations as they are at one moment: of no transaction a part is in them, and another not.
  func snapshots(of locations: [Location]) throws(EngineError) -> [DomainSnapshot]

  /// Whether every change that `apply` had returned, in any process, has been told to the observers
  /// here. Cost: a few loads.
  var isFresh: Bool { get }

  /// When the domain last changed there; nil where it is not.
  func modified(_ location: Location) throws(EngineError) -> Timestamp?

  /// The domains that the place has.
  func domains(in place: Place) throws(EngineError) -> Set<DomainName>
}

extension PersistentPlaces {
  /// Where a change costs no message, it is carried out.
  public func post(
    _ intents: [Intent], by author: Author, done: @escaping @Sendable (EngineError?) -> Void
  ) {
    do {
      _ = try apply(intents, by: author)
    } catch {
      done(error)
    }
  }
}

extension StoredPlaces {
  /// Whether a persistent place has the domain. The global one is always there.
  public func hasDomain(_ domain: DomainName) throws(EngineError) -> Bool {
    if domain == .global { return true }
    for place in SearchList.persistentPlaces
    where try exists(Location(place, domain)) { return true }
    return false
  }
}

/// Blocks of the file system that holds the user's lists.
public struct StoreSpace: Equatable, Sendable {
  /// Bytes a block.
  public var blockSize: UInt64
  /// Blocks in all.
  public var blocks: UInt64
  /// Blocks that are free.
  public var free: UInt64
  /// Blocks that are free for this user.
  public var available: UInt64

  /// Numbers as statvfs(3) has them.
  public init(blockSize: UInt64 = 4096, blocks: UInt64 = 0, free: UInt64 = 0, available: UInt64 = 0)
  {
    self.blockSize = blockSize
    self.blocks = blocks
    self.free = free
    self.available = available
  }

  /// The file system of a path; zeros where there is no such path. Cost: statvfs(3).
  public init(ofVolume path: String) {
    self.init()
    guard let space = try? Files.space(path) else { return }
    blockSize = UInt64(space.f_frsize)
    (blocks, free) = (UInt64(space.f_blocks), UInt64(space.f_bfree))
    available = UInt64(space.f_bavail)
  }
}
