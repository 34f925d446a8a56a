import PreferenceModel

/// What a process is to its store, beside what the store is.
public struct ClientManner: Sendable {
  /// Whether every change is refused here (`-o ro`).
  public var isReadOnly = false
  /// Whether `StoreClient.init` succeeds although there is no owner at first, unless there can be
  /// none later. The process then goes on looking for one.
  public var isLasting = false
  /// Whether the process asks a few things and ends (`defaults`). It starts no thread, and connects
  /// with its first request: a look-up of a key, a reading of locations, or a change, is one round
  /// trip then. It asks the owner for each key, and copies a location only when it is asked for all
  /// keys of it. A change returns when every mount shows it. Observers are never called. Where no
  /// owner can be had, every later request fails at once with the same error, `.ownerGone`.
  public var isBrief = false
  /// Whether the process receives notices itself, when `MountCoordinator.noticeDescriptor` can be
  /// read, in place of a thread of the link.
  public var hasLoop = false
  /// Whether observers are notified of every change. Otherwise they are of those in domains that
  /// this process has asked for, or changed, and where domains come or go; after a change of
  /// owners, in domains of which it has read a list.
  public var hearsAll = false
  /// The number of a predecessor, for which this process goes on; nil if it has none. It hears of
  /// every change, because the kernel may have what the predecessor had asked for.
  public var client: UInt64?
  /// The way of this process's changes, for the history; nil if the owner tells it by the program's
  /// name.
  public var via: ChangeSource.Via?
  /// Starts an owner, and returns when it answers; nil if this process starts none.
  public var start: (@Sendable () throws(EngineError) -> Void)?

  /// Creates the manner of a process that starts no owner, waits for one at the beginning, and
  /// has its notices received by a thread.
  public init() {}
}
