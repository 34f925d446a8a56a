import CLinux
import Glibc

/// The environment of this process.
public enum Environment {
  /// Returns the value of a variable; nil if it is not set, or empty, or if this is a set-uid
  /// program: the user who starts it must not choose what it reads and runs (secure_getenv(3)).
  /// Threads: not beside setenv(3).
  public static func variable(_ name: String) -> String? {
    guard prefsfs_is_secure() == 0, let value = getenv(name) else { return nil }
    let text = String(cString: value)
    return text.isEmpty ? nil : text
  }

  /// Returns the value of a variable that has the path of a directory; nil too where the path is
  /// relative, which the XDG Base Directory Specification has programs ignore.
  public static func directory(_ name: String) -> String? {
    variable(name).flatMap { $0.hasPrefix("/") ? $0 : nil }
  }
}
