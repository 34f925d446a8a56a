import PreferenceModel
import SystemCalls

extension Member {
  /// What a process is to its store.
  public enum Role: Sendable {
    /// It owns the store.
    case owner(Owned)
    /// It asks the process that owns the store.
    case client(RemotePlaces)
    /// It looks for an owner; the places that it knew until then (nil: there was no owner yet).
    case seeking(RemotePlaces?)
  }

  /// A store that this process owns, as its opener gives it.
  public struct Owned: Sendable {
    let places: any StorePlaces
    let loaded: @Sendable () -> [Location: DomainSnapshot]
    let close: @Sendable () -> Void

    /// - Parameters:
    ///   - loaded: the locations that were read, as they are now.
    ///   - close: saves everything and gives the store up.
    public init(
      places: any StorePlaces, loaded: @escaping @Sendable () -> [Location: DomainSnapshot],
      close: @escaping @Sendable () -> Void
    ) {
      (self.places, self.loaded, self.close) = (places, loaded, close)
    }
  }

  /// How a process gets an owner for its store.
  public struct Ways: Sendable {
    /// Becomes the owner; nil: this process never does. Throws `.owned` if another process is.
    public var own: (@Sendable () throws(EngineError) -> Owned)?
    /// Starts an owner; nil: this process never does.
    public var start: (@Sendable () throws(SystemError) -> Void)?
    /// Whether the process goes on looking, and is not refused, if no owner answers at first.
    public var isLasting = false

    /// The ways that there are.
    public init(
      own: (@Sendable () throws(EngineError) -> Owned)? = nil,
      start: (@Sendable () throws(SystemError) -> Void)? = nil
    ) {
      (self.own, self.start) = (own, start)
    }
  }
}

extension Member.Role {
  /// The places of an owner that is there.
  var places: (any StorePlaces)? {
    switch self {
    case .owner(let owned): owned.places
    case .client(let remote): remote
    case .seeking: nil
    }
  }

  /// Places to read from: those of the owner, or what was known of the last one.
  var readable: (any StorePlaces)? {
    if case .seeking(let remote) = self { remote } else { places }
  }

  /// Whether there is, or was, an owner.
  var hasHadOwner: Bool {
    if case .seeking(nil) = self { return false }
    return true
  }

  /// Gives the role up; an owner saves everything first.
  func close() {
    switch self {
    case .owner(let owned): owned.close()
    case .client(let remote): remote.close()
    case .seeking(let remote): remote?.close()
    }
  }

  /// The locations that were read, as they were known last.
  var loaded: [Location: DomainSnapshot] {
    switch self {
    case .owner(let owned): owned.loaded()
    case .client(let remote): remote.loaded
    case .seeking(let remote): remote?.loaded ?? [:]
    }
  }
}
