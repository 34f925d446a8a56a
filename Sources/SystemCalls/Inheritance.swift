import Glibc

/// What a process has from the one that started it, and should not have when it serves others.
public enum Inheritance {
  /// Gives up what the first caller of a program in the background happened to have: limits below what the
  /// system allows, a lower priority, a file mode mask. What only root could give back stays.
  public static func reset() {
    for resource in [RLIMIT_FSIZE, RLIMIT_CPU, RLIMIT_DATA, RLIMIT_AS, RLIMIT_NOFILE] {
      raise(resource)
    }
    _ = setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, 0)
    umask(0o022)
  }

  private static func raise(_ kind: __rlimit_resource) {
    let resource = __rlimit_resource_t(kind.rawValue)
    var limit = rlimit()
    guard getrlimit(resource, &limit) == 0 else { return }
    limit.rlim_cur = limit.rlim_max
    _ = setrlimit(resource, &limit)
  }

  /// A write to a pipe or socket that nobody reads, and one beyond the largest file, is an error to be
  /// reported, and no signal that ends the process.
  public static func ignoreWriteSignals() {
    signal(SIGPIPE, SIG_IGN)
    signal(SIGXFSZ, SIG_IGN)
  }
}
