import PreferenceModel
import SystemCalls

/// Starts `prefsd`, the program that owns a store for processes that never do.
public enum OwnerProgram {
  /// Starts `prefsd`. When this returns, it answers, unless another process owns the store. The
  /// program is the one that the environment variable PREFSFS_PREFSD names, else the one in the
  /// directory of the running program, else the one in PATH. Cost: a process.
  public static func start(_ surroundings: Surroundings) throws(SystemError) {
    let status = try Child.runApartAgain(
      SiblingProgram.path("prefsd", variable: "PREFSFS_PREFSD"),
      ["--store", surroundings.userDirectory])
    if status != 0 {
      let hint =
        "prefsd could not own the store; prefsd -f --store \(surroundings.userDirectory) says why"
      throw SystemError(hint, "", .inputOutput)
    }
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
