import CLinux
import Glibc

/// Programs that are started from here. fork(2) is not for a process with threads: posix_spawn is.
public enum Child {
  /// Runs a program of PATH, or of a path, to its end; its status, 127 when it was killed.
  public static func run(_ program: String, _ arguments: [String]) throws(SystemError) -> Int32 {
    let child = try spawn(
      program, [program] + arguments, extra: [], actions: nil, newSession: false)
    return wait(child)
  }

  /// The same, with nothing of this process's: no standard input or output, no descriptors.
  public static func runApart(
    _ program: String, _ arguments: [String]
  ) throws(SystemError) -> Int32 {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    for standard in [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO] {
      posix_spawn_file_actions_addopen(&actions, standard, "/dev/null", O_RDWR, 0)
    }
    _ = prefsfs_spawn_close_from(&actions, 3)
    return wait(
      try spawn(
        program, [program] + arguments, extra: [], actions: &actions, newSession: true))
  }

  /// Starts this program again, with the pipe's end as descriptor 3. It stays in this process's group, by
  /// which automount(8) knows those that may look at a mount point before there is a mount.
  public static func restart(_ arguments: [String], environment: String, pipe: CInt)
    throws(SystemError)
    -> pid_t
  {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, pipe, 3)
    // By its path, so that ps(1) shows the program's name.
    let program = Files.realPath("/proc/self/exe") ?? "/proc/self/exe"
    return try spawn(
      program, arguments, extra: [environment], actions: &actions, newSession: false)
  }

  /// Starts this program once more, beside this process, with the pipe's end as descriptor 3 and nothing on
  /// its standard input and output. It may live longer than this process.
  public static func runBeside(_ arguments: [String], pipe: CInt) throws(SystemError) {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, pipe, 3)
    for standard in [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO] {
      posix_spawn_file_actions_addopen(&actions, standard, "/dev/null", O_RDWR, 0)
    }
    let program = Files.realPath("/proc/self/exe") ?? "/proc/self/exe"
    _ = try spawn(
      program, [CommandLine.arguments[0]] + arguments, extra: [], actions: &actions,
      newSession: true)
  }

  /// Starts a program with nothing of this process's, waits for its end, and does so again where a signal
  /// has ended it, at most three times.
  public static func runApartAgain(
    _ program: String, _ arguments: [String]
  ) throws(SystemError) -> Int32 {
    var status = killed
    for _ in 0..<3 where status == killed { status = try runApart(program, arguments) }
    return status
  }

  /// The status of a child that a signal ended.
  private static let killed: Int32 = 127

  /// Waits for the child's end; its status, 127 when it was killed.
  public static func wait(_ child: pid_t) -> Int32 {
    var status: Int32 = 0
    while waitpid(child, &status, 0) < 0, errno == EINTR {}
    return status & 0x7F == 0 ? status >> 8 & 0xFF : killed
  }

  private static func spawn(
    _ program: String, _ arguments: [String], extra: [String],
    actions: UnsafePointer<posix_spawn_file_actions_t>?, newSession: Bool
  ) throws(SystemError) -> pid_t {
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    // The child begins without the signals that are blocked or ignored here.
    var signals = sigset_t()
    sigfillset(&signals)
    posix_spawnattr_setsigdefault(&attributes, &signals)
    sigemptyset(&signals)
    posix_spawnattr_setsigmask(&attributes, &signals)
    // POSIX_SPAWN_SETSIGDEF, SETSIGMASK, SETSID
    posix_spawnattr_setflags(&attributes, 0x04 | 0x08 | (newSession ? 0x80 : 0))
    var words = arguments.map { strdup($0) } + [nil]
    var variables: [UnsafeMutablePointer<CChar>?] = extra.map { strdup($0) }
    defer { for pointer in words + variables { free(pointer) } }
    var environment = variables
    var next = environ
    while let variable = next.pointee {
      environment.append(variable)
      next += 1
    }
    environment.append(nil)
    var child = pid_t()
    let status = posix_spawnp(&child, program, actions, &attributes, &words, &environment)
    variables = Array(variables)
    if status != 0 { throw SystemError("posix_spawn", program, Errno(rawValue: status)) }
    return child
  }
}
