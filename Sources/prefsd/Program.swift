import CLinux
import Glibc
import PreferenceModel
import PreferenceServer
import SystemCalls

/// The program that owns a store while nothing is mounted, for programs that are only clients. The
/// first of them starts it. It returns when clients can connect, goes on in the background, and
/// ends 30 s after the last client.
enum Program {
  private static let usage = """
    usage: prefsd [--store DIRECTORY] [--idle SECONDS] [-f]

    Owns the preferences of the user (or of DIRECTORY) and serves them to other programs. It ends
    when there has been no client for 30 s (or SECONDS). Programs start it themselves.

      -f           stay in the foreground, log to standard error
      -h, --help   this help

    Exit status: 0  it serves, or another process does; 1  failure; 2  wrong arguments

    """

  private struct Options {
    var store: String?
    var idle = 30.0
    var isForeground = false

    init?(_ words: [String]) {
      var rest = words[...]
      while let word = rest.popFirst() {
        switch word {
        case "--store":
          guard let directory = rest.popFirst() else { return nil }
          store = directory
        case "--idle":
          guard let text = rest.popFirst(), let seconds = Double(text), seconds >= 0 else {
            return nil
          }
          idle = seconds
        case "-f": isForeground = true
        default: return nil
        }
      }
    }
  }

  static func run(_ words: [String]) -> Int32 {
    Inheritance.occupyStandardStreams()
    Inheritance.ignoreWriteSignals()
    if Background.isChild {
      Background.closeInherited()
      Inheritance.reset()
    }
    if words.contains("-h") || words.contains("--help") {
      print(usage, terminator: "")
      return 0
    }
    let log = Log("prefsd")
    guard let options = Options(words) else {
      log("wrong arguments; see prefsd --help")
      return 2
    }
    if options.isForeground || Background.isChild {
      defer { log.flush() }
      return serve(options, log)
    }
    do {
      return try Background.start()
    } catch {
      log("\(error)")
      return 1
    }
  }

  private static func serve(_ options: Options, _ log: Log) -> Int32 {
    Memory.keepLittle()
    // SIGUSR2 asks for an upgrade: clients start the program that is installed now.
    var signals = sigset_t()
    sigemptyset(&signals)
    for signal in [SIGTERM, SIGINT, SIGHUP, SIGUSR2] { sigaddset(&signals, signal) }
    pthread_sigmask(SIG_BLOCK, &signals, nil)
    do throws(EngineError) {
      let calls = ActivationSocket()
      defer { calls?.answer() }
      let store = try OwnedStore(Surroundings(store: options.store)) { log($0) }
      if Background.isChild {
        Background.detach(log)
        Background.ready()
      }
      ServiceManager.reportReady()
      calls?.answerAlways()
      waitForEnd(of: store, options.idle, &signals)
      store.close()
      return 0
    } catch  where error.reason == .owned {
      return 0
    } catch {
      log("\(error)")
      return 1
    }
  }

  /// Waits until a signal comes, or there has been no client for that many seconds.
  ///
  /// While there are clients, it looks again after that time. Nothing wakes this thread when a
  /// client comes or goes: it would take a processor from the client.
  private static func waitForEnd(
    of store: OwnedStore, _ idle: Double, _ signals: inout sigset_t
  ) {
    let arrived = signalfd(-1, &signals, CInt(SFD_CLOEXEC) | CInt(SFD_NONBLOCK))
    var information = signalfd_siginfo()
    while true {
      let idleSince = store.idleSince
      let end = idleSince?.advanced(seconds: idle) ?? .now.advanced(seconds: max(idle, 0.1))
      if idleSince != nil, end <= .now { return }
      var entry = pollfd(fd: arrived, events: Int16(POLLIN), revents: 0)
      _ = poll(&entry, 1, CInt(clamping: end.milliseconds(after: .now)))
      if read(arrived, &information, MemoryLayout.size(ofValue: information)) > 0 { return }
    }
  }
}
