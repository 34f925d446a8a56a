/// A verb of the `defaults` command.
enum Verb: String, CaseIterable {
  case read, readType = "read-type", write, rename, delete, deleteAll = "delete-all"
  case `import`, export, domains, find, help
  case hostIdentifier = "printhostidentifier"
  case explain, watch, apply, synchronize, suites, profiles, cloud, history, undo, record, diff
  case declared, undeclare, check
  case importFrom = "import-from"
  case describe, changed, lint, schema, complete, gsettings

  /// Creates the verb with the name, without regard to case; `remove` is `delete`.
  init?(_ name: String) {
    let name = name.lowercased()
    self.init(rawValue: name == "remove" ? "delete" : name)
  }

  /// The sentence that says that no verb has the name, with the nearest name that one has.
  static func absence(of name: String) -> String {
    if name.hasPrefix("-") { return "there is no option \(name) before the verb" }
    let nearest = allCases.map { ($0.rawValue, Spelling.distance(name.lowercased(), $0.rawValue)) }
      .min { $0.1 < $1.1 }
    let hint = nearest.map { $0.1 <= 2 && $0.1 < name.count ? "; is \($0.0) meant?" : "" } ?? ""
    return "there is no verb \(name)\(hint)"
  }

  /// The options that may be behind the verb.
  var options: [String] {
    switch self {
    case .read: ["--json", "--plist", "--path", "--apple-text", "--at", "--effective", "--for"]
    case .readType: ["--path"]
    case .write: ["--path", "--sync", "--force"]
    case .delete, .deleteAll: ["--path", "--sync"]
    case .rename: ["--sync", "--force"]
    case .import: ["--sync", "--force"]
    case .find, .domains, .watch: ["--apple-text"]
    case .explain: ["--apple-text", "--json", "--for"]
    case .apply: ["--dry-run", "--apple-text", "--force"]
    case .undeclare: ["--dry-run"]
    default: []
    }
  }

  /// The options that a shell offers.
  /// - Parameter isFirst: whether there is nothing but options behind the verb. `options` are read
  ///   there alone; the verb may read others anywhere.
  func candidates(isFirst: Bool) -> [String] { (isFirst ? options : []) + optionsAnywhere }

  private var optionsAnywhere: [String] {
    let filters = ["--since", "--until", "--by", "--via", "--place", "--all"]
    switch self {
    case .history: return filters + ["--json", "--for"]
    case .diff: return ["--place", "--all", "--json"]
    case .undo: return filters + ["--over", "--skip", "--dry-run"]
    case .record: return filters + ["--as"]
    case .apply: return ["--as", "--merge", "--over", "--place", "--dry-run", "--force"]
    case .undeclare: return ["--place", "--dry-run"]
    case .declared: return ["--drift", "--json", "--place", "--for"]
    case .schema: return ["--into"]
    case .export: return ["--as", "--effective", "--global"]
    case .help: return ["--man"]
    case .profiles: return ["--effect", "--for"]
    default: return []
    }
  }
}
