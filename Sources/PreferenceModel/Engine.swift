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
  /// When the value last changed.
  public var modified: Timestamp { stored.metadata.modified }
  /// The permission bits that chmod(2) gave the key; nil for the usual ones.
  public var mode: UInt32? { stored.metadata.mode }

  /// Whether only the administrator can change the value ("forced").
  public var isForced: Bool { location.place == .managed }

  /// Whether a write of the key would be refused.
  public var isReadOnly: Bool { isForced || location.place == .arguments }
}

/// A change that is asked for. For most kinds of intent the engine chooses the place.
public enum Intent: Equatable, Sendable {
  /// Sets a key: in the host's list if that has the key, else in the user's.
  case set(Key, DomainName, Value, WrittenText)
  /// Changes what is kept beside a key's value. Changes nothing where the place that a write would
  /// go to does not have the key.
  case describe(Key, DomainName, Description)
  /// Changes a part of a key's string or data, in the place that a write would go to. Refused
  /// (`.changedMeanwhile`) where the value there does not have the length and kind that the splice
  /// was computed from.
  case splice(Key, DomainName, Splice)
  /// Removes a key from the place that a write would go to.
  case remove(Key, DomainName)
  /// Sets a key in the user's list, and in the host's too if that has the key. Programs then read
  /// the new value, and it is found in whichever of the two lists somebody looks at. (defaults(1)
  /// of macOS changes the user's list alone.)
  case setOwn(Key, DomainName, Value, WrittenText)
  /// Removes a key from the user's and the host's lists.
  case removeOwn(Key, DomainName)
  /// Makes an empty domain in the user's place.
  case createDomain(DomainName)
  /// Removes an empty domain.
  case removeDomain(DomainName)
  /// Moves every key of a domain, in the user's and the host's place, to a new name.
  case renameDomain(DomainName, to: DomainName)
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
    case .edit(let location, _), .replace(let location, _), .expect(_, let location, _),
      .expectUnchanged(_, let location, _):
      [location.domain]
    }
  }
}

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

/// What observers are notified of: a change that has taken effect, and its author.
public struct Notice: Equatable, Sendable {
  /// The edits that changed something.
  public let changeset: Changeset
  /// What the edits did to keys that domains list.
  public let events: [KeyEvent]
  /// Who made the change; nil for changes by other programs and for changes of volatile places.
  public let author: Author?
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

/// How far a mount has settled after a change: which of its caches have been dropped.
public enum Settlement: UInt8, Sendable, CaseIterable {
  /// Attributes are dropped: the next stat(2), read(2) or open(2) of a known file sees the change.
  case attributes
  /// Entries are dropped too: the next look-up of a name that came or went sees the change.
  case entries
}

/// What every engine does, with volatile places or without: it makes changes and notifies
/// observers.
///
/// Promises: any thread may call. What `apply` has returned is read by everyone and survives the
/// end of every process. Where another process owns the store and does not answer, reads go on from
/// what this process knows, and changes fail with ETIMEDOUT after 5 s.
///
/// These calls wait for a disk: `makeDurable`, `synchronize`, `save` and `space`, the first use of
/// a list (which reads it), and `apply` where the page cache is full. No other call of this
/// protocol does.
public protocol ChangeService: AnyObject, Sendable {
  /// Carries out the intents as one transaction: all take effect, or none.
  /// - Returns: the edits that changed something, and the version of the change.
  func apply(_ intents: [Intent], by author: Author) throws(EngineError) -> Changeset

  /// Returns when every change that was applied before is on the disk (fsync(2)). Blocks.
  func makeDurable() throws(EngineError)

  /// Returns when every change that was applied before is on the disk, and the mounts have settled
  /// as `awaitMounts` says. Blocks.
  func synchronize() throws(EngineError)

  /// Returns when the location's list contains every change that was applied before. Blocks.
  func save(_ location: Location) throws(EngineError)

  /// Returns when every mount has dropped its caches of what changed up to that version, or was
  /// silent for 1 s. Blocks.
  func awaitMounts(through version: UInt64) throws(EngineError)

  /// Calls the observer for every later change, after the change took effect and in the order of
  /// versions. Changes of that author are left out (nil: no change is). The observer must not block
  /// and must not call the engine.
  func observe(except author: Author?, _ observer: @escaping @Sendable (Notice) -> Void)

  /// Adds a mount that changes wait for. It reports with `settle` how far it has settled.
  func addMount(_ author: Author)

  /// Reports that the author's mount has settled for every change up to the version.
  func settle(_ settlement: Settlement, through version: UInt64, by author: Author)

