import Glibc
import PropertyList
import Synchronization
import SystemCalls

/// Writes to standard output and standard error.
enum Output {
  /// The error of standard output, if it did not accept everything; nil if it did. EPIPE says that
  /// the reader of a pipe has ended, which is no reason for a command to fail.
  static let failure = Mutex<Errno?>(nil)

  enum Stream: CInt {
    case output = 1
    case errors = 2
  }

  /// Writes all of the text. An error of standard output is kept in `failure`, and the rest of the
  /// text is lost.
  static func write(_ text: String, to stream: Stream = .output) {
    write(Array(text.utf8), to: stream)
  }

  /// Writes a line that is made of names and texts from outside, which cannot end it or move the
  /// cursor: see `String.printable`.
  static func write(line: String, to stream: Stream = .output) {
    write(line.printable() + "\n", to: stream)
  }

  /// Writes a line of JSON. What JSON has no form for is a text.
  static func write(json values: ValueDictionary) {
    write(Document.lineOfJSON(.dictionary(values), space: "") + "\n")
  }

  /// Writes a line to standard error behind the name by which the program was started.
  static func note(_ line: String) {
    write(line: "\(CommandName.current.rawValue): \(line)", to: .errors)
  }

  static func write(_ bytes: [UInt8], to stream: Stream = .output) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(stream.rawValue, $0.baseAddress, $0.count) }
      if count < 0, Errno.current != .interrupted {
        let errno = Errno.current
        if stream == .output { failure.withLock { $0 = errno } }
        return
      }
      rest = rest.dropFirst(max(count, 0))
    }
  }

  /// Has the process end with status 0 when the reader of standard output ends, also while there is
  /// nothing to write: `prefs watch com.example Key | head -n 1` waits for one change. A file or a
  /// terminal as standard output changes nothing.
  static func endWithReader() {
    let thread = try? WorkerThread(name: "prefs-reader") {
      var entry = pollfd(fd: STDOUT_FILENO, events: 0, revents: 0)
      repeat {} while poll(&entry, 1, -1) < 0 && Errno.current == .interrupted
      if entry.revents & Int16(POLLERR | POLLHUP) != 0 { exit(0) }
    }
    thread?.detach()
  }

  /// Writes a message to standard error: `defaults` in the form of NSLog, with
  /// `2026-11-21 07:20:00.123 defaults[pid:tid] ` before it, `prefs` behind its name. The thread is
  /// the main thread, whose number is the number of the process.
  static func log(_ message: String) {
    if CommandName.current == .prefs {
      let text = message.drop { $0 == "\n" }
      return write("prefs: \(text)\(text.hasSuffix("\n") ? "" : "\n")", to: .errors)
    }
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    var fields = tm()
    localtime_r(&now.tv_sec, &fields)
    var buffer = [CChar](repeating: 0, count: 32)
    let count = strftime(&buffer, buffer.count, "%Y-%m-%d %H:%M:%S", &fields)
    let time = String(
      decoding: buffer.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    let fraction = String(1000 + now.tv_nsec / 1_000_000).dropFirst()
    let end = message.hasSuffix("\n") ? "" : "\n"
    let head = "\(time).\(fraction) defaults[\(getpid()):\(getpid())] "
    write(head + message + end, to: .errors)
  }
}
