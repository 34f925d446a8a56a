import Glibc
import PreferenceModel
import SystemCalls

/// Starts `prefsd`, the program that owns a store for processes that never do.
public enum OwnerProgram {
  /// Starts `prefsd`. When this returns, it answers, unless another process owns the store. The
  /// program is the one that the environment variable PREFSFS_PREFSD names, else the one in the
  /// directory of the running program, else the one in PATH. Cost: a process. Throws ETIMEDOUT if
  /// it does not answer within 5 s.
  ///
  /// Where a service manager listens for `prefsd` (`prefsd.socket` of systemd), it is asked first;
  /// then `prefsd` runs as a service. It is `prefsd` of the usual store, so this process starts
  /// another one if it looks for a different store.
  public static func start(_ surroundings: Surroundings) throws(SystemError) {
    if let path = surroundings.activationPath, try activate(path, surroundings) { return }
    let status = try Child.runApartAgain(
      SiblingProgram.path("prefsd", variable: "PREFSFS_PREFSD"),
      ["--store", surroundings.userDirectory], milliseconds: RemotePlaces.patience)
    if status != 0 {
      let hint =
        "prefsd could not own the store; prefsd -f --store \(surroundings.userDirectory) says why"
      throw SystemError(hint, "", .inputOutput)
    }
  }

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

extension Member {
  /// Creates the places of a store for a process that is always a client and never an owner. It
  /// starts `prefsd` if there is no owner. Throws what `init` throws.
  /// - Parameters:
  ///   - isLasting: see `Ways`.
  ///   - log: receives lines for people.
  public convenience init(
    clientOf surroundings: Surroundings, isLasting: Bool = false,
    log: @escaping @Sendable (String) -> Void
  ) throws(EngineError) {
    var ways = Ways(start: { () throws(SystemError) in try OwnerProgram.start(surroundings) })
    ways.isLasting = isLasting
    try self.init(surroundings, ways, log: log)
  }
}
