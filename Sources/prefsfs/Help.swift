/// What `-h` and `-V` print.
enum Help {
  static let version = "prefsfs 0.1"

  static var text: String {
    """
    usage: prefsfs [SOURCE] MOUNTPOINT [-o OPTION[,OPTION...]] [-f] [-d] [-- -Key value ...]

    Mounts the preferences of the user (or of the directory SOURCE): a directory a domain, a file
    a key. Unmount with: fusermount3 -u MOUNTPOINT

      -f                 stay in the foreground, log to standard error
      -d                 as -f, with every request printed
      -h, -V             this help, the version
      -- -Key value ...  the argument domain: values that stand before all but managed ones

      -o ro              refuse every change
      -o store=DIR       the lists in DIR in place of $XDG_CONFIG_HOME (~/.config)
      -o format=FORMAT   arrays and dictionaries as: auto (JSON, else XML), xml, json
      -o new=infer       the type of a new key follows from its text; new=string: always a string
      -o list=own        listings show a domain's own keys; list=all: those it inherits too
      -o writeback=SECS  rewrite a changed list after so many seconds (1)
      -o uid=,gid=,umask=,allow_other and the other options of FUSE

    Exit status:
    \(ExitStatus.allCases.map { "  \($0.rawValue)  \($0.meaning)" }.joined(separator: "\n"))

    """
  }
}
