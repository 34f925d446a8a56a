import FUSEDriver
import Glibc
import PreferenceTree
import PropertyList

/// The parsed command line of `prefsfs`.
struct Options {
  var source: String?
  var mountPoint = ""
  var isForeground = false
  /// Whether mount(8) has all done but the mount itself (`mount -f`).
  var isFake = false
  var isDebugging = false
  /// What is printed instead of mounting; nil if the command line asks for a mount.
  var text: String?
  /// Whether running mounts are asked to go on with the installed program: the one at `mountPoint`,
  /// or all.
  var upgrades = false
  /// Whether the state of the mount at `mountPoint` is printed.
  var showsStatus = false
  /// Whether the mounts of the machine are named, and whether as JSON.
  var showsList = false
  var isJSON = false
  var isReadOnly = false
  /// Whether the mount point may have files, or be a mount of this program (`-o nonempty`).
  var covers = false
  /// Whether the machine's places are mounted in place of the user's preferences.
  var isSystem = false
  var store: String?
  var writeback: Double?
  /// The options that the tree needs.
  var tree = TreeOptions()
  /// The user, group and permission mask that files are shown with.
  var ownership = FileOwnership()
  /// Options that are passed on to libfuse and the kernel.
  var passedOn: [String] = []
  /// The words after `--`.
  var arguments: [String] = []

  /// What is wrong with a command line, as a sentence for people.
  struct Mistake: Error, Equatable, CustomStringConvertible {
    let description: String
  }

  /// Options of FUSE and of the kernel that are passed on.
  private static let known: Set<String> = [
    "allow_other", "allow_root", "fsname", "dev", "nodev",
    "suid", "nosuid", "exec", "noexec", "sync", "async", "atime", "noatime", "dirsync",
  ]

  /// Options of fstab and mount(8) that mean nothing to this program, and `auto_unmount`: the guard
  /// of the mount does that, while libfuse would unmount when the first driver ends.
  private static let ignored: Set<String> = [
    "rw", "defaults", "default_permissions", "_netdev", "auto", "noauto", "user", "users", "nouser",
    "nofail", "auto_unmount", "owner", "group", "relatime", "norelatime", "strictatime",
    "nostrictatime", "diratime", "nodiratime", "lazytime", "nolazytime", "iversion", "noiversion",
    "silent", "loud", "mand", "nomand", "nosymfollow", "symfollow", "subtype",
  ]

  /// Options of other FUSE programs that change nothing here: the driver always invalidates what
  /// the kernel caches, and a mount never hides what it shows.
  private static let withoutEffect: Set<String> = [
    "attr_timeout", "entry_timeout", "negative_timeout", "ac_attr_timeout", "kernel_cache",
    "auto_cache", "noauto_cache", "direct_io", "hard_remove", "use_ino", "readdir_ino",
    "big_writes", "large_read", "intr", "remember", "noforget", "max_write", "max_readahead",
    "max_background", "congestion_threshold", "async_read", "sync_read", "atomic_o_trunc",
    "no_remote_lock", "no_remote_flock", "no_remote_posix_lock", "splice_write", "splice_move",
    "splice_read", "no_splice_write", "no_splice_move", "no_splice_read", "blksize", "reconnect",
    "clone_fd", "max_idle_threads", "max_threads", "max_read",
  ]

  /// Words of mount(8) that mean nothing here: do not write mtab, verbose, read and write.
  private static let helperWords: Set<String> = ["-n", "-v", "-w"]
  /// Words of mount(8) that another word follows: the type, and the namespace.
  private static let helperPairs: Set<String> = ["-t", "-N"]

  /// The given options that have no effect, to be logged.
  private(set) var unused: [String] = []

  /// Parses a command line.
  /// - Parameter isMountHelper: whether mount(8) has called, as mount.prefsfs; it then passes words
  ///   of its own.
  init(_ words: [String], isMountHelper: Bool = false) throws(Mistake) {
    var rest = words[...]
    var positional: [String] = []
    while let word = rest.popFirst() {
      switch word {
      case "--":
        arguments = Array(rest)
        rest = []
      case "-h", "--help": text = Help.page.help
      case "-V", "--version": text = Help.version + "\n"
      case "--man": text = Help.page.troff
      case _ where isMountHelper && Self.helperWords.contains(word): break
      case "-r" where isMountHelper: isReadOnly = true
      case _ where isMountHelper && Self.helperPairs.contains(word): _ = rest.popFirst()
      case "--upgrade": upgrades = true
      case "--status": showsStatus = true
      case "--list": showsList = true
      case "--json": isJSON = true
      case "-f" where isMountHelper: isFake = true
      case "-f": isForeground = true
      case "-d": (isForeground, isDebugging) = (true, true)
      case "-s": break
      case "--system": isSystem = true
      case "-o":
        guard let list = rest.popFirst() else { throw Mistake(description: "-o needs an option") }
        try parse(list: list)
      case _ where word.hasPrefix("-o"): try parse(list: String(word.dropFirst(2)))
      case _ where word.hasPrefix("-") && word != "-":
        throw Mistake(description: "unknown option \(word)")
      default: positional.append(word)
      }
    }
    if text != nil { return }
    try check(positional)
    if upgrades || showsList, positional.isEmpty { return }
    try parse(positional)
  }

