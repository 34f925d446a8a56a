import PreferenceModel
import SystemCalls

extension Member {
  /// The role that a process has for its store.
  public enum Role: Sendable {
    /// The process owns the store.
    case owner(Owned)
    /// The process asks another one, which owns the store.
    case client(RemotePlaces)
    /// The process looks for an owner. It can read what it knows of the last one's places; nil:
    /// there has been no owner yet.
    case seeking(RemotePlaces?)
  }

  /// A store that this process owns.
  public struct Owned: Sendable {
    let places: any StorePlaces
    let loaded: @Sendable () -> [Location: DomainSnapshot]
    let close: @Sendable () -> Void

    /// - Parameters:
    ///   - loaded: returns the locations that were read, as they are at that moment.
    ///   - close: saves everything and gives the store up.
    public init(
      places: any StorePlaces, loaded: @escaping @Sendable () -> [Location: DomainSnapshot],
      close: @escaping @Sendable () -> Void
    ) {
      (self.places, self.loaded, self.close) = (places, loaded, close)
    }
  }

  /// The ways in which a process may get an owner for its store, besides finding one.
  public struct Ways: Sendable {
    /// Makes this process the owner; nil: it never is. Throws `.owned` if another process is.
    public var own: (@Sendable () throws(EngineError) -> Owned)?
    /// Starts a process that is the owner; nil: this process never does.
    public var start: (@Sendable () throws(SystemError) -> Void)?
    /// Whether `Member.init` succeeds although there is no owner at first, unless there can be none
    /// later (`OwnerSearch.mayPass`). The process then goes on looking for one.
    public var isLasting = false

    /// Creates the ways of a process that is not a lasting one.
    public init(
      own: (@Sendable () throws(EngineError) -> Owned)? = nil,
      start: (@Sendable () throws(SystemError) -> Void)? = nil
    ) {
      (self.own, self.start) = (own, start)
    }
  }
}

extension Member.Role {
  /// The places of the present owner; nil if there is none.
  var places: (any StorePlaces)? {
    switch self {
    case .owner(let owned): owned.places
    case .client(let remote): remote
    case .seeking: nil
    }
  }

  /// The places to read from: those of the present owner, else of the last one, of which the
  /// locations that are loaded can be read.
  var readable: (any StorePlaces)? {
    if case .seeking(let remote) = self { remote } else { places }
  }

  /// Whether the owner has ended, so that another process may own the store.
  var mayBeReplaced: Bool {
    switch self {
    case .client(let remote): remote.isOrphaned
    case .seeking(let remote): remote != nil
    case .owner: false
    }
  }

  /// Whether every change of the present owner, or of the last one, is known.
  var hasAll: Bool {
    switch self {
    case .client(let remote): remote.hasAll
    case .seeking(let remote): remote?.hasAll != false
    case .owner: true
    }
  }

  /// Whether this process has, or has had, an owner.
  var hasHadOwner: Bool {
    if case .seeking(nil) = self { return false }
    return true
  }

  /// Gives the role up. An owner saves everything first.
  func close() {
    switch self {
    case .owner(let owned): owned.close()
    case .client(let remote): remote.close()
    case .seeking(let remote): remote?.close()
    }
  }

  /// The locations that were read, as they were last known.
  var loaded: [Location: DomainSnapshot] {
    switch self {
    case .owner(let owned): owned.loaded()
    case .client(let remote): remote.loaded
    case .seeking(let remote): remote?.loaded ?? [:]
    }
  }
}
