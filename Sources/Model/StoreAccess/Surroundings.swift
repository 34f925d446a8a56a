import Glibc
import PreferenceModel
import PropertyList
import SystemCalls

/// The user, the host and the directories of one store, as a process finds them. Two processes with
/// the same surroundings use the same store.
public struct Surroundings: Sendable {
  /// The directory of the user's lists: `$XDG_CONFIG_HOME`, `~/.config`, or the one that was asked
  /// for.
  public let userDirectory: String
  /// The directory of the machine's lists: `/etc/preferences`. PREFSFS_SYSTEM_DIR replaces it
  /// (tests).
  public let systemDirectory: String
  /// The directory of the store's journal, lock and metadata, below `$XDG_STATE_HOME/prefsfs`. Each
  /// machine has one of its own (`StateNote`).
  public let stateDirectory: String
  /// The identifier of this host in the names of `ByHost` lists: /etc/machine-id as a UUID. Cost:
  /// the file is read at each use.
  public var hostIdentifier: String { Self.hostIdentifier }
  /// The machine's name, as gethostname(2) tells it.
  public static var hostName: String {
    var bytes = [CChar](repeating: 0, count: 256)
    gethostname(&bytes, bytes.count - 1)
    return String(decoding: bytes.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
  }
  /// The user's name; empty where the system knows none. Cost: a look-up in the system's accounts.
  public var userName: String { (other ?? Account.own)?.name ?? "" }
  /// The other user whose store it is, for root; nil if it is a store of this user's.
  public let other: Account?
  /// The paths where the store's owner may listen, the first choice first: in
  /// `$XDG_RUNTIME_DIR/prefsfs`, unless that directory is another user's, and in the state
  /// directory.
  public let socketPaths: [String]

  /// The path at which a service manager may listen for `prefsd` (`prefsd.socket`); nil where the
  /// user has no runtime directory.
  public var activationPath: String? {
    Self.runtimeDirectory.map { $0 + "/prefsfs/prefsd" }
  }

  /// The user's home: `$HOME`, which a system service does not have, or the one of the user's
  /// account.
  package static var home: String { Environment.variable("HOME") ?? Account.own?.home ?? "/" }

  /// Determines the surroundings of this process.
  /// - Parameter store: the directory of the user's lists; nil means the usual one.
  public init(store directory: String? = nil) {
    let home = Self.home
    userDirectory = Self.absolute(
      directory ?? Environment.directory("XDG_CONFIG_HOME") ?? home + "/.config")
    systemDirectory = Self.machineDirectory
    let state = Self.stateHome(home)
    let canonical = Files.canonicalPath(userDirectory)
    let usual = "\(state)/prefsfs/\(StableHash.text(of: canonical.utf8))"
    stateDirectory = StateNote.directory(usual)
    let socket = Self.socketName(canonical, systemDirectory, usual)
    let own = Self.runtimeDirectory.map { "\($0)/prefsfs/\(socket)" }
    let last = "\(stateDirectory)/run/\(socket)"
    socketPaths = own.map { [$0, last] } ?? [last]
    other = nil
  }

  /// Determines the surroundings of another user's usual store, to be read by root without the
  /// owner of that store and without a change to it: `~/.config` and `~/.local/state` of the user,
  /// whose environment is not known, and a socket in root's own runtime directory.
  public init(of user: Account) {
    userDirectory = user.home + "/.config"
    systemDirectory = Self.machineDirectory
    let canonical = Files.canonicalPath(userDirectory)
    let usual = "\(user.home)/.local/state/prefsfs/\(StableHash.text(of: canonical.utf8))"
    stateDirectory = StateNote.directory(usual)
    let socket = Self.socketName(canonical, systemDirectory, "\(usual)\0\(user.name)")
    socketPaths = ["\(Self.runtimeDirectory ?? "/run")/prefsfs/\(socket)"]
    other = user
  }

  /// Creates the surroundings of a store of this user's whose directories and socket are known.
  package init(_ layout: StoreLayout, socketPath: String) {
    userDirectory = layout.userDirectory
    systemDirectory = layout.systemDirectory
    stateDirectory = layout.stateDirectory
    socketPaths = [socketPath]
    other = nil
  }

  /// Determines the surroundings of a user's usual store. Throws EPERM unless this process is root
  /// or runs as that user, and `.noSuchDomain` if there is no such user.
  public init(ofUser name: String) throws(EngineError) {
    if name == Account.own?.name {
      self.init()
      return
    }
    guard geteuid() == 0 else {
      throw EngineError(
        .system(.notPermitted), "only root can read the preferences of \(name)")
    }
    guard let account = Account.named(name) else {
      throw EngineError(.noSuchDomain, "there is no user \(name)")
    }
    self.init(of: account)
  }

  /// Determines the surroundings of this process, and looks at what a client looks at to find the
  /// owner, for a program that must not wait for ever: a thread of its own does it first. Throws
  /// ETIMEDOUT where the file systems do not answer for 5 s; then that thread goes on waiting.
  /// Cost: a thread.
  public static func answering() throws(EngineError) -> Surroundings {
    let found = Monitor<Surroundings?>(nil)
    let look: @Sendable () -> Void = {
      let surroundings = Surroundings()
      _ = (surroundings.identity, surroundings.ownerSocketPaths)
      found.change { $0 = surroundings }
    }
    do throws(SystemError) {
      try WorkerThread(name: "prefs-home", look).detach()
    } catch {
      look()
    }
    let deadline = Instant.now.advanced(milliseconds: CallWatch.patience)
    if let surroundings = found.wait(until: deadline, for: { $0 }) { return surroundings }
    let directory = Environment.directory("XDG_CONFIG_HOME") ?? home + "/.config"
    throw EngineError(.system(.timedOut), CallWatch.sentence(of: directory))
  }

  private static var machineDirectory: String {
    absolute(Environment.variable("PREFSFS_SYSTEM_DIR") ?? "/etc/preferences")
  }

  private static func socketName(_ user: String, _ system: String, _ state: String) -> String {
    StableHash.text(of: "\(user)\0\(system)\0\(state)".utf8)
  }

  /// `$XDG_RUNTIME_DIR`, if it is the user's own: `su` keeps the variable of the user who called it.
  private static var runtimeDirectory: String? {
    guard let path = Environment.directory("XDG_RUNTIME_DIR").map(absolute) else { return nil }
    let owner = (try? Files.status(path))?.st_uid
    return (owner.map { $0 != geteuid() } ?? isSomebodyElses(path)) ? nil : path
  }

  /// The directory for state: the first choice that is not another user's. `su` without `-` leaves
  /// root with the variables of the user who called it, whose directories must not be written to.
  private static func stateHome(_ home: String) -> String {
    let usual = absolute(home + "/.local/state")
    let first = Environment.directory("XDG_STATE_HOME").map(absolute) ?? usual
    if !isSomebodyElses(first) { return first }
    if !isSomebodyElses(usual) { return usual }
    let last = Account.own.map { absolute($0.home + "/.local/state") }
    return last.flatMap { isSomebodyElses($0) ? nil : $0 } ?? first
  }

  /// Whether the directory, or the nearest existing one above it, is another user's. The system's
  /// own directories (root's) are not.
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

  /// The file in which the owner notes the path of its socket. Processes of one store may have
  /// different values of `$XDG_RUNTIME_DIR` (cron, su).
  public var socketNote: String { stateDirectory + "/socket" }

  /// Why no owner could keep its state: the state directory cannot be written, or made. Then an owner
  /// only reads. It is nil if it can be written. Cost: fstab(5) is read; two stat(2), of units, for
  /// the home and each directory above it; one for the state directory, and for each above it while
  /// they are missing; access(2).
  public var stateObstacle: EngineError? {
    if let awaitedMount {
      return EngineError(
        .system(.inputOutput),
        "preferences cannot be changed, because nothing is mounted yet at \(awaitedMount), which "
          + "fstab(5) or a unit of systemd names; it goes on when the home is there")
    }
    var directory = stateDirectory
    while !Files.isDirectory(directory), directory != "/", directory != "." {
      directory = Files.parent(of: directory)
    }
    do throws(SystemError) {
      try Files.checkWritable(directory)
      return nil
    } catch {
      return EngineError(
        .system(error.errno),
        "preferences can be read, and not changed, because their state cannot be kept in "
          + "\(stateDirectory): \(error)")
    }
  }

  /// The mount point of the user's home, or of a directory above it, at which nothing is mounted yet:
  /// an empty directory that fstab(5) or a unit of systemd names. What is made in it is hidden once
  /// something is mounted. nil if there is none, or the store is another user's.
  package var awaitedMount: String? {
    guard other == nil else { return nil }
    let planned = MountInformation.planned
    return Self.awaitedMount(of: Self.home) {
      planned.contains($0) || MountInformation.hasUnit($0)
    }
  }

  package static func awaitedMount(
    of home: String, _ mounts: @autoclosure () -> [MountInformation.Mount] = MountInformation.all,
    where isPlanned: (String) -> Bool
  ) -> String? {
    var point = home
    while point.hasSuffix("/") { point.removeLast() }
    while point.hasPrefix("/"), point != "/" {
      let above = Files.parent(of: point)
      // A bind mount may have the device of the directory above it, and is in the table.
      if isPlanned(point), device(of: point) == device(of: above), isEmpty(point) {
        let path = Files.canonicalPath(point)
        if !mounts().contains(where: { $0.path == path }) { return point }
      }
      point = above
    }
    return nil
  }

  private static func device(of path: String) -> dev_t? {
    (try? Files.status(path))?.st_dev
  }

  private static func isEmpty(_ directory: String) -> Bool {
    let names = try? Files.names(in: directory, withDirectories: true)
    return names?.allSatisfy { $0 == "." || $0 == ".." } == true
  }

  /// Whether the lists or the state lie on a file system that is mounted at the user's home, or below
  /// it (pam_mount, systemd-homed, autofs): it can go when the user logs out, if nothing uses it.
  public var isHomeMounted: Bool {
    let home = Files.canonicalPath(Self.home)
    let mounts = MountInformation.all
    return [userDirectory, stateDirectory].contains { directory in
      let path = Files.canonicalPath(directory)
      let above = mounts.filter { path == $0.path || path.hasPrefix($0.path + "/") }
      let mount = above.max { $0.path.utf8.count < $1.path.utf8.count }?.path
      return mount.map { $0 == home || $0.hasPrefix(home + "/") } ?? false
    }
  }

  /// The path at which an owner listens that only reads and can listen nowhere else: in a directory
  /// of the user's own in /tmp.
  public var lastSocketPath: String {
    let name = socketPaths[0].split(separator: "/").last ?? "prefsd"
    return "/tmp/prefsfs-\(geteuid())/\(name)"
  }

  /// The paths where the present owner may be listening: the noted one first, then `socketPaths`.
  public var ownerSocketPaths: [String] {
    if other != nil { return socketPaths }
    let noted = try? Files.regularContents(socketNote, limit: 4096)
    let usual = stateObstacle == nil ? socketPaths : socketPaths + [lastSocketPath]
    guard let noted, !noted.isEmpty else { return usual }
    let path = String(decoding: noted, as: UTF8.self)
    return [path] + usual.filter { $0 != path }
  }

  /// Where an owner that only reads, and writes nothing else, notes its mounts; nil if there is no
  /// runtime directory, or the store is another user's.
  public var readersNote: String? {
    other == nil && socketPaths.count > 1 ? hidden("mounts") : nil
  }

  /// A hidden file beside the socket in the runtime directory.
  private func hidden(_ ending: String) -> String {
    let directory = Files.parent(of: socketPaths[0])
    return "\(directory)/.\(socketPaths[0].dropFirst(directory.utf8.count + 1)).\(ending)"
  }

  /// Notes that this process owns the store. Returns whether it is the first process to do so since
  /// the user logged in: the note is in `$XDG_RUNTIME_DIR`, which ends with the user's last
  /// session. Without that directory, returns whether it is the first one since the machine
  /// started. Returns false if the note cannot be read or written. The second call returns false.
  public func noteOwner() -> Bool {
    do throws(SystemError) {
      if socketPaths.count > 1 {
        try Files.makeDirectories(Files.parent(of: socketPaths[0]), mode: 0o700)
        let note = hidden("owned")
        _ = try Descriptor(opening: note, O_WRONLY | O_CREAT | O_EXCL)
        return true
      }
      let start = try Files.contents("/proc/sys/kernel/random/boot_id", limit: 4096) ?? []
      let note = stateDirectory + "/boot"
      if try Files.regularContents(note, limit: 4096) == start { return false }
      try Files.makeDirectories(stateDirectory, mode: 0o700)
      try Files.replace(note, with: start)
      return true
    } catch {
      return false
    }
  }

  /// The directories of data, the one that counts first: `$XDG_DATA_HOME` (`~/.local/share`), then
  /// those of `$XDG_DATA_DIRS` (XDG Base Directory Specification).
  public static var dataDirectories: [String] {
    [Environment.directory("XDG_DATA_HOME") ?? home + "/.local/share"] + machineDataDirectories
  }

  private static var machineDataDirectories: [String] {
    let all = Environment.variable("XDG_DATA_DIRS") ?? "/usr/local/share:/usr/share"
    return all.split(separator: ":").map(String.init).filter { $0.hasPrefix("/") }
  }

  /// The directories of vendors' lists, the one that counts first: `preferences` in those of
  /// `$XDG_DATA_DIRS`.
  public static var vendorDirectories: [String] {
    machineDataDirectories.map { $0 + "/preferences" }
  }

  /// The directories of schemas, the one that counts first: that of the machine's lists, then
  /// `preferences/schemas` in the directories of data.
  public var schemaDirectories: [String] {
    [systemDirectory + "/schemas"] + ownDataDirectories.map { $0 + "/preferences/schemas" }
  }

  /// The directories of schemas of GSettings, the one that counts first, where GLib looks for them:
  /// those of `$GSETTINGS_SCHEMA_DIR`, as far as their paths are absolute, then `glib-2.0/schemas` in
  /// the directories of data.
  public var settingsDirectories: [String] {
    let set = other == nil ? Environment.variable("GSETTINGS_SCHEMA_DIR") ?? "" : ""
    return set.split(separator: ":").map(String.init).filter { $0.hasPrefix("/") }
      + ownDataDirectories.map { $0 + "/glib-2.0/schemas" }
  }

  /// The directories of data of the store's user.
  private var ownDataDirectories: [String] {
    other.map { [$0.home + "/.local/share"] + Self.machineDataDirectories } ?? Self.dataDirectories
  }

  /// The file name of the user's list of the global domain, without `.plist`. In a store of
  /// GNUstep's (`~/GNUstep/Defaults`) it is the domain's own name. Cost: at most two stat(2).
  public var globalName: String {
    let (apple, gnustep) = (".GlobalPreferences", "NSGlobalDomain")
    let isThere = { (name: String) in
      (try? Files.status("\(userDirectory)/\(name).plist")) != nil
    }
    return isThere(gnustep) && !isThere(apple) ? gnustep : apple
  }

  /// The path, made absolute from the working directory.
  private static func absolute(_ path: String) -> String {
    if path.hasPrefix("/") { return path }
    return (Files.realPath(".") ?? "/") + "/" + path
  }

  private static var hostIdentifier: String {
    guard let bytes = try? Files.contents("/etc/machine-id", limit: 4096) else {
      return "UnknownHostID"
    }
    let digits = String(decoding: bytes.prefix(32), as: UTF8.self).uppercased()
    guard digits.utf8.count == 32 else { return "UnknownHostID" }
    var identifier = ""
    for (position, digit) in digits.unicodeScalars.enumerated() {
      if [8, 12, 16, 20].contains(position) { identifier += "-" }
      identifier.unicodeScalars.append(digit)
    }
    return identifier
  }
}

extension StoreLayout {
  /// Creates the layout of the store in these surroundings.
  public init(_ surroundings: Surroundings) {
    self.init(
      userDirectory: surroundings.userDirectory, systemDirectory: surroundings.systemDirectory,
      stateDirectory: surroundings.stateDirectory,
      hostIdentifier: surroundings.hostIdentifier, userName: surroundings.userName,
      globalName: surroundings.globalName, vendorDirectories: Surroundings.vendorDirectories,
      schemaDirectories: surroundings.schemaDirectories,
      settingsDirectories: surroundings.settingsDirectories)
    if userName.isEmpty { noteUnknownUser() }
  }
}
