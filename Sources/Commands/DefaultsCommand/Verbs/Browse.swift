import Glibc
import PreferenceBrowser
import PreferenceModel

/// `browse`: shows all keys of all domains in the terminal, finds and changes them.
enum Browse {
  /// - Returns: the exit status of the browser.
  static func run(_ arguments: inout Arguments) throws(Refusal) -> Int32 {
    var options = BrowserOptions()
    options.isPlain = arguments.remove("--plain")
    options.place = try DeclareArguments.place(&arguments)
    (options.moment, options.user) = (arguments.options.moment, arguments.options.user)
    if !arguments.isEmpty { options.domain = try Target(&arguments).domain }
    try arguments.end()
    return Browser.run(options)
  }

  /// Whether a command line without a verb is that of the browser: `prefs` on a terminal, or
  /// `prefs --plain`.
  static func isMeant(_ words: [String]) -> Bool {
    guard CommandName.current == .prefs else { return false }
    if words.isEmpty { return isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1 }
    return words == ["--plain"]
  }
}

extension Browse {
  static let manual = VerbManual(
    group: .look, summary: "shows all keys in the terminal, finds and changes them",
    more: [.init("browse [OPTION...] [DOMAIN]", "shows the keys of all domains, or of one")],
    text: """
      Typing filters the keys; Enter changes one, u takes that back, F1 shows the other
      keys. The line of the command for each action is shown. `prefs` without a verb
      does the same, on a terminal.
      """,
    options: [
      .init("--plain", "a numbered list and a prompt, for screen readers and logs"),
      .init("--at TIME", "shows values as they were then, and changes none"),
      .init("--place PLACE", "only that place: managed, any-user, user or host"),
      .init("--for USER", "shows that user's values, and changes none (root)"),
    ],
    example: """
      $ prefs browse --plain com.example.editor
      """)
}
