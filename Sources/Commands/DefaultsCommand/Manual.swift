import ManualPage

/// The text of `defaults help` and of the manual page defaults(1).
enum Manual {
  typealias Form = ManualPage.Form

  static let page = ManualPage(
    "defaults", "read and write the user's preferences",
    synopsis: "defaults [--apple-text] [-currentHost | -host HOST] VERB ...",
    description: description,
    sections: [
      ManualPage.Section("Verbs", apple),
      ManualPage.Section("Verbs beyond those of macOS", ours),
      ManualPage.Section("Domains", domains), ManualPage.Section("Values", values),
      ManualPage.Section("Options of apply --as", declarations),
      ManualPage.Section("Filters of history and undo", filters),
      ManualPage.Section("Exit status", statuses),
    ],
    files: files, related: ["prefsfs(1)"])

  /// The line that says how the verb is called, and where to read more.
  static func usage(of verb: Verb?) -> String {
    let words = (apple + ours).map(\.words).first { words in
      words.split(separator: " ").first?.lowercased() == verb?.rawValue
    }
    let form = words ?? verb?.rawValue ?? "[--apple-text] [-currentHost | -host HOST] VERB ..."
    return "usage: defaults \(form)    (more: defaults help)\n"
  }

  private static let apple = [
    Form("read [DOMAIN [KEY]]", "shows all domains, one, or a key's value"),
    Form("read-type DOMAIN KEY", "shows the type of a key's value"),
    Form("write DOMAIN KEY VALUE", "sets a key"),
    Form("write DOMAIN DICTIONARY", "sets these keys of a domain and removes all others"),
    Form("rename DOMAIN OLD NEW", "gives a key another name"),
    Form("delete DOMAIN [KEY]", "removes a key, or the domain; also: remove, delete-all"),
    Form("import DOMAIN FILE", "sets the keys of a property list (-: standard input)"),
    Form("export DOMAIN FILE", "writes the domain as a binary list (-: XML on output)"),
    Form("domains", "names the domains, without the global one"),
    Form("find WORD", "shows keys whose name, text or domain contains the word"),
    Form("printHostIdentifier", "shows the identifier of this host in ByHost file names"),
    Form("help [--man]", "shows this text, or the manual page as troff"),
  ]

  private static let ours = [
    Form(
      "explain [--json] [--for USER] DOMAIN KEY",
      "shows every place that has the key; * marks what is read"),
    Form(
      "read --effective [--json] [--for USER] [DOMAIN]",
      "shows what counts, from where, whether it is forced"),
    Form("import-from dconf|gsettings [FILE]", "prints other preferences as a document for apply"),
    Form(
      "export --as dconf [DOMAIN...]", "prints domains of GSettings as `dconf load /` reads them"),
    Form(
      "export --effective --as FORM [--global] DOMAIN [FILE]",
      "writes what programs read as json, plist, env or ini"),
    Form("gsettings on|off", "whether programs that use GSettings keep preferences in the mount"),
    Form("describe DOMAIN [KEY]", "says what a domain's schema says of its keys"),
    Form("describe -k WORD", "names the keys whose schemas say something about the word"),
    Form("changed [DOMAIN]", "shows what is set and is not the default"),
    Form("lint [FILE...]", "complains about values that do not fit the schemas of their domains"),
    Form("schema swift|markdown|json DOMAIN", "prints typed keys, a page, or a JSON Schema"),
    Form("schema import FILE... [--into DIR]", "makes schemas of GSettings XML"),
    Form("complete verbs|options|domains|keys|values ...", "prints candidates for a shell"),
    Form("check [PATH...]", "complains about lists, profiles and documents that do not count"),
    Form("read --json|--plist ...", "shows values as JSON, or as XML (dates in seconds)"),
    Form("read --at TIME DOMAIN [KEY]", "shows values as they were then"),
    Form(
      "read --at|history|profiles|declared --for USER",
      "about that user, with the user's rights (root)"),
    Form("watch [DOMAIN [KEY]]", "shows each change of a value that programs read"),
    Form("history [DOMAIN [KEY]] [FILTER...]", "shows what was changed, when, and by whom"),
    Form("history forget DOMAIN [KEY]", "removes values from the history for good"),
    Form("undo NUMBER|FILTER... [HOW...]", "takes changes back, all or none of them"),
    Form("diff TIME TIME [DOMAIN [KEY]]", "shows what is different at the second moment"),
    Form("record --since TIME [FILTER...]", "prints what makes the changes again"),
    Form("record [--as FORM] [-- CMD...]", "the same, while CMD runs, or until Ctrl-C"),
    Form("apply [--dry-run] FILE", "sets all that {DOMAIN: {KEY: VALUE}} declares, or nothing"),
    Form(
      "apply --as NAME [HOW...] FILE...",
      "NAME declares exactly this; what it gave before goes back"),
    Form("undeclare [--dry-run] NAME", "takes back what the declaration gave"),
    Form(
      "declared [--drift] [--json]", "names the declarations; what was changed since, and by whom"),
    Form(
      "suites DOMAIN [add|remove NAME]", "shows or changes its kept suites, last searched first"),
    Form(
      "profiles [check [--effect [--for USER]]|show FILE]",
      "shows what configuration profiles set, or would set"
    ),
    Form("cloud [status]", "says whether this machine is connected to a cloud"),
    Form("cloud login USER [URL...]", "connects it, with the password from standard input"),
    Form("cloud logout", "disconnects it"),
    Form("cloud add|remove DOMAIN KEY...", "moves keys to the cloud, or back; KEY may have a *"),
    Form("cloud sync [SECONDS]", "returns when both sides have the same"),
    Form("cloud log [NUMBER]", "shows values that lost to those of other machines"),
    Form("cloud restore NUMBER", "sets the key to such a value again"),
    Form("write|rename|import|apply --force ...", "sets what the schema of the domain refuses"),
    Form("write|delete|... --sync ...", "returns when the list on the disk has the change"),
    Form("synchronize [DOMAIN]", "returns when the lists on the disk have all changes"),
    Form("read|write|delete --path ...", "KEY is a path into a value: Key:Sub:0"),
  ]

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

