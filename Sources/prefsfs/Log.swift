import Glibc
import Synchronization

/// Where lines for people go: standard error in the foreground, the system's log in the background.
final class Log: Sendable {
  private let usesSystemLog = Mutex(false)

  /// From now on to the system's log.
  func moveToSystemLog() {
    openlog("prefsfs", LOG_PID, LOG_USER)
    usesSystemLog.withLock { $0 = true }
  }

  /// One line. Any thread.
  func callAsFunction(_ line: String) {
    let isSystem = usesSystemLog.withLock { $0 }
    if isSystem {
      withVaList([]) { vsyslog(LOG_NOTICE, line.replacing("%", with: "%%"), $0) }
    } else {
      let bytes = Array("prefsfs: \(line)\n".utf8)
      _ = write(STDERR_FILENO, bytes, bytes.count)
    }
  }
}
