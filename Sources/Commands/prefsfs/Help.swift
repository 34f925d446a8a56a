import ManualPage

/// The text of `-h`, of `-V`, and of the manual page prefsfs(1).
enum Help {
  private typealias Form = ManualPage.Form

  static let version = ManualPage.release

  static let page = ManualPage(
    "prefsfs",
    "mount the preferences of the user, or of SOURCE: each domain is a directory, each key a file",
    synopsis: "prefsfs [SOURCE | --system] MOUNTPOINT [-o OPTION[,OPTION...]] [-f] [-d] "
      + "[-- -Key value ...]",
    description: description,
    sections: [
      ManualPage.Section("Words", words), ManualPage.Section("Options", options),
      ManualPage.Section(
        "Exit status", ExitStatus.allCases.map { Form("\($0.rawValue)", $0.meaning) }),
    ],
    files: files,
    related: ["defaults(1)", "prefs(1)", "fusermount3(1)", "getfattr(1)", "prefsd(8)"])

  private static let words = [
    Form("-f", "stay in the foreground, log to standard error"),
    Form("-d", "like -f, and print every request"),
    Form(
      "--system", "mount the machine's places alone: managed, managed-for/USER, any-user (root)"),
    Form("--status MOUNTPOINT", "print the state of a mount as JSON, or say why not, within 2 s"),
    Form("--list [--json]", "name the machine's mounts, their users, drivers and owners"),
    Form(
      "--upgrade [MOUNTPOINT]",
      "have the mount, or all mounts, and prefsd go on with the programs that are installed now"),
    Form("-h, -V, --man", "this help, the version, the manual page as troff"),
    Form("-- -Key value ...", "the argument domain: only managed values precede it"),
  ]

  private static let options = [
    Form("-o ro", "refuse every change"),
    Form("-o store=DIR", "use the lists in DIR, not in $XDG_CONFIG_HOME (~/.config)"),
    Form("-o format=FORMAT", "arrays and dictionaries: auto (JSON, else XML), xml, json"),
    Form("-o new=infer", "take a new key's type from its text; new=string: always string"),
    Form("-o list=own", "list a domain's own keys; list=all: inherited keys too"),
    Form("-o schemas=on", "schemas refuse values that people write; schemas=off: they do not"),
    Form("-o writeback=SECS", "seconds from a change to the rewriting of its list (1)"),
    Form("-o nonempty", "mount over files, or another prefsfs, without a word"),
    Form("-o uid=,gid=,umask=", "as for other FUSE mounts, and allow_other (see fuse.conf)"),
  ]

  private static let files = [
    Form("~/.config/DOMAIN.plist", "the user's lists; in $XDG_CONFIG_HOME if that is set"),
    Form("~/.config/ByHost/DOMAIN.HOST.plist", "the user's lists for this host"),
    Form("/etc/preferences", "the machine's lists; lists and profiles in managed force keys"),
    Form("~/.local/state/prefsfs", "journal, lock, keys of the cloud; or in $XDG_STATE_HOME"),
  ]

  private static let description = """
    cat reads a preference through the search list: what an administrator forces, arguments of the
    mount, the cloud, this host, the user, suites, the global domain, the machine, languages. echo
    sets it in the user's list, or in the cloud if the key is there. The list is rewritten, in one
    step, within a second, but what was written survives kill -9 of every process at once.

    The directory .prefs at the root is not listed. In it, places shows and changes single places of
    the search list, domains whole domains as documents, and suites the suites of a domain; search,
    explain and status.json are reports. With --system the mount shows the machine's places alone.

    prefsfs returns when the mount is ready, and goes on in the background. fusermount3 -u
    MOUNTPOINT ends it with everything saved. After a crash, mounting again clears the mount point
    and brings everything back.

    prefsd(8) owns the lists; the first mount or program starts it. If one serves the store already,
    -o writeback= is ignored, and the log says so. While prefsd is stopped (SIGSTOP), reads of what
    the mount knows go on, and a write fails after 5 s (Connection timed out) and is not made later.
    A mount whose hard limits (ulimit -v, -f) leave no room for a second driver says so in the log,
    and ends if its driver does.

    write(2) refuses text that is not a value of the key's type (Invalid argument). To change the
    type, set the extended attribute user.prefs.type.
    """
}