  /// Calls the body when every mount except the author's has settled for the changes up to the
  /// version, or was silent for 1 s. Where that is so already, or where there is no owner, it calls
  /// the body at once. The body may be called by any thread.
  func whenSettled(
    _ settlement: Settlement, through version: UInt64, except author: Author,
    _ body: @escaping @Sendable () -> Void)

  /// Whether a change would be answered soon: this process owns the store, or the owner answers
  /// within that many milliseconds. Cost: nothing where the owner answered something in the last 5
  /// ms; else this call waits for its answer.
  func isAnswering(within milliseconds: Int64) -> Bool

  /// The size of the file system that holds the user's lists.
  func space() -> StoreSpace

  /// Whether every change is refused.
  var isReadOnly: Bool { get }

  /// Whether other processes use the store at the moment. Cost: a lock and a few loads at most.
  var isShared: Bool { get }
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

/// Reads the persistent places of a store.
public protocol StoredPlaces {
  /// A key's value in one place.
  func find(_ key: Key, at location: Location) throws(EngineError) -> StoredValue?

  /// The keys of a domain in one place, in no order.
  func keys(at location: Location) throws(EngineError) -> [Key]

  /// Whether the place has the domain.
  func exists(_ location: Location) throws(EngineError) -> Bool
}

/// The persistent places of one store. A process either owns the store (`LocalPlaces`) or asks its
/// owner (`RemotePlaces`). What these calls return is no older than any change whose `apply` had
/// returned, in any process, when they were called.
public protocol PersistentPlaces: ChangeService, StoredPlaces {
  /// Applies the intents as a request that may be repeated, to this owner or the next one, because
  /// no answer came: it is carried out once. Throws ETIMEDOUT after the deadline; then it is not
  /// carried out later either.
  func apply(
    _ intents: [Intent], by author: Author, origin: Origin, until deadline: Instant
  ) throws(EngineError) -> Changeset

  /// Applies the intents without waiting for the answer. What they change is read here at once. The
  /// request has left this process when the call returns, so it is carried out even if this process
  /// ends. The call waits only while there is no owner, or the owner receives nothing, for 5 s at
  /// most.
  ///
  /// `done` is called, by any thread, where the request was refused (then it is as if it had never
  /// been made), and with nil where it may have taken effect without a notice.
  func post(
    _ intents: [Intent], by author: Author, done: @escaping @Sendable (EngineError?) -> Void)

  /// Whether the contents of the location are in memory, so that a look-up waits for no disk and
  /// for no other process.
  func isLoaded(_ location: Location) -> Bool

  /// The locations as they are at one moment: they contain all of a transaction, or nothing of it.
  func snapshots(of locations: [Location]) throws(EngineError) -> [DomainSnapshot]

  /// Whether the observers here have been notified of every change whose `apply` had returned, in
  /// any process. Cost: a few loads.
  var isFresh: Bool { get }

  /// When the domain last changed in that place; nil where the place does not have it.
  func modified(_ location: Location) throws(EngineError) -> Timestamp?

  /// The domains that the place has.
  func domains(in place: Place) throws(EngineError) -> Set<DomainName>
}

extension PersistentPlaces {
  /// Calls `apply`, for places where a change needs no message.
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
  /// Whether a persistent place has the domain. The global domain always exists.
  public func hasDomain(_ domain: DomainName) throws(EngineError) -> Bool {
    if domain == .global { return true }
    for place in SearchList.persistentPlaces
    where try exists(Location(place, domain)) { return true }
    return false
  }
}

/// The size of the file system that holds the user's lists, in blocks.
public struct StoreSpace: Equatable, Sendable {
  /// The size of a block in bytes.
  public var blockSize: UInt64
  /// The number of blocks.
  public var blocks: UInt64
  /// The number of free blocks.
  public var free: UInt64
  /// The number of free blocks that this user may fill.
  public var available: UInt64

  /// Creates the size from numbers of statvfs(3).
  public init(blockSize: UInt64 = 4096, blocks: UInt64 = 0, free: UInt64 = 0, available: UInt64 = 0)
  {
    self.blockSize = blockSize
    self.blocks = blocks
    self.free = free
    self.available = available
  }

  /// Creates the size of the path's file system; one without blocks where there is no such path.
  /// Cost: statvfs(3).
  public init(ofVolume path: String) {
    self.init()
    guard let space = try? Files.space(path) else { return }
    blockSize = UInt64(space.f_frsize)
    (blocks, free) = (UInt64(space.f_blocks), UInt64(space.f_bfree))
    available = UInt64(space.f_bavail)
  }
}
