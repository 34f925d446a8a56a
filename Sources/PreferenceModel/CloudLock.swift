import Glibc
import SystemCalls

/// The file that the carrier of a store's cloud keeps locked (flock(2)) while it runs.
public enum CloudLock {
  /// The path of the file.
  public static func path(_ surroundings: Surroundings) -> String {
    surroundings.stateDirectory + "/cloud.lock"
  }

  /// Whether a carrier runs for the store.
  public static func isHeld(_ surroundings: Surroundings) -> Bool {
    guard let file = try? Descriptor(opening: path(surroundings), O_RDONLY) else { return false }
    return flock(file.number, LOCK_SH | LOCK_NB) != 0
  }
}