  /// Throws where a word would be passed over.
  private func check(_ positional: [String]) throws(Mistake) {
    let most = showsList ? 0 : upgrades || showsStatus ? 1 : 2
    if positional.count > most, most < 2 {
      let word = showsList ? "--list" : upgrades ? "--upgrade" : "--status"
      throw Mistake(
        description: most == 0
          ? "\(word) takes no mount point" : "\(word) takes one mount point; call it for each")
    }
    if isJSON, !showsList { throw Mistake(description: "--json goes with --list alone") }
    let hasSource = positional.count == 2 && !Self.noSource.contains(positional[0])
    if isSystem, hasSource || store != nil {
      throw Mistake(description: "--system takes no SOURCE: it mounts this machine's places")
    }
  }

  /// The sources that stand for none, because fstab needs a word there.
  private static let noSource: Set<String> = ["none", "-", "prefsfs"]

  /// Reads `[SOURCE] MOUNTPOINT`.
  private mutating func parse(_ positional: [String]) throws(Mistake) {
    switch positional.count {
    case 1: mountPoint = positional[0]
    case 2:
      mountPoint = positional[1]
      if !Self.noSource.contains(positional[0]) { source = positional[0] }
    case 0: throw Mistake(description: "no mount point was given")
    default:
      throw Mistake(description: "expected [SOURCE] MOUNTPOINT, not \(positional.count) paths")
    }
  }

  private mutating func parse(list: String) throws(Mistake) {
    for option in list.split(separator: ",") { try parse(option: String(option)) }
  }

  private mutating func parse(option: String) throws(Mistake) {
    let parts = option.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    let name = String(parts[0])
    let value = parts.count > 1 ? String(parts[1]) : nil
    switch name {
    case "ro": isReadOnly = true
    case "nonempty": covers = true
    case "debug": (isForeground, isDebugging) = (true, true)
    case "store": store = try text(value, name)
    case "format":
      tree.style = try choice(value, name, ValueText.Style.allCases.map(\.rawValue)) {
        ValueText.Style(rawValue: $0)
      }
    case "new":
      tree.createsStrings = try choice(value, name, ["infer", "string"]) { $0 == "string" }
    case "list": tree.listsInherited = try choice(value, name, ["own", "all"]) { $0 == "all" }
    case "schemas": tree.judges = try choice(value, name, ["on", "off"]) { $0 == "on" }
    case "writeback":
      writeback = try number(value, name, "seconds, 0 to 3600") {
        Double($0).flatMap { (0...3600).contains($0) ? $0 : nil }
      }
    case "uid": ownership.user = try number(value, name, "a number") { uid_t($0) }
    case "gid": ownership.group = try number(value, name, "a number") { gid_t($0) }
    case "umask":
      ownership.mask = try number(value, name, "an octal number") { mode_t($0, radix: 8) }
    case _ where Self.withoutEffect.contains(name): unused.append(name)
    case _ where Self.known.contains(name): passedOn.append(option)
    case _ where Self.ignored.contains(name) || name.hasPrefix("x-"): break
    default: throw Mistake(description: "unknown option -o \(name)")
    }
  }

  private func text(_ value: String?, _ name: String) throws(Mistake) -> String {
    guard let value, !value.isEmpty else { throw Mistake(description: "-o \(name)= needs a value") }
    return value
  }

  private func number<Number>(
    _ value: String?, _ name: String, _ form: String, _ parse: (String) -> Number?
  ) throws(Mistake) -> Number {
    guard let number = parse(try text(value, name)) else {
      throw Mistake(description: "-o \(name)= takes \(form)")
    }
    return number
  }

  private func choice<Choice>(
    _ value: String?, _ name: String, _ words: [String], _ make: (String) -> Choice?
  ) throws(Mistake) -> Choice {
    let word = try text(value, name)
    guard words.contains(word), let choice = make(word) else {
      throw Mistake(description: "-o \(name)= takes \(words.joined(separator: ", "))")
    }
    return choice
  }
}
