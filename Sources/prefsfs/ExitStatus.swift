/// The exit statuses of `prefsfs`: a promise to scripts.
enum ExitStatus: Int32, CaseIterable {
  /// Mounted (or, with `-f`, mounted and ended cleanly), or help was asked for.
  case success = 0
  /// The mount failed for a reason of the system.
  case failure = 1
  /// The command line is wrong: an unknown option, a missing mount point.
  case usage = 2
  /// Another process owns the store.
  case storeInUse = 3
  /// The store, or the directory of its journal, cannot be used.
  case storeUnusable = 4
  /// The mount point is no directory that can be mounted on, or SOURCE is no directory.
  case mountPointUnusable = 5

  var meaning: String {
    switch self {
    case .success: "mounted, or ended cleanly with -f"
    case .failure: "the mount failed"
    case .usage: "the command line is wrong"
    case .storeInUse: "another process owns the store"
    case .storeUnusable: "the store or its journal cannot be used"
    case .mountPointUnusable: "the mount point, or SOURCE, is no directory that can be used"
    }
  }
}
