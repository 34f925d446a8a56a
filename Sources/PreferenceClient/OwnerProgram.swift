import Glibc
import PreferenceModel
import SystemCalls

/// `prefsd`, which owns the store for processes that do not.
public enum OwnerProgram {
  /// Starts it; it can be asked when this returns, unless somebody else owns the store. PREFSFS_PREFSD
  /// says where it is; else it is beside this program, or in PATH. Cost: a process.
  public static func start(_ surroundings: Surroundings) throws(SystemError) {
    let status = try Child.runApartAgain(path, ["--store", surroundings.userDirectory])
    if status != 0 {
      let hint =
        "it could not own the store; prefsd -f --store \(surroundings.userDirectory) says why"
      throw SystemError(hint, "", .inputOutput)
    }
  }

  private static var path: String {
    if let given = getenv("PREFSFS_PREFSD") { return String(cString: given) }
    if let program = Files.realPath("/proc/self/exe") {
      let beside = Files.parent(of: program) + "/prefsd"
      if access(beside, X_OK) == 0 { return beside }
    }
    return "prefsd"
  }
}

extension Member {
  /// The places of a store for a process that is a client and never an owner: if there is no owner
  /// it starts `prefsd`. Throws what `init` throws.
  /// - Parameters:
  ///   - isLasting: see `Ways`.
  ///   - log: gets lines for people.
  public convenience init(
    clientOf surroundings: Surroundings, isLasting: Bool = false,
    log: @escaping @Sendable (String) -> Void
  ) throws(EngineError) {
    var ways = Ways(start: { () throws(SystemError) in try OwnerProgram.start(surroundings) })
    ways.isLasting = isLasting
    try self.init(surroundings, ways, log: log)
  }
}
