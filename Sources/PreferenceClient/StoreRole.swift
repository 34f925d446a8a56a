import PreferenceModel
import SystemCalls

extension Member {
  /// Whether a process is connected to an owner of its store.
  public enum Role: Sendable {
    /// The owner answers.
    case connected(RemotePlaces)
    /// The process looks for an owner. It can read what it knows of the last one's places; nil:
    /// there has been no owner yet.
    case seeking(RemotePlaces?)
  }

  /// What a process is to its store, beside what the store is.
  public struct Manner: Sendable {
    /// Whether every change is refused here (`-o ro`).
    public var isReadOnly = false
    /// Whether `Member.init` succeeds although there is no owner at first, unless there can be none
    /// later (`OwnerSearch.mayPass`). The process then goes on looking for one.
    public var isLasting = false
    /// Whether the process receives notices itself, when `NoticeSource.descriptor` can be read, in
    /// place of a thread of the link.
    public var hasLoop = false
    /// The number of a predecessor, for which this process goes on; nil: it has none.
    public var client: UInt64?
    /// Starts an owner, and returns when it answers; nil: this process starts none.
    public var start: (@Sendable () throws(EngineError) -> Void)?

    /// Creates the manner of a process that starts no owner, waits for one at the beginning, and
    /// has its notices received by a thread.
    public init() {}
  }
}

extension Member.Role {
  /// The places of the present owner; nil if there is none.
  var places: RemotePlaces? {
    if case .connected(let remote) = self { remote } else { nil }
  }

  /// The places to read from: those of the present owner, else of the last one, of which the
  /// locations that are loaded can be read.
  var readable: RemotePlaces? {
    switch self {
    case .connected(let remote): remote
    case .seeking(let remote): remote
    }
  }

  /// Whether there has been no owner yet.
  var isNever: Bool { readable == nil }

  /// Whether the owner has ended, so that another process may own the store.
  var mayBeReplaced: Bool {
    switch self {
    case .connected(let remote): remote.isOrphaned
    case .seeking(let remote): remote != nil
    }
  }

  /// Whether every change of the present owner, or of the last one, is known.
  var hasAll: Bool { readable?.hasAll != false }
}
