/// The names of the program: `defaults`, the command of macOS, and `prefs`, which shows all verbs.
/// Every verb works under both.
enum CommandName: String {
  case defaults
  case prefs

  /// The name by which the program was started: `prefs`, or another one, such as the package's
  /// `prefsfs-defaults`.
  static let current = CommandName(started: CommandLine.arguments.first ?? "")

  /// The name in the last component of a path.
  init(started path: String) {
    self = path.split(separator: "/").last == "prefs" ? .prefs : .defaults
  }
}
