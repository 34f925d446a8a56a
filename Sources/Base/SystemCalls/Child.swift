import CLinux
import Glibc

/// Starts other programs, and this program again. It uses posix_spawn(3), because fork(2) is not
/// safe in a process with threads.
///
/// In a set-uid program, a program that is given by its name is looked for in the system's
/// directories, not in PATH, and gets an environment that the user who started this one did not
/// make.
public enum Child {
  /// Runs a program, given by its path or by a name in PATH, to its end.
  /// - Returns: its exit status; 127 where a signal ended it.
  public static func run(_ program: String, _ arguments: [String]) throws(SystemError) -> Int32 {
    try wait(spawn(program, [program] + arguments))
  }

  /// How a program has ended.
  public struct Outcome: Sendable {
    /// Its exit status; 127 where a signal ended it.
    public let status: Int32
    /// The last line that it wrote to standard error; nil if it wrote none.
    public let lastError: String?
  }

  /// Runs a program to its end like `run`, but apart from this process: its standard input and
  /// output are /dev/null, every other descriptor is closed, and it has a session of its own.
  /// - Parameter milliseconds: after which the program is ended (ETIMEDOUT); nil if it may run for
  ///   ever.
  public static func runApart(
    _ program: String, _ arguments: [String], milliseconds: Int64? = nil
  ) throws(SystemError) -> Outcome {
    // A file in memory, and no pipe: nobody waits for what the program writes, nor for its end.
    let errors = try Descriptor.inMemory("prefsfs-errors")
    let child = try startApart(program, arguments, streams: [nil, nil, errors.number])
    let status = try finish(child, program, milliseconds)
    return Outcome(status: status, lastError: status == 0 ? nil : lastLine(of: errors))
  }

  /// The last line of the file's first 64 KiB, without the name of the program that has logged it.
  private static func lastLine(of file: borrowing Descriptor) -> String? {
    let text = String(decoding: beginning(of: file, 1 << 16), as: UTF8.self)
    guard let line = text.split(separator: "\n").last else { return nil }
    let parts = line.split(separator: ": ", maxSplits: 1)
    return parts.count == 2 && !parts[0].contains(" ") ? String(parts[1]) : String(line)
  }

  /// The first bytes of a file, that many at most.
  private static func beginning(of file: borrowing Descriptor, _ most: Int) -> ArraySlice<UInt8> {
    var bytes = [UInt8](repeating: 0, count: most)
    let count = pread(file.number, &bytes, most, 0)
    return bytes.prefix(max(count, 0))
  }

  /// Starts a program whose standard streams are these descriptors (nil means /dev/null), with no
  /// other descriptor, and with a session of its own unless `newSession` is false; does not wait
  /// for it.
  /// - Parameter variables: variables of its environment beside this process's, as `NAME=VALUE`.
  package static func startApart(
    _ program: String, _ arguments: [String], streams: [CInt?], variables: [String] = [],
    newSession: Bool = true
  ) throws(SystemError) -> pid_t {
    try spawn(program, [program] + arguments, extra: variables, newSession: newSession) { actions in
      for (place, number) in zip(CInt(0)..., streams) {
        if let number {
          posix_spawn_file_actions_adddup2(&actions, number, place)
        } else {
          posix_spawn_file_actions_addopen(&actions, place, "/dev/null", O_RDWR, 0)
        }
      }
      _ = prefsfs_spawn_close_from(&actions, 3)
    }
  }

  /// Returns a descriptor that can be read when a child has ended that `startApart` has started in a
  /// session of its own. Where there is none, the child is killed.
  package static func endDescriptor(of child: pid_t) throws(SystemError) -> Descriptor {
    let number = prefsfs_pidfd_open(child)
    if number >= 0 { return Descriptor(owning: number) }
    let error = SystemError("pidfd_open", "")
    kill(-child, SIGKILL)
    _ = wait(child)
    throw error
  }

