import CLinux
import Glibc
import SystemCalls

/// The terminal of this process: the edge between grids and inputs, and bytes.
///
/// Promises: while it is entered, the terminal is in raw mode and shows its alternate screen. It is
/// given back as it was by `leave`, before the process stops (`suspend`), and when it crashes.
/// After SIGKILL nobody can.
///
/// Threads: the main one. Signals that it asks for are blocked from `init` on, and come as events.
package final class Terminal {
  /// A signal that has come.
  package enum Event: Equatable, Sendable {
    /// The terminal has a different size, or was used by another program meanwhile.
    case changed
    /// SIGTSTP: the process is to stop.
    case stop
    /// The process is to end, by that signal.
    case end(signal: Int32)
  }

  private let input: CInt
  private let output: CInt
  private let signals: CInt
  private let name: String
  private var before = termios()
  /// What the terminal shows; nil if it is not known.
  private var shown: Grid?
  private var isEntered = false
  private let isColored: Bool
  /// Whether nothing but ASCII may be written.
  package let isASCII: Bool

  private static let numbers = [SIGWINCH, SIGTSTP, SIGCONT, SIGTERM, SIGINT, SIGHUP, SIGQUIT]

  /// Whether these descriptors are a terminal that can move its cursor.
  package static func canShow(input: CInt = 0, output: CInt = 1) -> Bool {
    let name = Environment.variable("TERM") ?? ""
    return isatty(input) == 1 && isatty(output) == 1
      && !["", "dumb", "unknown", "emacs", "network"].contains(name) && !name.hasPrefix("dumb-")
  }

  /// Whether the locale of this process writes UTF-8, by its variables (locale(7)).
  package static var isUTF8: Bool {
    let names = ["LC_ALL", "LC_CTYPE", "LANG"]
    let name = names.lazy.compactMap { Environment.variable($0) }.first { !$0.isEmpty } ?? ""
    let coding = name.lowercased().replacing("-", with: "")
    return coding.contains("utf8")
  }

  /// Blocks the signals, and changes nothing else. Throws where the descriptor is not a terminal.
  package init(input: CInt = 0, output: CInt = 1) throws(SystemError) {
    (self.input, self.output) = (input, output)
    name = Environment.variable("TERM") ?? ""
    isColored = (Environment.variable("NO_COLOR") ?? "").isEmpty
    isASCII = !Self.isUTF8
    if tcgetattr(input, &before) != 0 { throw SystemError("tcgetattr", "the terminal") }
    var set = Self.set
    sigprocmask(SIG_BLOCK, &set, nil)
    signals = signalfd(-1, &set, CInt(SFD_CLOEXEC) | CInt(SFD_NONBLOCK))
    if signals < 0 { throw SystemError("signalfd", "") }
  }

  private static var set: sigset_t {
    var set = sigset_t()
    sigemptyset(&set)
    for number in numbers { sigaddset(&set, number) }
    return set
  }

  /// The descriptors that poll(2) waits for: of inputs, and of signals.
  package var descriptors: [CInt] { [input, signals] }

  /// The size of the terminal; 24 x 80 if it does not say.
  package var size: Grid.Size {
    var (rows, columns): (UInt16, UInt16) = (0, 0)
    guard prefsfs_terminal_size(output, &rows, &columns) == 0, rows > 0, columns > 0 else {
      return Grid.Size(rows: 24, columns: 80)
    }
    return Grid.Size(rows: Int(rows), columns: Int(columns))
  }

  /// Alternate screen, bracketed paste, reports of the mouse's wheel, no reordering of text that is
  /// written from right to left.
  private static let entering = "\u{1B}[?1049h\u{1B}[?2004h\u{1B}[?1000h\u{1B}[?1006h\u{1B}[8l"
  private static let leaving =
    "\u{1B}[0m\u{1B}[2J\u{1B}[H\u{1B}[8h\u{1B}[?1006l\u{1B}[?1000l\u{1B}[?2004l\u{1B}[?25h"
    + "\u{1B}[?1049l"

  /// Begins to use the terminal, or goes on after `leave`.
  package func enter() {
    guard let saved = prefsfs_terminal() else { return }
    tcgetattr(input, &before)
    let bytes = Array(Self.leaving.utf8)
    (saved.pointee.settings, saved.pointee.count) = (before, UInt32(bytes.count))
    withUnsafeMutableBytes(of: &saved.pointee.bytes) { $0.copyBytes(from: bytes) }
    saved.pointee.descriptor = output
    prefsfs_restore_after_crashes()
    setRaw()
    write(Self.entering)
    (shown, isEntered) = (nil, true)
  }

  private func setRaw() {
    var raw = before
    cfmakeraw(&raw)
    // What was typed before is kept.
    tcsetattr(input, TCSADRAIN, &raw)
  }

  /// Gives the terminal back as it was.
  package func leave() {
    prefsfs_restore_terminal()
    (shown, isEntered) = (nil, false)
  }

  /// Gives the terminal back, stops the processes of the job as Ctrl-Z does, and returns when the
  /// shell has them go on.
  package func suspend() {
    leave()
    var set = sigset_t()
    sigemptyset(&set)
    sigaddset(&set, SIGTSTP)
    sigprocmask(SIG_UNBLOCK, &set, nil)
    kill(0, SIGTSTP)
    sigprocmask(SIG_BLOCK, &set, nil)
    enter()
  }

  /// Shows a grid. Nothing is written if the terminal shows it already.
  package func show(_ grid: Grid) {
    let bytes = grid.difference(from: shown, isColored: isColored)
    shown = grid
    if !bytes.isEmpty { write(bytes) }
  }

  /// Has the next `show` draw everything: somebody else may have written to the terminal.
  package func forget() { shown = nil }

  /// Asks the terminal to put a text on its clipboard (OSC 52). Many do.
  package func copy(_ encoded: String) {
    if name != "linux" { write("\u{1B}]52;c;\(encoded)\u{7}") }
  }

  /// Reads what has been typed; empty if nothing was. Nil if the terminal is gone.
  package func read() -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: 4096)
    let count = Glibc.read(input, &bytes, bytes.count)
    if count < 0, [.interrupted, .wouldBlock].contains(Errno.current) { return [] }
    return count > 0 ? Array(bytes.prefix(count)) : nil
  }

  /// The next signal that has come; nil if there is none.
  package func nextSignal() -> Event? {
    var information = signalfd_siginfo()
    let size = MemoryLayout<signalfd_siginfo>.size
    guard Glibc.read(signals, &information, size) == size else { return nil }
    let number = Int32(information.ssi_signo)
    switch number {
    case SIGWINCH: return .changed
    case SIGCONT:
      // An editor was stopped, which had the terminal.
      guard isEntered else { return .changed }
      // After SIGSTOP the shell may have changed the terminal.
      setRaw()
      write(Self.entering)
      shown = nil
      return .changed
    case SIGTSTP: return .stop
    default: return .end(signal: number)
    }
  }

  private func write(_ text: String) { write(Array(text.utf8)) }

  private func write(_ bytes: [UInt8]) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(output, $0.baseAddress, $0.count) }
      if count > 0 {
        rest = rest.dropFirst(count)
      } else if Errno.current == .wouldBlock {
        var entry = pollfd(fd: output, events: Int16(POLLOUT), revents: 0)
        poll(&entry, 1, 1000)
      } else if Errno.current != .interrupted {
        return
      }
    }
  }
}
