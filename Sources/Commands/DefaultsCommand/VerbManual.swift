import ManualPage

/// What the help and the manual pages say of a verb. It stands in the file of the verb.
struct VerbManual {
  typealias Form = ManualPage.Form

  /// The part of the help that a verb is in, by its title.
  enum Group: String, CaseIterable {
    case look = "Look at values"
    case change = "Change values"
    case history = "What was changed"
    case declarations = "Declarations"
    case schemas = "What keys may be"
    case machines = "Machines and the cloud"
    case files = "Files, and other systems"
    case help = "Help"
  }

  /// The part of the help that the verb is in.
  let group: Group
  /// What the verb does, in a line that begins with a verb.
  let summary: String
  /// The command lines of Apple's command; none if the verb is not Apple's.
  var apple: [Form] = []
  /// The command lines that Apple's command does not have.
  var more: [Form] = []
  /// A paragraph of what else is good to know.
  var text = ""
  /// The options, and other words of the command lines.
  var options: [Form] = []
  /// Command lines of `prefs`, with what they print where that says more.
  let example: String

  /// All command lines.
  var forms: [Form] { apple + more }
}

// MARK: - Options of several verbs

extension VerbManual {
  static let path = Form("--path", "KEY is a path into a value: Key:Sub:0")
  static let synchronous = Form("--sync", "returns when the list on the disk has the change")
  static let force = Form("--force", "sets what the schema of the domain refuses")
  static let because = Form("--because TEXT", "why, for the history (256 bytes at most)")
  static let rules = Form("--rules", "the document may set rules, which run commands, or the cloud")
  static let json = Form("--json", "prints a line of JSON for each entry")
  static let user = Form("--for USER", "about that user, with the user's rights (root)")
  static let appleText = Form("--apple-text", "escapes all but ASCII, as on macOS")
  static let time = Form(
    "TIME", "a number, ISO 8601, a day (UTC), yesterday, now, -2h (s, m, h, d)")
}
