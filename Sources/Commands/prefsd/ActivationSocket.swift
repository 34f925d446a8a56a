import Glibc
import SystemCalls

/// The socket at which a service manager has listened for this program (sd_listen_fds(3)). Programs
/// connect to it to have `prefsd` started, and wait until the connection is closed.
struct ActivationSocket {
  private let number: CInt = 3

  /// Nil if no service manager has passed a socket.
  init?() {
    func variable(_ name: String) -> String { getenv(name).map { String(cString: $0) } ?? "" }
    guard variable("LISTEN_PID") == "\(getpid())", variable("LISTEN_FDS") == "1" else { return nil }
    unsetenv("LISTEN_PID")
    unsetenv("LISTEN_FDS")
    _ = fcntl(number, F_SETFD, FD_CLOEXEC)
  }

  /// Closes the connections that wait now.
  func answer() {
    while true {
      var entry = pollfd(fd: number, events: Int16(POLLIN), revents: 0)
      guard poll(&entry, 1, 0) > 0 else { return }
      let connection = accept(number, nil, nil)
      guard connection >= 0 else { return }
      close(connection)
    }
  }

  /// Closes each connection that comes, on a thread of its own, until the process ends.
  func answerAlways() {
    let thread = try? WorkerThread(name: "prefs-calls") {
      while true {
        let connection = accept(number, nil, nil)
        if connection >= 0 {
          close(connection)
        } else if [EBADF, EINVAL, ENOTSOCK].contains(errno) {
          return
        } else if errno != EINTR, errno != ECONNABORTED {
          // No descriptor or memory is left (EMFILE, ENOBUFS): the caller waits.
          Instant.sleep(milliseconds: 100)
        }
      }
    }
    thread?.detach()
  }
}
