import PreferenceModel
import PreferenceProtocol
import PropertyList
import Synchronization
import SystemCalls

/// The persistent places of a store over the whole life of a process, whoever owns the store
/// meanwhile: this process, or another, or nobody for a moment.
///
/// Promises: those of `PersistentPlaces`. When the owner is gone, however it went, this process
/// becomes the owner where it can, else connects to the next one, which it may start. Reads go on
/// meanwhile from what is known; what is not, and changes, wait, at most 5 s, then ETIMEDOUT. A
/// change whose answer did not come is asked for again, and carried out once. An owner that is
/// stopped is not replaced. What changed between two owners is told to observers as changes are.
///
/// Threads: any; the seeker's looks for the next owner. Locks: the monitor, under which nothing
/// blocks; a relay's, for one look. Observers are called in the order of the changes, from the moment
/// when what they look up comes from the owner who told them.
///
/// Half-broken states: no owner and nobody who can be one, only a client's thing: every look-up
/// that needs one fails with ETIMEDOUT, and the seeker goes on.
public final class Member: PersistentPlaces {
  /// What a process is to its store.
  public enum Role: Sendable {
    /// It owns the store.
    case owner(Owned)
    /// It asks the owner.
    case client(RemotePlaces)
    /// It looks for an owner; what it knew of the store until then.
    case seeking(RemotePlaces?)
  }

  /// A store that this process owns, as its opener gives it.
  public struct Owned: Sendable {
    let places: any PersistentPlaces
    let loaded: @Sendable () -> [Location: DomainSnapshot]
    let close: @Sendable () -> Void

    /// The places, what was asked for of them, and how they are given up.
    public init(
      places: any PersistentPlaces, loaded: @escaping @Sendable () -> [Location: DomainSnapshot],
      close: @escaping @Sendable () -> Void
    ) {
      (self.places, self.loaded, self.close) = (places, loaded, close)
    }
  }

  /// How a process comes to an owner.
  public struct Ways: Sendable {
    /// Becomes the owner; nil: it never does. Throws `.owned` where another process is.
    public var own: (@Sendable () throws(EngineError) -> Owned)?
    /// Starts one; nil: somebody else does.
    public var start: (@Sendable () throws(SystemError) -> Void)?
    /// The process asks a few things and ends: it takes no memory of the store and no thread, and its
    /// observers hear of nothing while it asks nothing.
    public var isBrief = false
    /// Where nobody answers at first, it goes on looking, and is not refused.
    public var isLasting = false

    /// The ways that there are.
    public init(
      own: (@Sendable () throws(EngineError) -> Owned)? = nil,
      start: (@Sendable () throws(SystemError) -> Void)? = nil
    ) {
      (self.own, self.start) = (own, start)
    }
  }

  struct Observer: Sendable {
    var author: Author?
    var tell: @Sendable (Notice) -> Void
  }

  struct State {
    var role: Role
    /// Counts roles.
    var epoch = 0
    /// Counts those that were tried.
    var lastEpoch = 0
    var observers: [Observer] = []
    var mounts: [Author] = []
    var domains: [Place: Set<DomainName>] = [:]
    var lastSerial: UInt64 = 0
    var posted = PostedChanges()
    /// The serial of the last posted change; they have their own.
    var lastPosted: UInt64 = 0
    /// Somebody sends posted changes.
    var isPosting = false
    /// Those of all owners so far: `gauge` points to one, and who looks at it holds no lock.
    var gauges: [Gauge] = []
    /// Before then no owner is started.
    var nextStart = Instant.now
    var startPause: Int64 = 0
    /// What was logged last.
    var lastFailure: EngineError?
    /// Somebody has waited for an owner in vain: the next does not wait for long.
    var isMissing = false
    var isClosing = false
  }

  let state: Monitor<State>
  /// The present owner's gauge, unretained; 0: this process is the owner.
  let gauge = Atomic<UInt>(0)
  /// Whether changes are on their way that are not waited for.
  let hasPosted = Atomic<Bool>(false)
  let surroundings: Surroundings
  let ways: Ways
  let client = UInt64.random(in: 1 ... .max)
  let log: @Sendable (String) -> Void
  let seeker: Seeker
  public let isReadOnly: Bool

  /// Comes to an owner, or becomes one: within 5 s, else throws `.owned` (the owner is stopped, or is
  /// no program of this version) or what was in the way.
  public init(
    _ surroundings: Surroundings, readOnly: Bool = false, _ ways: Ways,
    log: @escaping @Sendable (String) -> Void
  ) throws(EngineError) {
    (self.surroundings, self.ways, self.log) = (surroundings, ways, log)
    isReadOnly = readOnly
    seeker = Seeker()
    state = Monitor(State(role: .seeking(nil)))
    let deadline = Instant.now.advanced(milliseconds: RemotePlaces.patience)
    do throws(EngineError) {
      try begin(until: deadline)
    } catch  where ways.isLasting && Self.isPassing(error) {
      state.withLock { $0.isMissing = true }
      seeker.ask()
    }
    seeker.start { [weak self] in self?.seek() }
  }

  /// Gives the store up: an owner saves everything first.
  public func close() {
    state.change { $0.isClosing = true }
    // It may be about to take a role.
    seeker.stop()
    role.close()
  }

  /// What this process is to the store now.
  public var role: Role { state.withLock { $0.role } }
}

extension Member.Role {
  /// The places of an owner that is there.
  var places: (any PersistentPlaces)? {
    switch self {
    case .owner(let owned): owned.places
    case .client(let remote): remote
    case .seeking: nil
    }
  }

  /// Whether there is, or was, an owner.
  var hasBeenAsked: Bool {
    if case .seeking(nil) = self { return false }
    return true
  }

  /// Gives it up.
  func close() {
    switch self {
    case .owner(let owned): owned.close()
    case .client(let remote): remote.close()
    case .seeking(let remote): remote?.close()
    }
  }

  /// What is known of the store.
  var loaded: [Location: DomainSnapshot] {
    switch self {
    case .owner(let owned): owned.loaded()
    case .client(let remote): remote.loaded
    case .seeking(let remote): remote?.loaded ?? [:]
    }
  }
}

extension Member.State {
  /// Which domains there are after a change.
  mutating func noteDomains(_ notice: Notice) {
    for item in notice.changeset.items {
      let (place, domain) = (item.location.place, item.location.domain)
      switch item.edit {
      case .set, .splice, .createDomain: domains[place]?.insert(domain)
      case .removeDomain: domains[place]?.remove(domain)
      case .remove, .describe: break
      }
    }
  }
}
