import Glibc
import Synchronization

/// Where lines for people go: standard error in the foreground, the system's log in the background.
public final class Log: Sendable {
  private let usesSystemLog = Mutex(false)
  private let program: StaticString

  /// The log of the program of that name.
  public init(_ program: StaticString) { self.program = program }

  /// From now on to the system's log.
  public func moveToSystemLog() {
    program.withUTF8Buffer { name in
      // syslog(3) keeps the pointer: a literal's bytes stay.
      name.withMemoryRebound(to: CChar.self) { openlog($0.baseAddress, LOG_PID, LOG_USER) }
    }
    usesSystemLog.withLock { $0 = true }
  }

  /// One line. Any thread.
  public func callAsFunction(_ line: String) {
    let isSystem = usesSystemLog.withLock { $0 }
    if isSystem {
      withVaList([]) { vsyslog(LOG_NOTICE, line.replacing("%", with: "%%"), $0) }
    } else {
      let bytes = Array("\(program): \(line)\n".utf8)
      _ = write(STDERR_FILENO, bytes, bytes.count)
    }
  }
}
