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

  /// Carries out the intents as `apply` does, and calls `recorded` as soon as nothing can undo the
  /// change: its record is in the journal, and whoever reads a value from then on waits until the
  /// change is published. A caller can answer a request with it, some microseconds before this call
  /// returns.
  ///
  /// `recorded` is called by this thread, once at most: not where nothing changed, and not by
  /// services that do not own the store. Its changeset has no version yet. It is called under the
  /// locks of the store: it must not wait, and may ask nothing of this service but
  /// `MountCoordinator.isShared`. Observers, and clients that go by the version of the last change,
  /// hear of the change afterwards.
  func apply(
    _ intents: [Intent], by author: Author, recorded: (Changeset) -> Void
  ) throws(EngineError) -> Changeset

  /// Calls the observer for every later change, after the change took effect and in the order of
  /// versions. Changes of that author are left out (nil: no change is). The observer must not block
  /// and must not call the engine.
  func observe(except author: Author?, _ observer: @escaping @Sendable (Notice) -> Void)

  /// Whether every change is refused.
  var isReadOnly: Bool { get }
}

extension ChangeService {
  /// Calls `apply`, and `recorded` never.
  public func apply(
    _ intents: [Intent], by author: Author, recorded: (Changeset) -> Void
  ) throws(EngineError) -> Changeset {
    try apply(intents, by: author)
  }
}

/// Waits until changes have reached the disk, or the mounts.
///
/// Threads: any. Every call blocks.
public protocol DurabilityService: AnyObject, Sendable {
  /// Returns when every change that was applied before is on the disk: fsync(2).
  func makeDurable() throws(EngineError)

  /// Returns when every change that was applied before is on the disk, and the mounts have settled
  /// as `awaitMounts` says.
  func synchronize() throws(EngineError)

  /// Returns when the location's list contains every change that was applied before.
  func save(_ location: Location) throws(EngineError)

  /// Returns when every mount has dropped its caches of what changed up to that version, or was
  /// silent for 1 s.
  func awaitMounts(through version: UInt64) throws(EngineError)
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

/// Coordinates the mounts of a store, so that everyone reads a change once the request that made it
/// has returned.
///
/// Threads: any. `isAnswering` blocks as long as it says. The others do not wait for an answer; a
/// client's calls wait up to 1 s for room in the socket to the owner.
public protocol MountCoordinator: AnyObject, Sendable {
  /// Adds a mount that changes wait for. It reports with `settle` how far it has settled.
  func addMount(_ author: Author)

  /// Says that no change need wait for a mount any longer: it is unmounted, or a successor of its
  /// driver has dropped what its kernel had cached. A mount whose process ends without this is
  /// waited for as one that is silent.
  func removeMount(_ author: Author)

  /// Reports that the author's mount has settled for every change up to the version.
  func settle(_ settlement: Settlement, through version: UInt64, by author: Author)

  /// Calls the body when every mount except the author's has settled for the changes up to the
  /// version, or was silent for 1 s. Where that is so already, or where there is no owner, it calls
  /// the body at once. The body may be called by any thread.
  func whenSettled(
    _ settlement: Settlement, through version: UInt64, except author: Author,
    _ body: @escaping @Sendable () -> Void)

  /// Whether other processes use the store at the moment. Cost: a lock and a few loads at most.
  var isShared: Bool { get }

  /// Whether a change would be answered soon: this process owns the store, or the owner answers
  /// within that many milliseconds. Cost: nothing where the owner answered something in the last 5
  /// ms; else this call waits for its answer.
  func isAnswering(within milliseconds: Int64) -> Bool
}
