import Glibc
import Synchronization

/// Writes lines for people: to standard error in the foreground, to the system's log in the
/// background, or there to the file that the environment variable PREFSFS_LOG names. The system's
/// log gets the severity of each line (syslog(3)); so does the journal where standard error is
/// connected to it (JOURNAL_STREAM of systemd.exec(5), the prefix `<N>` of sd-daemon(3)), which
/// adds the name of the program itself.
///
/// Promises: `log(...)` never waits, whatever happens to standard error or to the system's log.
/// Lines for which there is no room are counted, and the next line that is written says how many
/// were lost. A line stays one line: control characters, which names of keys may hold, are written
/// as `\u{A}`. Of refusals with one errno, 20 are written in a minute; the rest are counted.
///
/// Threads: any may log. A thread of the log's own writes to the system's log.
public final class Log: Sendable {
  private struct State {
    var usesSystemLog = false
    /// Whether lines go to standard error too.
    var usesStandardError = true
    var hasThread = false
    var waiting: [Entry] = []
    var isWriting = false
    var lost = 0
    var refusals = RefusalLimit()
  }

  /// A line as it is written, with its priority in the sense of syslog(3).
  private struct Entry {
    let text: String
    var priority = LOG_ERR
  }

  private let state = Monitor(State())
  private let program: StaticString
  private let isInJournal: Bool

  /// How many lines may wait for the system's log.
  private static let mostWaiting = 1000
  /// How many bytes of a line are written: no more than a pipe takes at once.
  private static let longest = 4000

  /// Creates the log of the program with that name.
  public init(_ program: StaticString) {
    self.program = program
    var status = stat()
    isInJournal =
      fstat(STDERR_FILENO, &status) == 0
      && Environment.variable("JOURNAL_STREAM") == "\(status.st_dev):\(status.st_ino)"
  }

  /// Sends the lines that follow to the system's log. Where no thread can be started, they still go
  /// to standard error.
  /// - Parameter copiesToErrors: whether they go to standard error too, until the next call: the
  ///   process that has started this one wants to know why it fails.
  public func moveToSystemLog(copiesToErrors: Bool = false) {
    guard !state.withLock({ $0.hasThread }) else {
      return state.withLock { $0.usesStandardError = copiesToErrors }
    }
    let file = Environment.variable("PREFSFS_LOG").flatMap {
      try? SharedDescriptor(Descriptor(opening: $0, O_WRONLY | O_CREAT | O_APPEND))
    }
    program.withUTF8Buffer { name in
      // syslog(3) keeps the pointer; the bytes of a literal stay valid.
      name.withMemoryRebound(to: CChar.self) { openlog($0.baseAddress, LOG_PID, LOG_USER) }
    }
    guard let thread = try? WorkerThread(name: "prefs-log", { [self] in run(file) }) else {
      return
    }
    thread.detach()
    state.change { state in
      (state.usesSystemLog, state.hasThread) = (true, true)
      state.usesStandardError = copiesToErrors
    }
  }

  /// Logs one line. Any thread may call it.
  public func callAsFunction(_ line: LogLine) {
    let now = Instant.now
    let (entry, usesErrors) = state.change { state -> (Entry?, Bool) in
      guard let entry = Self.entry(line, &state.refusals, at: now) else { return (nil, false) }
      guard state.usesSystemLog else { return (entry, true) }
      if state.waiting.count < Self.mostWaiting {
        state.waiting.append(entry)
      } else {
        state.lost += 1
      }
      return (entry, state.usesStandardError)
    }
    if let entry, usesErrors { writeToStandardError(entry) }
  }

  /// nil if the line is a refusal that is only counted.
  private static func entry(
    _ line: LogLine, _ refusals: inout RefusalLimit, at now: Instant
  ) -> Entry? {
    let text = line.text.printable(atMost: longest)
    switch line.severity {
    case .error: return Entry(text: text)
    case .notice: return Entry(text: text, priority: LOG_NOTICE)
    case .refusal(let errno):
      let chosen = refusals.text(of: text, errno, at: now)
      let isError = [EIO, ENOSPC, EDQUOT, ETIMEDOUT].contains(errno.rawValue)
      return chosen.map { Entry(text: $0, priority: isError ? LOG_ERR : LOG_NOTICE) }
    }
  }

  /// Waits until the lines for the system's log have been written, 500 ms at most.
  public func flush() {
    _ = state.wait(until: Instant.now.advanced(milliseconds: 500)) { state -> Bool? in
      state.waiting.isEmpty && !state.isWriting ? true : nil
    }
  }

  private func writeToStandardError(_ entry: Entry) {
    let lost = state.withLock { $0.lost }
    let start = isInJournal ? "<\(entry.priority)>" : "\(program): "
    let note = lost == 0 ? "" : "\(start)\(lost) lines were lost\n"
    var ready = pollfd(fd: STDERR_FILENO, events: Int16(POLLOUT), revents: 0)
    let bytes = Array("\(note)\(start)\(entry.text)\n".utf8)
    // A pipe that is ready takes this many bytes at once, so write(2) does not block. One that
    // nobody reads any more is an error: a write would end a program that does not ignore SIGPIPE.
    guard poll(&ready, 1, 0) == 1, ready.revents == Int16(POLLOUT),
      write(STDERR_FILENO, bytes, bytes.count) == bytes.count
    else { return state.withLock { $0.lost += 1 } }
    state.withLock { $0.lost -= lost }
  }

  /// The log's own thread. One write(2) for each line keeps the lines of several processes apart.
  private func run(_ file: SharedDescriptor?) {
    while true {
      let lines = state.wait { state -> [Entry]? in
        guard !state.waiting.isEmpty else { return nil }
        defer { (state.waiting, state.lost, state.isWriting) = ([], 0, true) }
        let note = Entry(text: "\(state.lost) lines were lost")
        return state.lost == 0 ? state.waiting : state.waiting + [note]
      }
      for line in lines ?? [] {
        if let file {
          try? file.value.write(Array("\(program): \(line.text)\n".utf8))
        } else {
          let format = line.text.replacing("%", with: "%%")
          withVaList([]) { vsyslog(line.priority, format, $0) }
        }
      }
      state.change { $0.isWriting = false }
    }
  }
}
