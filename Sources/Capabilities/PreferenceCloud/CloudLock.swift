import Glibc
import PreferenceModel
import StoreAccess
import SystemCalls

/// The file that the `prefs-cloud` of a store keeps locked (fcntl(2), F_SETLK) while it runs.
public enum CloudLock {
  /// The path of the file.
  public static func path(_ surroundings: Surroundings) -> String {
    surroundings.stateDirectory + "/cloud.lock"
  }

  /// Whether a `prefs-cloud` runs for the store.
  public static func isHeld(_ surroundings: Surroundings) -> Bool {
    guard let file = try? Descriptor(opening: path(surroundings), O_RDWR) else { return false }
    var lock = whole
    return fcntl(file.number, F_GETLK, &lock) == 0 && lock.l_type != Int16(F_UNLCK)
  }

  /// Takes the lock, which ends with the process.
  /// - Parameter waits: whether it waits while another process has the lock.
  /// - Returns: false where another process has it.
  public static func acquire(
    _ surroundings: Surroundings, waits: Bool
  ) throws(SystemError) -> Bool {
    try Files.makeDirectories(surroundings.stateDirectory, mode: 0o700)
    // The descriptor stays open until the process ends.
    let file = open(path(surroundings), O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    if file < 0 { throw SystemError("open", path(surroundings)) }
    var lock = whole
    while fcntl(file, waits ? F_SETLKW : F_SETLK, &lock) != 0 {
      let failure = SystemError("fcntl", path(surroundings))
      if [.wouldBlock, .permissionDenied].contains(failure.errno) { return false }
      if failure.errno != .interrupted { throw failure }
    }
    return true
  }

  /// A lock of the whole file.
  private static var whole: flock {
    var lock = flock()
    lock.l_type = Int16(F_WRLCK)
    lock.l_whence = Int16(SEEK_SET)
    return lock
  }
}
