import ManualPage

/// What `-h` and `-V` print, and prefsfs(1) says.
enum Help {
  private typealias Form = ManualPage.Form

  static let version = "prefsfs 0.1"

  static let page = ManualPage(
    "prefsfs", 1,
    "mount the preferences of the user, or of the directory SOURCE: a directory a domain, a file a key",
    synopsis: "prefsfs [SOURCE] MOUNTPOINT [-o OPTION[,OPTION...]] [-f] [-d] [-- -Key value ...]",
    description: description,
    sections: [
      ManualPage.Section("Words", words), ManualPage.Section("Options", options),
      ManualPage.Section(
        "Exit status", ExitStatus.allCases.map { Form("\($0.rawValue)", $0.meaning) }),
    ],
    files: files, related: ["defaults(1)", "fusermount3(1)", "getfattr(1)"])

  private static let words = [
    Form("-f", "stay in the foreground, log to standard error"),
    Form("-d", "as -f, with every request printed"),
    Form("-h, -V, --man", "this help, the version, the manual page as troff"),
    Form("-- -Key value ...", "the argument domain: values before all but managed ones"),
  ]

  private static let options = [
    Form("-o ro", "refuse every change"),
    Form("-o store=DIR", "the lists in DIR in place of $XDG_CONFIG_HOME (~/.config)"),
    Form("-o format=FORMAT", "arrays and dictionaries as: auto (JSON, else XML), xml, json"),
    Form("-o new=infer", "a new key's type follows from its text; new=string: a string"),
    Form("-o list=own", "listings show a domain's own keys; list=all: inherited too"),
    Form("-o writeback=SECS", "rewrite a changed list after so many seconds (1)"),
    Form("-o uid=,gid=,umask=", "and allow_other (see fuse.conf), and others of FUSE"),
  ]

  private static let files = [
    Form("~/.config/DOMAIN.plist", "the user's lists, or in $XDG_CONFIG_HOME"),
    Form("~/.config/ByHost/DOMAIN.HOST.plist", "the user's lists for this host"),
    Form("/etc/preferences", "the machine's lists, and below managed those that are forced"),
    Form("~/.local/state/prefsfs", "journal and lock, or in $XDG_STATE_HOME"),
  ]

  private static let description = """
    cat reads a preference through the search list: what an administrator forces, arguments of the mount, this
    host, the user, the global domain, the machine. echo sets it in the user's list, which is rewritten, in one
    step, within a second; what was written survives kill -9 of every process at once.

    prefsfs returns when the mount is ready, and goes on in the background. fusermount3 -u MOUNTPOINT ends it
    with everything saved. After a crash mounting again clears the mount point and brings everything back.

    Text that is no value of a key's type is refused by write(2): Invalid argument. To change the type, set the
    extended attribute user.prefs.type.
    """
}
