import CLinux
import Glibc

/// Settings that a process inherits from the one that started it, and should not keep when it
/// serves others.
public enum Inheritance {
  /// Raises the limits of resources to what the system allows, and resets the priority, the classes
  /// of scheduling and of I/O, the processors, the badness (oom_score_adj) and the file mode mask.
  /// They belonged to the program that happened to start this one. What only root could raise stays.
  public static func reset() {
    for resource in [RLIMIT_FSIZE, RLIMIT_CPU, RLIMIT_DATA, RLIMIT_AS, RLIMIT_NOFILE] {
      raise(resource)
    }
    prefsfs_reset_scheduling()
    _ = setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, 0)
    do {
      try Descriptor(opening: "/proc/self/oom_score_adj", O_WRONLY).write([UInt8(ascii: "0")])
    } catch {}
    umask(0o022)
  }

  private static func raise(_ kind: __rlimit_resource) {
    let resource = __rlimit_resource_t(kind.rawValue)
    var limit = rlimit()
    guard getrlimit(resource, &limit) == 0 else { return }
    limit.rlim_cur = limit.rlim_max
    _ = setrlimit(resource, &limit)
  }

  /// Opens /dev/null in the place of each standard stream that is closed. Otherwise the next file
  /// or socket that the program opens would get that number, and what the program prints. Reading
  /// or writing such a stream still fails with EBADF. Call it first of all. Cost: three fcntl(2).
  public static func occupyStandardStreams() {
    for number: CInt in 0...2 where fcntl(number, F_GETFD) < 0 {
      // It gets the lowest free number, which is this one. It is opened for the wrong direction, so
      // that using it fails.
      _ = open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY)
    }
  }

  /// Ignores SIGPIPE and SIGXFSZ. A write to a pipe or socket without a reader, or beyond the
  /// largest file size, then fails with an error and does not end the process.
  public static func ignoreWriteSignals() {
    signal(SIGPIPE, SIG_IGN)
    signal(SIGXFSZ, SIG_IGN)
  }
}
