/// The exit statuses of `prefsfs`. Scripts rely on them, so they do not change.
enum ExitStatus: Int32, CaseIterable {
  /// Mounted (or, with `-f`, mounted and ended cleanly), or help was asked for.
  case success = 0
  /// The mount failed for another reason, such as a system call or libfuse.
  case failure = 1
  /// The command line is wrong: an unknown option, a missing mount point.
  case usage = 2
  /// Another process owns the store and does not answer, e.g. because it is stopped.
  case storeInUse = 3
  /// The store, or the directory of its journal, cannot be used.
  case storeUnusable = 4
  /// The mount point cannot be mounted on, or SOURCE is not a directory.
  case mountPointUnusable = 5
  /// `--status`: no prefsfs is mounted there.
  case notMounted = 6
  /// `--status`: the mount's processes have ended.
  case mountDead = 7
  /// `--status`: the mount has not answered for 2 s, e.g. because its driver is stopped.
  case mountSilent = 8
  /// `--status`: the mount is another user's.
  case mountForbidden = 9

  /// What the status means, for help and manual page.
  var meaning: String {
    switch self {
    case .success: "mounted, or ended cleanly with -f"
    case .failure: "the mount failed"
    case .usage: "the command line is wrong"
    case .storeInUse: "another process owns the store and does not answer"
    case .storeUnusable: "the store or its journal cannot be used"
    case .mountPointUnusable: "MOUNTPOINT or SOURCE is not a directory that can be used"
    case .notMounted: "--status: no prefsfs is mounted there"
    case .mountDead: "--status: the processes of the mount have ended"
    case .mountSilent: "--status: the mount has not answered for 2 s; is it stopped?"
    case .mountForbidden: "--status: the mount is another user's"
    }
  }
}
