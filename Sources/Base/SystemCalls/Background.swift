import CLinux
import Glibc

/// Puts a program into the background: it starts itself again as a child, and returns when the
/// child is ready.
///
/// The child gets the writing end of a pipe as descriptor 3 and writes one byte when it is ready.
/// Errors before that go to the caller's standard error, and the child's exit status is passed on.
public enum Background {
  static let variable = "PREFSFS_READY_DESCRIPTOR"

  /// Whether this process is the child that goes into the background.
  public static var isChild: Bool { getenv(variable) != nil }

  /// Closes every descriptor that the caller had open, except the standard streams and the pipe.
  /// The child calls it first: otherwise a program that waits for the end of one of the caller's
  /// pipes would wait for the end of the child.
  public static func closeInherited() { prefsfs_close_range(4, .max) }

  /// Starts the child and waits until it is ready.
  /// - Returns: 0, or the exit status of a child that ended before it was ready.
  public static func start() throws(SystemError) -> Int32 {
    var ends: [CInt] = [0, 0]
    if pipe(&ends) != 0 { throw SystemError("pipe", "") }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    let reading = Descriptor(owning: ends[0])
    let child: pid_t
    do {
      let writing = Descriptor(owning: ends[1])
      child = try Child.restart(
        CommandLine.arguments, environment: "\(variable)=3", pipe: writing.number)
    }
    var byte: UInt8 = 0
    while true {
      let count = read(reading.number, &byte, 1)
      if count == 1 { return 0 }
      if count == 0 || errno != EINTR { break }
    }
    return Child.wait(child)
  }

  /// Leaves the caller's terminal, working directory and process group; the log goes to the
  /// system's log from then on.
  public static func detach(_ log: Log) {
    _ = setsid()
    log.moveToSystemLog()
    _ = chdir("/")
    let null = open("/dev/null", O_RDWR)
    for standard in [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO] { dup2(null, standard) }
    if null > STDERR_FILENO { close(null) }
  }

  /// Tells the parent that the child is ready.
  public static func ready() {
    unsetenv(variable)
    var byte: UInt8 = 1
    _ = write(3, &byte, 1)
    close(3)
  }
}
