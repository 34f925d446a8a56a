import CLinux
import Glibc
import PreferenceModel
import PreferenceProtocol
import PreferenceServer
import SystemCalls

/// Owns a store for those who do not: programs that use preferences while nothing is mounted. It is
/// started by the first, returns when it can be asked, and ends 30 s after the last has gone.
enum Program {
  private static let usage = """
    usage: prefsd [--store DIRECTORY] [--idle SECONDS] [-f]

    Owns the preferences of the user (or of the directory) and serves them to other programs, until
    none has been there for 30 s (or SECONDS). Programs start it themselves.

      -f           stay in the foreground, log to standard error
      -h, --help   this help

    Exit status: 0  it serves, or another process does; 1  failure; 2  the command line is wrong

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
    var signals = sigset_t()
    sigemptyset(&signals)
    for signal in [SIGTERM, SIGINT, SIGHUP] { sigaddset(&signals, signal) }
    pthread_sigmask(SIG_BLOCK, &signals, nil)
    do throws(EngineError) {
      let store = try OwnedStore(Surroundings(store: options.store)) { log($0) }
      if Background.isChild { Background.ready(log) }
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

  /// Until a signal comes, or nobody has been there for long enough. Meanwhile this thread sleeps.
  private static func waitForEnd(
    of store: OwnedStore, _ idle: Double, _ signals: inout sigset_t
  ) {
    let arrived = signalfd(-1, &signals, CInt(SFD_CLOEXEC) | CInt(SFD_NONBLOCK))
    var information = signalfd_siginfo()
    while true {
      let end = store.idleSince.map { $0.advanced(seconds: idle) }
      if let end, end <= .now { return }
      store.waitForClients(until: end, or: arrived)
      if read(arrived, &information, MemoryLayout.size(ofValue: information)) > 0 { return }
    }
  }
}
