import Glibc
import PreferenceModel
import StoreAccess
import SystemCalls

/// Starts `prefsd`, the program that owns a store.
public enum OwnerProgram {
  /// Starts `prefsd`. When this returns, it answers, unless another process owns the store. The
  /// program is the one that the environment variable PREFSFS_PREFSD names, else the one in the
  /// directory of the running program, else the one in PATH. Cost: a process. If it does not start
  /// to serve within 5 s, throws why, in the words of `prefsd`.
  ///
  /// Where a service manager listens for `prefsd` (`prefsd.socket` of systemd), it is asked first;
  /// then `prefsd` runs as a service. It is `prefsd` of the usual store, so this process starts
  /// another one if it looks for a different store. It is not asked where an owner only reads.
  /// - Parameter options: options for the program beside the store's directory.
  public static func start(
    _ surroundings: Surroundings, _ options: OwnerOptions = OwnerOptions()
  ) throws(EngineError) {
    let options = surroundings.other.map { OwnerOptions(reading: $0) } ?? options
    if let path = surroundings.activationPath, options.user == nil,
      surroundings.stateObstacle == nil, (try? activate(path, surroundings)) == true
    {
      return
    }
    let program = SiblingProgram.path("prefsd", variable: variable)
    let store = options.user == nil ? ["--store", surroundings.userDirectory] : []
    let arguments = store + options.words
    let outcome: Child.Outcome
    do throws(SystemError) {
      outcome = try Child.runApartAgain(program, arguments, milliseconds: Patience.usual)
    } catch {
      let hint =
        Environment.variable(variable) == nil
        ? "install it beside this program or in PATH, or name it in \(variable)"
        : "\(variable) names it"
      throw EngineError(.system(error.errno), "prefsd cannot be started: \(error); \(hint)")
    }
    if outcome.status == 0 { return }
    let reason = outcome.lastError ?? "it ended with status \(outcome.status)"
    throw EngineError(
      .system(.inputOutput), "prefsd cannot serve \(surroundings.userDirectory): \(reason)")
  }

  /// The environment variable that may name `prefsd`.
  private static let variable = "PREFSFS_PREFSD"
  /// Milliseconds that a service manager has to start `prefsd`.
  private static let activationPatience: Int64 = 2000

  /// Connects to the socket at which a service manager listens for `prefsd`, and waits until
  /// `prefsd` closes the connection, because it serves the store or another process does.
  /// - Returns: whether an owner of the store may be there now.
  private static func activate(
    _ path: String, _ surroundings: Surroundings
  ) throws(SystemError) -> Bool {
    guard let socket = try Socket.connected(to: path) else { return false }
    let deadline = Instant.now.advanced(milliseconds: activationPatience)
    var entry = pollfd(fd: socket.number, events: Int16(POLLIN), revents: 0)
    guard poll(&entry, 1, CInt(clamping: deadline.milliseconds(after: .now))) > 0 else {
      return false
    }
    // The names of sockets outlive their owners.
    for path in surroundings.ownerSocketPaths where try Socket.connected(to: path) != nil {
      return true
    }
    return false
  }
}

/// How `prefsd` is started by a process that needs an owner.
public struct OwnerOptions: Sendable {
  /// Seconds from the first unsaved change of a list to its rewrite; nil means as usual.
  public var writeback: Double?
  /// The name of another user, whose store it reads.
  fileprivate var user: String?

  /// Creates the options of an owner as most programs start it.
  public init() {}

  /// Creates the options of an owner that only reads another user's store. It ends soon: nobody
  /// tells it what that user changes.
  fileprivate init(reading other: Account) { user = other.name }

  fileprivate var words: [String] {
    (writeback.map { ["--writeback", "\($0)"] } ?? [])
      + (user.map { ["--user", $0, "--idle", "0.5"] } ?? [])
  }
}

extension StoreClient {
  /// Creates the places of a store for a process that starts `prefsd` if there is no owner. Throws
  /// what `init` throws.
  /// - Parameters:
  ///   - isLasting, isBrief, hearsAll, via: see `ClientManner`.
  ///   - log: receives lines for people.
  public convenience init(
    clientOf surroundings: Surroundings, isLasting: Bool = false, isBrief: Bool = false,
    hearsAll: Bool = false, via: ChangeSource.Via? = nil,
    log: @escaping @Sendable (LogLine) -> Void
  ) throws(EngineError) {
    var manner = ClientManner()
    (manner.isLasting, manner.isBrief) = (isLasting, isBrief)
    (manner.hearsAll, manner.via) = (hearsAll, via)
    manner.start = { () throws(EngineError) in try OwnerProgram.start(surroundings) }
    try self.init(surroundings, manner, log: log)
  }
}
