import CLinux
import Glibc

/// Going into the background: the program starts itself anew and returns when that one is ready.
///
/// The child gets the writing end of a pipe as descriptor 3 and says "ready" with one byte; what
/// goes wrong before that it says on the terminal's standard error, and its exit status is passed
/// on.
public enum Background {
  private static let variable = "PREFSFS_READY_DESCRIPTOR"

  /// Whether this process is the one in the background.
  public static var isChild: Bool { getenv(variable) != nil }

  /// In the child, first of all: lets go of whatever the caller had open, so that nobody who
  /// waits for the end of a pipe waits for the program's.
  public static func closeInherited() { _ = prefsfs_close_from(4) }

  /// Starts the child and waits until it is ready; 0, or the exit status of one that never was.
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

  /// In the child: it is ready. Lets go of terminal, directory and the caller's process group.
  public static func ready(_ log: Log) {
    unsetenv(variable)
    _ = setsid()
    log.moveToSystemLog()
    _ = chdir("/")
    let null = open("/dev/null", O_RDWR)
    for standard in [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO] { dup2(null, standard) }
    if null > STDERR_FILENO { close(null) }
    var byte: UInt8 = 1
    _ = write(3, &byte, 1)
    close(3)
  }
}