  /// Waits for the end of a child, and ends it after that time (ETIMEDOUT); nil if it may run for
  /// ever.
  /// - Returns: its exit status; 127 where a signal ended it.
  private static func finish(
    _ child: pid_t, _ program: String, _ milliseconds: Int64?
  ) throws(SystemError) -> Int32 {
    let isLate = milliseconds.map { endLate(child, after: $0) } ?? false
    let status = wait(child)
    if isLate { throw SystemError("waitpid", program, .timedOut) }
    return status
  }

  /// Returns when the child has ended, or ends it after that time.
  /// - Returns: whether it was ended.
  private static func endLate(_ child: pid_t, after milliseconds: Int64) -> Bool {
    let process = prefsfs_pidfd_open(child)
    guard process >= 0 else { return false }
    defer { close(process) }
    var entry = pollfd(fd: process, events: Int16(POLLIN), revents: 0)
    let end = Instant.now.advanced(milliseconds: milliseconds)
    var count: CInt = -1
    repeat {
      count = poll(&entry, 1, CInt(clamping: end.milliseconds(after: .now)))
    } while count < 0 && errno == EINTR
    if count == 0 { kill(child, SIGKILL) }
    return count == 0
  }

  /// Starts this program again, with `pipe` as its descriptor 3, and does not wait for it. The
  /// child stays in this process's group: by the group automount(8) knows which processes may look
  /// at a mount point before the mount is there.
  public static func restart(_ arguments: [String], environment: String, pipe: CInt)
    throws(SystemError)
    -> pid_t
  {
    // By its path, so that ps(1) shows the program's name.
    let program = Files.realPath("/proc/self/exe") ?? "/proc/self/exe"
    return try spawn(program, arguments, extra: [environment]) { actions in
      posix_spawn_file_actions_adddup2(&actions, pipe, 3)
    }
  }

  /// Starts a program, which keeps the standard streams and has these descriptors as 3, 4 and so
  /// on, and no others; does not wait for it.
  /// - Parameters:
  ///   - arguments: the words of its command line, its name first.
  ///   - variables: variables of its environment beside this process's, as `NAME=VALUE`.
  public static func start(
    _ program: String, _ arguments: [String], variables: [String], descriptors: [CInt]
  ) throws(SystemError) -> pid_t {
    // First to numbers that none of them has, but not larger ones than necessary: there may be a low
    // limit of descriptors.
    let free = firstFree(descriptors)
    return try spawn(program, arguments, extra: variables) { actions in
      for (place, number) in zip(free..., descriptors) {
        posix_spawn_file_actions_adddup2(&actions, number, place)
      }
      for place in 0..<CInt(descriptors.count) {
        posix_spawn_file_actions_adddup2(&actions, free + place, 3 + place)
      }
      _ = prefsfs_spawn_close_from(&actions, 3 + CInt(descriptors.count))
    }
  }

  /// Replaces this process by a program with these descriptors as 3, 4 and so on, and the standard
  /// streams (execve(2)). The program starts with the signals blocked that are blocked now. If it
  /// cannot be started, this process ends.
  public static func replaceItself(
    by program: String, _ arguments: [String], descriptors: [CInt]
  ) -> Never {
    let free = firstFree(descriptors)
    let copies = descriptors.map { fcntl($0, F_DUPFD, free) }
    for (place, copy) in zip(CInt(3)..., copies) where dup2(copy, place) < 0 { _exit(1) }
    for copy in copies { close(copy) }
    execve(program, arguments.map { strdup($0) } + [nil], environ)
    _exit(1)
  }

  /// The smallest number from which on none of the descriptors, and no place for them, is.
  private static func firstFree(_ descriptors: [CInt]) -> CInt {
    max(3 + CInt(descriptors.count), (descriptors.max() ?? 0) + 1)
  }

