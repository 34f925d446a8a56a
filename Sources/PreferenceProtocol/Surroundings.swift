import Glibc
import PreferenceModel
import PropertyList
import SystemCalls

/// What a process finds around it: user, host, and the directories of one store. Two processes with the
/// same surroundings meet at the same store.
public struct Surroundings: Sendable {
  /// The user's lists: `$XDG_CONFIG_HOME`, `~/.config`, or the directory that was asked for.
  public let userDirectory: String
  /// The machine's lists: `/etc/preferences`; PREFSFS_SYSTEM_DIR replaces it (tests).
  public let systemDirectory: String
  /// The store's journal, lock and metadata: below `$XDG_STATE_HOME/prefsfs`.
  public let stateDirectory: String
  /// This host in `ByHost` names: /etc/machine-id as a UUID.
  public let hostIdentifier: String
  /// The user's name; empty where the system knows none. Cost: a look into the system's accounts.
  public var userName: String { Self.account?.name ?? "" }
  /// Where the store's owner may listen, the first choice first: in `$XDG_RUNTIME_DIR/prefsfs`, and in the
  /// state directory where there is no such directory of the user's.
  public let socketPaths: [String]

  /// The surroundings of this process.
  /// - Parameter store: the directory of the lists; nil: the user's own.
  public init(store directory: String? = nil) {
    let home = Self.variable("HOME") ?? Self.account?.home ?? "/"
    userDirectory = Self.absolute(
      directory ?? Self.variable("XDG_CONFIG_HOME") ?? home + "/.config")
    systemDirectory = Self.absolute(Self.variable("PREFSFS_SYSTEM_DIR") ?? "/etc/preferences")
    let state = Self.stateHome(home)
    let name = StableHash.text(of: Files.canonicalPath(userDirectory).utf8)
    stateDirectory = "\(state)/prefsfs/\(name)"
    hostIdentifier = Self.hostIdentifier
    let all = [Files.canonicalPath(userDirectory), systemDirectory, stateDirectory]
    let socket = StableHash.text(of: all.joined(separator: "\0").utf8)
    let runtime = Self.variable("XDG_RUNTIME_DIR").map(Self.absolute)
    let own = runtime.flatMap { Self.isSomebodyElses($0) ? nil : $0 + "/prefsfs" }
    socketPaths = [own, stateDirectory + "/run"].compactMap { $0.map { "\($0)/\(socket)" } }
  }

  /// Where state is kept. Directories of another user are never written to: `su` without `-` leaves root
  /// with the variables of whoever called it.
  private static func stateHome(_ home: String) -> String {
    let choices = [
      variable("XDG_STATE_HOME"), home + "/.local/state", account.map { $0.home + "/.local/state" },
    ].compactMap { $0.map(absolute) }
    return choices.first { !isSomebodyElses($0) } ?? choices[0]
  }

  /// Whether the directory, or where it is not there yet the nearest one above it, is another user's. For
  /// anybody but root the system's own directories are not.
  private static func isSomebodyElses(_ path: String) -> Bool {
    var directory = path
    while directory != "/", directory != "." {
      if let status = try? Files.status(directory) {
        return status.st_uid != geteuid() && status.st_uid != 0
      }
      directory = Files.parent(of: directory)
    }
    return false
  }

  /// Where the owner wrote the path of his socket: processes of one store may have different
  /// `$XDG_RUNTIME_DIR`s (cron, su).
  public var socketNote: String { stateDirectory + "/socket" }

  /// Where the present owner may be listening: where it said so, else where it would.
  public var ownerSocketPaths: [String] {
    let noted = (try? Files.contents(socketNote, limit: 4096)) ?? nil
    guard let noted, !noted.isEmpty else { return socketPaths }
    let path = String(decoding: noted, as: UTF8.self)
    return [path] + socketPaths.filter { $0 != path }
  }

  /// The user's list of the global domain: in a store of GNUstep's (`~/GNUstep/Defaults`) it has the domain's
  /// own name. Cost: two stat(2).
  public var globalName: String {
    let (apple, gnustep) = (".GlobalPreferences", "NSGlobalDomain")
    let isThere = { (name: String) in
      ((try? Files.status("\(userDirectory)/\(name).plist")) ?? nil) != nil
    }
    return isThere(gnustep) && !isThere(apple) ? gnustep : apple
  }

  private static func variable(_ name: String) -> String? {
    guard let value = getenv(name) else { return nil }
    let text = String(cString: value)
    return text.isEmpty ? nil : text
  }

  private static var account: (name: String, home: String)? {
    guard let entry = getpwuid(getuid()) else { return nil }
    return (String(cString: entry.pointee.pw_name), String(cString: entry.pointee.pw_dir))
  }

  /// A path seen from the present directory.
  private static func absolute(_ path: String) -> String {
    if path.hasPrefix("/") { return path }
    return (Files.realPath(".") ?? "/") + "/" + path
  }

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

extension StoreLayout {
  /// Where the lists of a store lie.
  public init(_ surroundings: Surroundings) {
    self.init(
      userDirectory: surroundings.userDirectory, systemDirectory: surroundings.systemDirectory,
      stateDirectory: surroundings.stateDirectory,
      hostIdentifier: surroundings.hostIdentifier, userName: surroundings.userName,
      globalName: surroundings.globalName)
  }
}
