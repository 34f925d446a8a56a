import PreferenceSchemas

/// A verb of the commands `defaults` and `prefs`.
enum Verb: String, CaseIterable {
  case read, readType = "read-type", write, rename, delete, deleteAll = "delete-all"
  case `import`, export, domains, find, help
  case hostIdentifier = "printhostidentifier"
  case explain, watch, apply, synchronize, suites, profiles, cloud, history, undo, record, diff
  case declared, undeclare, confirm, check
  case importFrom = "import-from"
  case describe, changed, lint, schema, complete, gsettings, effects, browse

  /// Creates the verb with the name, without regard to case; `remove` is `delete`, and `--help` and
  /// `-h` are `help`.
  init?(_ name: String) {
    let name = name.lowercased()
    let others = ["remove": "delete", "--help": "help", "-h": "help"]
    self.init(rawValue: others[name] ?? name)
  }

  /// The sentence that says that no verb has the name, with the nearest name that one has.
  static func absence(of name: String) -> String {
    if name.hasPrefix("-") { return "there is no option \(name) before the verb" }
    let hint = nearest(to: name.lowercased()).map { "; is \($0.name) meant?" } ?? ""
    return "there is no verb \(name)\(hint)"
  }

  /// The verb that somebody may have meant: one that begins with the word, or a near one.
  private static func nearest(to word: String) -> Verb? {
    let longer = allCases.first { word.count > 2 && $0.rawValue.hasPrefix(word) }
    return longer ?? NearName.find(word, among: allCases.lazy.map(\.rawValue)).flatMap { Verb($0) }
  }

  /// The verbs that the help of a name of the program shows: Apple's, or all. The others are further
  /// names of these.
  static func shown(by name: CommandName) -> [Verb] {
    allCases.filter { $0 != .deleteAll && (name == .prefs || $0.isApple) }
  }

  /// The verb as it is shown.
  var name: String { self == .hostIdentifier ? "printHostIdentifier" : rawValue }

  /// Whether Apple's command has the verb.
  var isApple: Bool { !manual.apple.isEmpty }

  /// The options that may be behind the verb.
  var options: [String] {
    switch self {
    case .read: ["--json", "--plist", "--path", "--apple-text", "--at", "--effective", "--for"]
    case .readType: ["--path"]
    case .write: ["--path", "--sync", "--force", "--because", "--lease"]
    case .delete, .deleteAll: ["--path", "--sync", "--because"]
    case .rename: ["--sync", "--force"]
    case .import: ["--sync", "--force", "--rules"]
    case .find, .domains, .watch: ["--apple-text"]
    case .explain: ["--apple-text", "--json", "--for"]
    case .apply: ["--dry-run", "--apple-text", "--force", "--rules", "--because"]
    case .undeclare: ["--dry-run"]
    case .browse: ["--at", "--for"]
    default: []
    }
  }

  /// The options that a shell offers: those that the help names.
  /// - Parameter isFirst: whether there is nothing but options behind the verb. `options` are read
  ///   there alone, but `apply` and `undeclare` read theirs anywhere, as all verbs do the others.
  func candidates(isFirst: Bool) -> [String] {
    let words = (manual.forms + manual.options).flatMap { form in
      form.words.split { !$0.isLetter && $0 != "-" }.filter { $0.hasPrefix("--") && $0.count > 2 }
    }
    let named = words.map(String.init)
    if isFirst { return named + ["--help"] }
    return named.filter { [.apply, .undeclare].contains(self) || !options.contains($0) }
  }
}
