import PropertyList

/// Makes changes and notifies observers.
///
/// Promises: any thread may call. What `apply` has returned is read by everyone and survives the
/// end of every process. Where another process owns the store and does not answer, reads go on from
/// what this process knows, and changes fail with ETIMEDOUT after 5 s.
///
/// `apply` waits for a disk at the first use of a list, which reads it, and where the page cache is
/// full.
public protocol ChangeService: AnyObject, Sendable {
  /// Carries out the intents as one transaction: all take effect, or none.
  /// - Returns: the edits that changed something, and the version of the change.
  func apply(_ intents: [Intent], by author: Author) throws(EngineError) -> Changeset

  /// Calls the observer for every later change, after the change took effect and in the order of
  /// versions. Changes of that author are left out (nil if no change is). The observer must not
  /// block and must not call the engine.
  func observe(except author: Author?, _ observer: @escaping @Sendable (Notice) -> Void)

  /// Whether every change is refused.
  var isReadOnly: Bool { get }
}

/// Waits until changes have reached the disk, or the mounts.
///
/// Threads: any. Every call blocks.
public protocol DurabilityService: AnyObject, Sendable {
  /// Returns when every change that was applied before is on the disk: fsync(2).
  func makeDurable() throws(EngineError)

  /// Returns when every change that was applied before is on the disk, and every mount has dropped
  /// its caches of what changed, or was silent for 1 s.
  func synchronize() throws(EngineError)

  /// Returns when the location's list contains every change that was applied before.
  func save(_ location: Location) throws(EngineError)
}

/// The registered defaults of a process: NSUserDefaults' registration domain.
///
/// Threads: any.
public protocol RegisteredDefaults: AnyObject, Sendable {
  /// The edits that register all defaults again, with the text that was written for each.
  var registeredDefaults: Changeset { get }

  /// How often registered defaults have changed. Cost: a load.
  var registrations: UInt64 { get }

  /// Carries out the edits of `registeredDefaults`.
  func register(_ defaults: Changeset)
}

/// How far a mount has settled after a change: which of its caches have been dropped.
public enum Settlement: UInt8, Sendable, CaseIterable {
  /// Attributes are dropped: the next stat(2), read(2) or open(2) of a known file sees the change.
  case attributes
  /// Entries are dropped too: the next look-up of a name that came or went sees the change.
  case entries
}

/// Gives a name to one mount at a time: open(2) with O_EXCL makes files in the memory of a mount, of
/// which other mounts know nothing else.
///
/// Promises: of several mounts that claim a name, one gets it, until it releases it or ends. A mount
/// that is killed has its claims for a second more; the successor of a driver has those of its
/// predecessor; the next owner of the store is told of them, and waits a second at most for mounts
/// that may have some.
///
/// Half-broken states: where the owner is of a version that knows no claims, and beyond 65,536 names
/// of a mount, a name is given without a claim. A release that is not received within 1 s, because
/// the owner is stopped, is lost: other mounts get the name when this one ends, or claims and
/// releases it once more.
///
/// Threads: any.
public protocol NameClaims: AnyObject, Sendable {
  /// Claims a name for a mount. Throws what a change would throw if the owner does not answer, and
  /// waits as long; then the name is not claimed.
  /// - Parameter name: the path of the file, from the mount point.
  /// - Returns: false: another mount has the name.
  func claim(_ name: Key, by author: Author) throws(EngineError) -> Bool

  /// Claims what a predecessor of this driver had claimed, after `removeMount` of that. It waits for
  /// no answer: what somebody else has claimed since is theirs.
  func claimAgain(_ names: [Key], by author: Author)

  /// Releases a name that the mount has claimed. It waits for no answer.
  func release(_ name: Key, by author: Author)
}

/// Coordinates the mounts of a store, so that everyone reads a change once the request that made it
/// has returned.
///
/// Threads: any. `isAnswering` blocks as long as it says. The others do not wait for an answer; a
/// client's calls wait up to 1 s for room in the socket to the owner.
public protocol MountCoordinator: NameClaims {
  /// Adds a mount that changes wait for. It reports with `settle` how far it has settled.
  func addMount(_ author: Author)

  /// Says that no change need wait for a mount any longer, because it is unmounted; or, after
  /// `addMount`, that the driver of the mount that was added goes on for this one's: changes of
  /// others wait until it settles entries for the first time. A mount whose process ends without
  /// this is waited for as one that is silent.
  func removeMount(_ author: Author)

  /// Reports that the author's mount has settled for every change up to the version.
  func settle(_ settlement: Settlement, through version: UInt64, by author: Author)

  /// Whether every other mount has dropped the attributes of what this process has changed, up to
  /// the version, or was silent for 1 s; true where there is no owner. Cost: two locks.
  func isSettled(through version: UInt64) -> Bool

  /// Calls the body when `isSettled` holds: at once where it does. The body may be called by any
  /// thread.
  func whenSettled(through version: UInt64, _ body: @escaping @Sendable () -> Void)

  /// Whether a change would be answered soon: the owner answers within that many milliseconds. Cost:
  /// nothing where the owner answered something in the last 5 ms; else this call waits for its
  /// answer.
  func isAnswering(within milliseconds: Int64) -> Bool

  /// Whether the owner has made a change of which this process has not received the notice. Cost: a
  /// few loads.
  var hasNotices: Bool { get }

  /// A descriptor that can be read when `receiveNotices` has something to receive.
  var noticeDescriptor: CInt { get }

  /// Receives the notices that have come, and has observers notified of them, without waiting.
  /// - Returns: whether something had come.
  @discardableResult
  func receiveNotices() -> Bool
}
