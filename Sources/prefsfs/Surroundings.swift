import Glibc
import PreferenceStore
import SystemCalls

/// What the program finds around it: directories, user, host.
enum Surroundings {
  private static func variable(_ name: String) -> String? {
    guard let value = getenv(name) else { return nil }
    let text = String(cString: value)
    return text.isEmpty ? nil : text
  }

  private static var account: (name: String, home: String)? {
    guard let entry = getpwuid(getuid()) else { return nil }
    return (String(cString: entry.pointee.pw_name), String(cString: entry.pointee.pw_dir))
  }

  private static var home: String { variable("HOME") ?? account?.home ?? "/" }

  /// A path seen from the present directory.
  static func absolute(_ path: String) -> String {
    if path.hasPrefix("/") { return path }
    return (Files.realPath(".") ?? "/") + "/" + path
  }

  /// Where the lists of a store lie; the user's own where `directory` is nil.
  static func layout(store directory: String?) -> StoreLayout {
    let user = absolute(directory ?? variable("XDG_CONFIG_HOME") ?? home + "/.config")
    let state = absolute(variable("XDG_STATE_HOME") ?? home + "/.local/state")
    return StoreLayout(
      userDirectory: user,
      systemDirectory: absolute(variable("PREFSFS_SYSTEM_DIR") ?? "/etc/preferences"),
      stateDirectory: "\(state)/prefsfs/\(StoreLayout.stateName(of: user))",
      hostIdentifier: hostIdentifier, userName: account?.name ?? "")
  }

  /// /etc/machine-id as a UUID: what `ByHost` names hold.
  private static var hostIdentifier: String {
    guard let bytes = try? Files.contents("/etc/machine-id", limit: 4096) else {
      return "UnknownHostID"
    }
    let digits = String(decoding: bytes, as: UTF8.self).prefix(32).uppercased()
    guard digits.utf8.count == 32 else { return "UnknownHostID" }
    var rest = digits[...]
    let parts = [8, 4, 4, 4, 12].map { count in
      defer { rest = rest.dropFirst(count) }
      return rest.prefix(count)
    }
    return parts.joined(separator: "-")
  }
}
