import ManualPage

/// The texts of `defaults help` and `prefs help`, of the manual pages defaults(1) and prefs(1), and
/// of `VERB --help`.
enum Manual {
  typealias Form = ManualPage.Form
  typealias Section = ManualPage.Section

  /// The page of the name by which the program was started.
  static var page: ManualPage { CommandName.current == .prefs ? prefs : defaults }

  /// Apple's command.
  static let defaults = ManualPage(
    "defaults", "read and write the user's preferences",
    synopsis: "defaults \(options) VERB ...",
    description: ManualText.defaults,
    sections: [
      Section("Verbs", Verb.shown(by: .defaults).flatMap(\.manual.apple)),
      Section("Domains", domains), Section("Values", values),
      Section("Exit status", appleStatuses),
    ],
    files: files, related: ["prefs(1)", "prefsfs(1)"],
    closing: "`prefs help` has the others, such as explain, history and undo; they work here too.")

  /// All verbs, in groups. The help has a line for each, and the page each of their command lines.
  static let prefs = ManualPage(
    "prefs", "look at preferences, change them, and take changes back",
    synopsis: "prefs \(options) [VERB ...]",
    description: ManualText.prefs,
    sections: groups { $0.manual.forms } + [
      Section("Domains", domains), Section("Values", values),
      Section("Options of several verbs", common),
      Section("Options of apply --as", DeclareArguments.forms),
      Section("Filters of history, undo and record", HistoryArguments.forms),
      Section("Exit status", statuses),
    ],
    files: files, related: ["defaults(1)", "preferences(7)", "prefsfs(1)", "prefsd(8)"],
    overview: groups { [Form($0.name, $0.manual.summary)] },
    closing: "`prefs VERB --help` explains a verb, with an example.")

  private static let options = "[--apple-text] [-currentHost | -host HOST]"

  /// A section for each group of verbs.
  private static func groups(_ forms: (Verb) -> [Form]) -> [Section] {
    VerbManual.Group.allCases.map { group in
      let verbs = Verb.shown(by: .prefs).filter { $0.manual.group == group }
      return Section(group.rawValue, verbs.flatMap(forms))
    }
  }

  // MARK: - One verb

  /// The line that says how the verb is called, and where to read more.
  static func usage(of verb: Verb?) -> String {
    guard let verb else {
      let name = CommandName.current.rawValue
      return "usage: \(name) \(options) VERB ...    (more: \(name) help)\n"
    }
    let name = name(for: verb, .current)
    let words = verb.manual.forms.first?.words ?? verb.name
    return "usage: \(name) \(words)    (more: \(name) \(verb.name) --help)\n"
  }

  /// The explanation of a verb.
  /// - Parameter program: the name by which the program was started.
  static func help(of verb: Verb, as program: CommandName) -> String {
    let (manual, name) = (verb.manual, name(for: verb, program))
    let forms = manual.forms.map { "  \(name) \($0.words)\n      \($0.meaning)\n" }
    let options = manual.options.isEmpty ? nil : Section("Options", manual.options).help
    let lines = manual.example.split(separator: "\n").map { line in
      "  " + (line.hasPrefix("$ prefs ") ? "$ \(name) \(line.dropFirst(8))" : line) + "\n"
    }
    let text = manual.text.isEmpty ? nil : manual.text + "\n"
    return ["Usage:\n" + forms.joined(), text, options, "Example:\n" + lines.joined()].compactMap {
      $0
    }
    .joined(separator: "\n")
  }

  /// The name by which the help calls the verb: `prefs`, unless it is Apple's and the user calls it
  /// so.
  private static func name(for verb: Verb, _ program: CommandName) -> String {
    (verb.isApple ? program : .prefs).rawValue
  }

  // MARK: - Sections

  private static let domains = [
    Form("NAME", "a domain of the user's, e.g. com.example.editor"),
    Form("-g, -globalDomain", "the global domain, NSGlobalDomain"),
    Form("-app NAME|PATH", "the domain of an application bundle"),
    Form("/DIRECTORY/NAME[.plist]", "a list by its path"),
  ]

  private static let values = [
    Form("TEXT", "a string; with one of \"()[]{}<> in it, a property list"),
    Form("-string TEXT", "a string"),
    Form("-data HEX", "bytes, as hexadecimal digits"),
    Form("-int, -integer N", "an integer"),
    Form("-float N", "a real of single precision"),
    Form("-bool, -boolean WORD", "true, false, yes or no"),
    Form("-date TEXT", "2026-11-21 07:20:00 +0000, ISO 8601, a day, today"),
    Form("-array, -array-add V...", "an array; adds elements to the present one"),
    Form("-dict, -dict-add K V...", "a dictionary; adds pairs to the present one"),
  ]

  private static let common = [
    Form("--apple-text", "read, find, domains, watch, explain, apply: escapes all but ASCII"),
    Form("--force", "write, rename, import, apply: sets what the schema of the domain refuses"),
    Form("--for USER", "read, explain, history, profiles, declared: about that user (root)"),
    Form("--json", "history, diff, explain, declared: a line of JSON for each entry"),
    Form("--path", "read, read-type, write, delete: KEY is a path into a value: Key:Sub:0"),
    Form("--sync", "write, rename, delete, import: waits for the list on the disk"),
    Form("--as FORM", "record: commands, apply, ansible or profile"),
    Form("--over", "undo: takes later changes of the same keys back, too"),
    Form("--skip", "undo: leaves keys alone that were changed later, or are forced"),
    Form("--dry-run", "apply, undeclare, undo: only says what would be done"),
  ]

  private static let appleStatuses = [
    Form("0", "done"), Form("1", "not done; standard error says why"),
    Form("255", "the command line is wrong; nothing was done"),
  ]

  private static let statuses = [
    Form("0", "done; apply: everything was as declared already"),
    Form("1", "not done; standard error says why; check, lint, profiles check: something is wrong"),
    Form(
      "2", "apply: something was changed, or would be (--dry-run); declared --drift: there is some"),
    Form("255", "the command line is wrong; nothing was done"),
  ]

  private static let files = [
    Form("~/.config/DOMAIN.plist", "the user's lists, or in $XDG_CONFIG_HOME"),
    Form("~/.config/ByHost/DOMAIN.HOST.plist", "the user's lists for this host"),
    Form("~/.config/environment.d/60-prefsfs-gsettings.conf", "what gsettings on has written"),
    Form("~/.local/state/prefsfs", "journal, keys of the cloud; or in $XDG_STATE_HOME"),
    Form("/etc/preferences", "the machine's lists; in managed, forced lists and profiles"),
  ]
}
