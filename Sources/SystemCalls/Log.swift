import Glibc
import Synchronization

/// Where lines for people go: standard error in the foreground, the system's log in the background.
///
/// Promises: `log(...)` never waits, whatever becomes of standard error or of the system's log: lines for
/// which there is no room are counted, and the next line that is written says how many were lost. A line
/// stays one line: control characters in it, which names of keys may hold, are written as `\u{A}`.
///
/// Threads: any may log. One of its own writes to the system's log.
public final class Log: Sendable {
  private struct State {
    var usesSystemLog = false
    var waiting: [String] = []
    var isWriting = false
    var lost = 0
  }

  private let state = Monitor(State())
  private let program: StaticString

  /// Lines that may wait for the system's log.
  private static let mostWaiting = 1000
  /// Bytes of a line that are written: as many as a pipe takes at once.
  private static let longest = 4000

  /// The log of the program of that name.
  public init(_ program: StaticString) { self.program = program }

  /// From now on to the system's log. Where there can be no thread, lines still go to standard error.
  public func moveToSystemLog() {
    program.withUTF8Buffer { name in
      // syslog(3) keeps the pointer: a literal's bytes stay.
      name.withMemoryRebound(to: CChar.self) { openlog($0.baseAddress, LOG_PID, LOG_USER) }
    }
    guard let thread = try? WorkerThread(name: "prefs-log", { [state] in Self.run(state) }) else {
      return
    }
    thread.detach()
    state.change { $0.usesSystemLog = true }
  }

  /// One line. Any thread.
  public func callAsFunction(_ line: String) {
    let line = Self.printable(line)
    let isSystem = state.change { state in
      guard state.usesSystemLog else { return false }
      if state.waiting.count < Self.mostWaiting {
        state.waiting.append(line)
      } else {
        state.lost += 1
      }
      return true
    }
    if !isSystem { writeToStandardError(line) }
  }

  /// Waits until what was logged has been written, at most so many milliseconds.
  public func flush(milliseconds: Int64 = 500) {
    _ = state.wait(until: Instant.now.advanced(milliseconds: milliseconds)) { state -> Bool? in
      state.waiting.isEmpty && !state.isWriting ? true : nil
    }
  }

  private func writeToStandardError(_ line: String) {
    let lost = state.withLock { $0.lost }
    let note = lost == 0 ? "" : "\(program): \(lost) lines were lost\n"
    var entry = pollfd(fd: STDERR_FILENO, events: Int16(POLLOUT), revents: 0)
    let bytes = Array("\(note)\(program): \(line)\n".utf8)
    // A pipe that is ready takes as many bytes as that at once.
    guard poll(&entry, 1, 0) == 1, entry.revents & Int16(POLLOUT) != 0,
      write(STDERR_FILENO, bytes, bytes.count) == bytes.count
    else { return state.withLock { $0.lost += 1 } }
    state.withLock { $0.lost -= lost }
  }

  private static func run(_ state: Monitor<State>) {
    while true {
      let lines = state.wait { state -> [String]? in
        guard !state.waiting.isEmpty else { return nil }
        defer { (state.waiting, state.lost, state.isWriting) = ([], 0, true) }
        return state.lost == 0 ? state.waiting : state.waiting + ["\(state.lost) lines were lost"]
      }
      for line in lines ?? [] {
        withVaList([]) { vsyslog(LOG_NOTICE, line.replacing("%", with: "%%"), $0) }
      }
      state.change { $0.isWriting = false }
    }
  }

  /// The line without what would end it, or move a terminal's cursor.
  static func printable(_ line: String) -> String {
    var text = ""
    for character in line.unicodeScalars {
      switch character.value {
      case 0..<0x20, 0x7F..<0xA0, 0x2028, 0x2029, 0x202A...0x202E, 0x2066...0x2069:
        text += "\\u{\(String(character.value, radix: 16, uppercase: true))}"
      default: text.unicodeScalars.append(character)
      }
      if text.utf8.count >= longest { return text + "..." }
    }
    return text
  }
}