  /// Runs a program like `runApart`, but in this process's session, so that Ctrl-C at a terminal ends
  /// both, and returns what it wrote to its standard output. Its standard error is /dev/null. Throws
  /// EFBIG where it wrote more than 1 MiB.
  /// - Parameter milliseconds: after which the program is ended (ETIMEDOUT).
  public static func output(
    _ program: String, _ arguments: [String], milliseconds: Int64
  ) throws(SystemError) -> [UInt8] {
    let written = try Descriptor.inMemory("prefsfs-output")
    let child = try startApart(
      program, arguments, streams: [nil, written.number, nil], newSession: false)
    _ = try finish(child, program, milliseconds)
    let bytes = beginning(of: written, mostOutput + 1)
    if bytes.count > mostOutput { throw SystemError("read", program, .fileTooLarge) }
    return Array(bytes)
  }

  private static let mostOutput = 1 << 20

  /// Runs a program like `runApart`, and again where somebody else's signal ended it, three times at
  /// most.
  /// - Returns: the outcome of the last run.
  public static func runApartAgain(
    _ program: String, _ arguments: [String], milliseconds: Int64
  ) throws(SystemError) -> Outcome {
    var outcome = try runApart(program, arguments, milliseconds: milliseconds)
    for _ in 1..<3 where outcome.status == killed {
      outcome = try runApart(program, arguments, milliseconds: milliseconds)
    }
    return outcome
  }

  /// The status that stands for a child which a signal ended.
  private static let killed: Int32 = 127

  /// Waits for the end of a child.
  /// - Returns: its exit status; 127 where a signal ended it.
  public static func wait(_ child: pid_t) -> Int32 { waitForEnd(of: child).status ?? killed }

  /// Waits for the end of a child.
  /// - Returns: its exit status, or nil and the signal that ended it.
  package static func waitForEnd(of child: pid_t) -> (status: Int32?, signal: Int32) {
    var status: Int32 = 0
    while waitpid(child, &status, 0) < 0, errno == EINTR {}
    let signal = status & 0x7F
    return (signal == 0 ? status >> 8 & 0xFF : nil, signal)
  }

  private static let systemPath = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"]

  /// The path of a program in the system's directories. One that is a path is returned as it is; so
  /// is one that is in none of them, as a path that leads nowhere.
  static func inSystemPath(_ program: String) -> String {
    if program.contains("/") { return program }
    let paths = systemPath.map { "\($0)/\(program)" }
    return paths.first { access($0, X_OK) == 0 } ?? paths[1]
  }

  private static func spawn(
    _ program: String, _ arguments: [String], extra: [String] = [], newSession: Bool = false,
    _ prepare: (inout posix_spawn_file_actions_t) -> Void = { _ in }
  ) throws(SystemError) -> pid_t {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    prepare(&actions)
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    // The child starts with no signal blocked or ignored, whatever this process blocks or ignores.
    var signals = sigset_t()
    sigfillset(&signals)
    posix_spawnattr_setsigdefault(&attributes, &signals)
    sigemptyset(&signals)
    posix_spawnattr_setsigmask(&attributes, &signals)
    // POSIX_SPAWN_SETSIGDEF, SETSIGMASK, SETSID
    posix_spawnattr_setflags(&attributes, 0x04 | 0x08 | (newSession ? 0x80 : 0))
    var words = arguments.map { strdup($0) } + [nil]
    let isSecure = prefsfs_is_secure() != 0
    let path = isSecure ? ["PATH=\(systemPath.joined(separator: ":"))"] : []
    var variables: [UnsafeMutablePointer<CChar>?] = (extra + path).map { strdup($0) }
    defer { for pointer in words + variables { free(pointer) } }
    var environment = variables
    var next = environ
    // A child of a process in the background does not report to that one's caller.
    let replaced = extra.map { $0.prefix { $0 != "=" } + "=" } + ["\(Background.variable)="]
    while !isSecure, let variable = next.pointee {
      let isReplaced = replaced.contains { strncmp(variable, String($0), $0.utf8.count) == 0 }
      if !isReplaced { environment.append(variable) }
      next += 1
    }
    environment.append(nil)
    var child = pid_t()
    let file = isSecure ? inSystemPath(program) : program
    let status = posix_spawnp(&child, file, &actions, &attributes, &words, &environment)
    variables = Array(variables)
    if status != 0 { throw SystemError("posix_spawn", program, Errno(rawValue: status)) }
    return child
  }
}