  private static let declarations = [
    Form("--merge", "dictionaries are declared member by member (RFC 7396), not as a whole"),
    Form("--over NAME", "takes precedence over declaration NAME, whose values return after it"),
    Form("--place PLACE", "managed, any-user, user or host; also for undeclare and declared"),
    Form("--force", "sets what a schema refuses"),
    Form("--dry-run", "only says what would be done; also for undeclare"),
  ]

  private static let filters = [
    Form(
      "--since, --until TIME", "a number, ISO 8601, a day (UTC), yesterday, now, -2h (s, m, h, d)"),
    Form("--by NAME", "changes of that program (its path or its name), or unit"),
    Form("--via WAY", "mount, command, library, list, profile, once, cloud, undo, declaration"),
    Form("--all", "also what programs keep for themselves, such as frames of windows"),
    Form("--place PLACE", "managed, managed-for/USER, cloud, host, user, any-user"),
    Form("--json", "history, diff: a line of JSON for each change"),
    Form("--as FORM", "record: commands, apply, ansible or profile"),
    Form("--dry-run", "undo: only says what would be done"),
    Form("--over", "undo: takes later changes of the same keys back, too"),
    Form("--skip", "undo: leaves keys alone that were changed later, or are forced"),
  ]

  private static let statuses = [
    Form("0", "done; apply: everything was as declared already"),
    Form("1", "not done; standard error says why; check, profiles check: something is wrong"),
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

  private static let description = """
    defaults reads and writes preferences: the property lists of NSUserDefaults and CFPreferences,
    which prefsfs(1) shows as files. Its verbs, messages and exit statuses are those of defaults on
    macOS. When it returns, every mount and every program of the user reads what it has written.

    It reads and writes the user's own lists. A key that is in the cloud it reads and writes there.
    If the list of this host has a key, it reads the key there, and writes it to that list and to
    the user's other list in one step, so that programs read what was written. -currentHost selects
    the list of this host alone, and a path selects the list with that path.

    Lists are rewritten within a second. defaults waits for that with --sync, with DEFAULTS_SYNC=1
    in the environment, and if the list was named by its path.

    A key that an administrator forces, in a list or in a configuration profile (*.mobileconfig),
    cannot be written. read, export and find show the user's own lists alone; explain shows every
    place that has a key, and which value programs read.

    export --effective writes the values that programs read of a domain, from all places: as JSON, as
    a property list, as variables for EnvironmentFile= of systemd and for a shell, or as an INI file.
    Comments name keys that such a file cannot hold. A domain that does not exist is an empty file.
    Keys that only the global domain has are added with --global.

    If a file system, such as the home's, does not answer a single call for 5 s, defaults ends with
    status 1, and names it.

    -host accepts only this host. prefsd, which owns the store, must be in PATH or beside
    defaults.

    Text is printed as UTF-8. With --apple-text it is escaped as on macOS.
    """
}
