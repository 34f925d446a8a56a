/// The descriptions of the manual pages.
enum ManualText {
  static let defaults = """
    defaults reads and writes preferences: the property lists of NSUserDefaults and CFPreferences,
    which prefsfs(1) shows as files. Its verbs, messages and exit statuses are those of defaults on
    macOS. When it returns, every mount and every program of the user reads what it has written.

    prefs(1) is the same program. Its page has the verbs beyond those of macOS, which work here too:
    what programs read and why, the history and undo, declarations, schemas, profiles, the cloud.

    It reads and writes the user's own lists. A key that is in the cloud it reads and writes there.
    If the list of this host has a key, it reads the key there, and writes it to that list and to
    the user's other list in one step, so that programs read what was written. -currentHost selects
    the list of this host alone, and a path selects the list with that path. -host accepts only this
    host.

    Lists are rewritten within a second. defaults waits for that with --sync, with DEFAULTS_SYNC=1
    in the environment, and if the list was named by its path.

    A key that an administrator forces cannot be written. read, export and find show the user's own
    lists alone; prefs explain shows every place that has a key, and which value programs read.

    Text is printed as UTF-8. With --apple-text it is escaped as on macOS.
    """

  static let prefs = """
    prefs has all verbs of the preference system of prefsfs(1): those of defaults(1), and those that
    macOS does not have. It is the same program as defaults, with another name, and needs no mount.
    When it returns, every mount and every program of the user reads what it has written.

    prefs VERB --help explains a verb, with an example. Messages begin with the name of the program.

    Verbs that change values write the user's own lists, as defaults(1) does. A key that an
    administrator forces, in a list or in a configuration profile (*.mobileconfig), cannot be
    written. explain shows every place that has a key, and which value programs read.

    Every change is in the history, whoever made it: the mount, this command, a program, a profile,
    or an editor of the list. undo takes changes back, all or none of them.

    If a file system, such as the home's, does not answer a single call for 5 s, prefs ends with
    status 1, and names it. prefsd, which owns the store, must be in PATH or beside prefs.
    """
}
