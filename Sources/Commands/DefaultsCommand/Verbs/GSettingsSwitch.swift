import PreferenceSchemas
import PropertyList
import StoreAccess
import SystemCalls

/// `gsettings on`, `gsettings off`: whether programs that use GSettings keep their preferences in
/// the mount of prefsfs.
///
/// `on` writes a file of environment.d(5), which the user's systemd reads when a session begins;
/// `off` removes it. A file there that has anything else is somebody's, and is left alone. No
/// preference is read or written by `on`; none is changed by `off`.
enum GSettingsSwitch {
  private static let file = "environment.d/60-prefsfs-gsettings.conf"
  private static let contents = """
    # Written by `prefs gsettings on`, removed by `prefs gsettings off`.
    GSETTINGS_BACKEND=prefsfs

    """
  private static let module = "libprefsfs-gsettings.so"

  static func run(_ arguments: inout Arguments) throws(Refusal) {
    let word = try arguments.removeNext()
    try arguments.end()
    let path = "\(Surroundings().userDirectory)/\(file)"
    switch word {
    case "on": try turnOn(path)
    case "off": try turnOff(path, arguments.options)
    default: throw .mistake("\(word) is neither on nor off")
    }
  }

  // MARK: - on

  private static func turnOn(_ path: String) throws(Refusal) {
    let message = "Could not turn the backend prefsfs on; nothing was changed"
    guard let modulePath = findModule() else {
      let places = moduleDirectories.joined(separator: ", ")
      throw Refusal(
        message: message,
        detail: "there is no \(module) where GLib looks for modules (\(places)); install the "
          + "package prefsfs-gsettings, or name its directory in GIO_EXTRA_MODULES")
    }
    _ = try isWritten(path, orSaying: message)
    try Refusal.wrapping(message) { () throws(SystemError) in
      try Files.makeDirectories(Files.parent(of: path), mode: 0o755)
      try Files.replace(path, with: Array(contents.utf8))
    }
    Output.write(
      """
      Log out and in: programs that use GSettings then keep their preferences in the mount.
      What dconf has comes along with: prefs import-from dconf | prefs apply -
      \(path.printable()) is read by systemd. Elsewhere, set the variable by hand:
        a session that systemd does not start: export GSETTINGS_BACKEND=prefsfs in ~/.profile
        what a plain dbus-daemon starts: dbus-update-activation-environment GSETTINGS_BACKEND
          in a script of the session

      """)
    for name in ["GIO_EXTRA_MODULES", "GIO_MODULE_DIR"] where isNamed(modulePath, by: name) {
      Output.note("the sessions need \(name) too: \(modulePath) is where that says")
    }
    warnOfMount()
  }

  private static func directories(_ variable: String) -> [String] {
    (Environment.variable(variable) ?? "").split(separator: ":").map(String.init)
  }

  /// The directories in which GLib looks for modules; where it was built to look is different from
  /// system to system.
  private static var moduleDirectories: [String] {
    #if arch(arm64)
      let usual = ["/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"]
    #else
      let usual = ["/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib"]
    #endif
    let set = directories("GIO_MODULE_DIR")
    return directories("GIO_EXTRA_MODULES")
      + (set.isEmpty ? usual.map { $0 + "/gio/modules" } : set)
  }

  private static func findModule() -> String? {
    moduleDirectories.map { "\($0)/\(module)" }.first { path in
      (try? Files.status(path)).flatMap { $0 } != nil
    }
  }

  private static func isNamed(_ path: String, by variable: String) -> Bool {
    directories(variable).contains { path == "\($0)/\(module)" }
  }

  /// Warns if the module would find no mount (`prefs_names_mount` of the module), or finds it by a
  /// variable that a session may not have.
  private static func warnOfMount() {
    let set = Environment.variable("PREFSFS_MOUNT")
    let runtime = Environment.directory("XDG_RUNTIME_DIR")
    let points =
      set.map { [$0] }
      ?? [runtime.map { $0 + "/preferences" }, Surroundings.home + "/Preferences"].compactMap { $0 }
    let isThere = points.contains { point in
      let path = Files.canonicalPath(point)
      return MountInformation.mount(at: path)?.kind == "fuse.prefsfs"
    }
    if !isThere {
      Output.note(
        "no preferences are mounted at \(points.joined(separator: " or ")); until they are, programs "
          + "have their defaults and keep nothing (systemctl --user enable --now prefsfs)")
    } else if set != nil {
      Output.note("the sessions need PREFSFS_MOUNT too: the mount is where that says")
    }
  }

  // MARK: - off

  private static func turnOff(_ path: String, _ options: Options) throws(Refusal) {
    let message = "Could not turn the backend prefsfs off; nothing was changed"
    guard try isWritten(path, orSaying: message) else {
      return Output.write("It is off: there is no \(path.printable())\n")
    }
    try Refusal.wrapping(message) { () throws(SystemError) in try Files.remove(path) }
    Output.write(
      """
      Log out and in: programs that use GSettings then have the preferences that dconf has.
      Until then, those that run go on with the mount.

      """)
    let domains = try GSettingsTypes.ofMachine().domains(options).map(\.view.target.name)
    guard !domains.isEmpty else { return }
    Output.write("These domains stay in the mount; dconf gets their values with\n")
    Output.write("  prefs export --as dconf | dconf load /\n")
    for domain in domains { Output.write(line: "  \(domain)") }
  }

  /// Whether `on` has written the file. Throws if somebody else has.
  private static func isWritten(
    _ path: String, orSaying message: String
  ) throws(Refusal) -> Bool {
    let found = try Refusal.wrapping(message) { () throws(SystemError) in
      try Files.regularContents(path, limit: 1 << 20)
    }
    guard let found else { return false }
    guard found.elementsEqual(contents.utf8) else {
      throw Refusal(
        message: message,
        detail: "\(path) has something else than `prefs gsettings on` writes; move it away")
    }
    return true
  }
}

extension GSettingsTypes {
  /// The user's domains whose paths a schema has, or one above them, with their paths.
  func domains(_ options: Options) throws(Refusal) -> [(view: DomainView, path: String)] {
    try Domains.all(options).compactMap { view in
      let path = GSettingsPath.path(of: view.target.domain.string)
      return path.flatMap { has($0) ? (view, $0) : nil }
    }
  }
}

extension GSettingsSwitch {
  static let manual = VerbManual(
    group: .files, summary: "has programs that use GSettings keep preferences here",
    more: [
      .init(
        "gsettings on|off",
        "whether programs that use GSettings keep preferences in the mount")
    ],
    text: """
      It takes effect when you log in again. What dconf has comes along with
      `prefs import-from dconf | prefs apply -`, and goes back with
      `prefs export --as dconf | dconf load /`.
      """,
    example: """
      $ prefs gsettings on
      """)
}
