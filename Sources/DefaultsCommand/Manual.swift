import ManualPage

/// What `defaults help` prints and defaults(1) says.
enum Manual {
  typealias Form = ManualPage.Form

  static let page = ManualPage(
    "defaults", 1, "read and write the user's preferences",
    synopsis: "defaults [--apple-text] [-currentHost | -host HOST] VERB ...",
    description: description,
    sections: [
      ManualPage.Section("Verbs", apple),
      ManualPage.Section("Verbs that Apple's command has not", ours),
      ManualPage.Section("Domains", domains), ManualPage.Section("Values", values),
      ManualPage.Section("Exit status", statuses),
    ],
    files: files, related: ["prefsfs(1)"])

  private static let apple = [
    Form("read [DOMAIN [KEY]]", "shows all domains, one, or a key's value"),
    Form("read-type DOMAIN KEY", "shows the type of a key's value"),
    Form("write DOMAIN KEY VALUE", "sets a key"),
    Form("write DOMAIN DICTIONARY", "sets all keys of a domain; others are removed"),
    Form("rename DOMAIN OLD NEW", "gives a key another name"),
    Form("delete DOMAIN [KEY]", "removes a key, or the domain; also: remove, delete-all"),
    Form("import DOMAIN FILE", "sets the keys of a property list (-: standard input)"),
    Form("export DOMAIN FILE", "writes the domain as a binary list (-: XML on output)"),
    Form("domains", "names the domains, without the global one"),
    Form("find WORD", "shows keys whose name, text or domain has the word"),
    Form("printHostIdentifier", "shows this host in the names of ByHost lists"),
    Form("help [--man]", "shows this text, or the manual page as troff"),
  ]

  private static let ours = [
    Form("explain DOMAIN KEY", "shows every place that has the key; * is read"),
    Form("read --json|--plist ...", "shows it as JSON, or as XML, which loses nothing"),
    Form("watch [DOMAIN [KEY]]", "shows each change of a value that is read"),
    Form("apply [--dry-run] FILE", "sets what {DOMAIN: {KEY: VALUE}} declares, all or none"),
    Form("write|delete|... --sync ...", "returns when the list on the disk has it"),
    Form("synchronize [DOMAIN]", "returns when the lists on the disk have everything"),
    Form("read|write|delete --path ...", "KEY is a path into a value: Key:Sub:0"),
  ]

  private static let domains = [
    Form("NAME", "a domain of the user's, e.g. com.example.editor"),
    Form("-g, -globalDomain", "the global domain, NSGlobalDomain"),
    Form("-app NAME|PATH", "the domain of an application bundle"),
    Form("/DIRECTORY/NAME[.plist]", "a list by its path"),
  ]

  private static let values = [
    Form("TEXT", "a string; with one of \"()[]{}<> a property list"),
    Form("-string TEXT", "a string"),
    Form("-data HEX", "bytes, as hexadecimal digits"),
    Form("-int, -integer N", "an integer"),
    Form("-float N", "a real of single precision"),
    Form("-bool, -boolean WORD", "true, false, yes or no"),
    Form("-date TEXT", "2026-11-21 07:20:00 +0000, ISO 8601, a day, today"),
    Form("-array, -array-add V...", "these elements; these after those that are there"),
    Form("-dict, -dict-add K V...", "these pairs; these among those that are there"),
  ]

  private static let statuses = [
    Form("0", "done; of apply: everything was so already"),
    Form("1", "not done; standard error says why"),
    Form("2", "of apply: something was changed, or with --dry-run would be"),
    Form("255", "the command line is wrong; nothing was done"),
  ]

  private static let files = [
    Form("~/.config/DOMAIN.plist", "the user's lists, or in $XDG_CONFIG_HOME"),
    Form("~/.config/ByHost/DOMAIN.HOST.plist", "the user's lists for this host"),
    Form("/etc/preferences", "the machine's lists, and below managed those that are forced"),
  ]

  private static let description = """
    defaults reads and writes preferences: the property lists of NSUserDefaults and CFPreferences, which
    prefsfs(1) shows as files. Its verbs, messages and exit statuses are those of the command of macOS. What
    it has written is read by every mount and every program of the user when it returns.

    It reads and writes the user's own lists. Of a key that stands in the list of this host it reads that one,
    and changes both in one step, so that a program reads what was written; -currentHost names the host's list
    outright, a path the list of that path. Lists are rewritten within a second; with --sync, or with
    DEFAULTS_SYNC=1 in the environment, and always where the list was named by its path, it returns when that
    has happened. What an administrator forces
    cannot be written; explain shows it, and whatever else a program reads: read, export and find show the
    user's own lists alone.

    -host takes this host only. Where no mount owns the store, prefsd must be in PATH, or beside defaults.

    Text is printed as UTF-8. With --apple-text it is escaped as macOS does it.
    """
}
