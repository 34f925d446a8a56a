/// What `defaults help` prints and the manual page says, from one table.
public enum Manual {
  /// A form of the command line, and what it does.
  struct Form {
    let words: String
    let meaning: String
  }

  static let apple = [
    Form(words: "read [DOMAIN [KEY]]", meaning: "shows all domains, one, or a key's value"),
    Form(words: "read-type DOMAIN KEY", meaning: "shows the type of a key's value"),
    Form(words: "write DOMAIN KEY VALUE", meaning: "sets a key"),
    Form(
      words: "write DOMAIN DICTIONARY", meaning: "sets all keys of a domain; others are removed"),
    Form(words: "rename DOMAIN OLD NEW", meaning: "gives a key another name"),
    Form(
      words: "delete DOMAIN [KEY]",
      meaning: "removes a key, or the domain; also: remove, delete-all"),
    Form(
      words: "import DOMAIN FILE", meaning: "sets the keys of a property list (-: standard input)"),
    Form(
      words: "export DOMAIN FILE", meaning: "writes the domain as a binary list (-: XML on output)"),
    Form(words: "domains", meaning: "names the domains, without the global one"),
    Form(words: "find WORD", meaning: "shows keys whose name, text or domain has the word"),
    Form(words: "printHostIdentifier", meaning: "shows this host in the names of ByHost lists"),
    Form(words: "help", meaning: "shows this text"),
  ]

  static let ours = [
    Form(words: "explain DOMAIN KEY", meaning: "shows every place that has the key; * is read"),
    Form(
      words: "read --json|--plist ...", meaning: "shows it as JSON, or as XML, which loses nothing"),
    Form(words: "watch [DOMAIN [KEY]]", meaning: "shows each change of a value that is read"),
    Form(
      words: "apply [--dry-run] FILE",
      meaning: "sets what {DOMAIN: {KEY: VALUE}} declares, all or none"),
    Form(words: "read|write|delete --path ...", meaning: "KEY is a path into a value: Key:Sub:0"),
  ]

  static let domains = [
    Form(words: "NAME", meaning: "a domain of the user's, e.g. com.example.editor"),
    Form(words: "-g, -globalDomain", meaning: "the global domain, NSGlobalDomain"),
    Form(words: "-app NAME|PATH", meaning: "the domain of an application bundle"),
    Form(words: "/DIRECTORY/NAME[.plist]", meaning: "a list by its path"),
  ]

  static let values = [
    Form(words: "TEXT", meaning: "a string; with one of \"()[]{}<> a property list"),
    Form(words: "-string TEXT", meaning: "a string"),
    Form(words: "-data HEX", meaning: "bytes, as hexadecimal digits"),
    Form(words: "-int, -integer N", meaning: "an integer"),
    Form(words: "-float N", meaning: "a real of single precision"),
    Form(words: "-bool, -boolean WORD", meaning: "true, false, yes or no"),
    Form(words: "-date TEXT", meaning: "2026-11-21 07:20:00 +0000, ISO 8601, a day, today"),
    Form(
      words: "-array, -array-add V...", meaning: "these elements; these after those that are there"),
    Form(
      words: "-dict, -dict-add K V...", meaning: "these pairs; these among those that are there"),
  ]

  static let statuses = [
    Form(words: "0", meaning: "done; of apply: everything was so already"),
    Form(words: "1", meaning: "not done; standard error says why"),
    Form(words: "2", meaning: "of apply: something was changed, or with --dry-run would be"),
    Form(words: "255", meaning: "the command line is wrong; nothing was done"),
  ]

  private static let sections = [
    ("Verbs", apple), ("Verbs that Apple's command has not", ours), ("Domains", domains),
    ("Values", values), ("Exit status", statuses),
  ]

  private static let synopsis = "defaults [--apple-text] [-currentHost | -host HOST] VERB ..."

  /// What `help` shows, and a wrong command line.
  static var usage: String {
    let parts = sections.map { title, forms in
      "\(title):\n"
        + forms.map { form in
          let space = String(repeating: " ", count: max(1, 30 - form.words.utf8.count))
          return "  \(form.words)\(space)\(form.meaning)\n"
        }.joined()
    }
    return "usage: \(synopsis)\n\nReads and writes the user's preferences.\n\n"
      + parts.joined(separator: "\n")
  }

  /// The manual page defaults(1), as troff.
  public static var page: String {
    let parts = sections.map { title, forms in
      ".SH \(title.uppercased())\n"
        + forms.map { form in
          ".TP\n.B \(escaped(form.words))\n\(escaped(form.meaning)).\n"
        }.joined()
    }
    return """
      .TH DEFAULTS 1
      .SH NAME
      defaults \\- read and write the user's preferences
      .SH SYNOPSIS
      .B \(escaped(synopsis))
      .SH DESCRIPTION
      \(escaped(description))
      \(parts.joined())\(notes)
      """
  }

  private static let description = """
    defaults reads and writes preferences: the property lists of NSUserDefaults and CFPreferences, which
    prefsfs(1) shows as files. Its verbs, messages and exit statuses are those of the command of macOS. What it
    has written is read by every mount and every program of the user when it returns.
    """

  private static let notes = """
    .SH NOTES
    A command reads and writes the user's own lists: of a key that stands in the list of this host, that;
    \\-currentHost names the host's list outright, a path the list of that path. What an administrator forces
    cannot be written; explain shows it.
    .PP
    Text is printed as UTF-8. With \\-\\-apple\\-text it is escaped as macOS does it.
    .SH FILES
    .TP
    .I ~/.config/DOMAIN.plist
    the user's lists, or in $XDG_CONFIG_HOME
    .TP
    .I ~/.config/ByHost/DOMAIN.HOST.plist
    the user's lists for this host
    .TP
    .I /etc/preferences
    the machine's lists, and below managed those that are forced
    .SH SEE ALSO
    .BR prefsfs (1)

    """

  private static func escaped(_ text: String) -> String {
    text.replacing("\\", with: "\\e").replacing("-", with: "\\-")
  }
}
