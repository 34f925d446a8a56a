import Glibc
import PreferenceModel
import PreferenceServer
import StoreAccess
import SystemCalls

/// The program that owns a store. Mounts and programs are its clients, and the first of them starts
/// it. It returns when clients can connect, goes on in the background, and ends 2 s after the last
/// client, or 30 s where it holds what takes long to read.
enum Program {
  private static let usage = """
    usage: prefsd [--store DIRECTORY] [--writeback SECONDS] [--idle SECONDS] [-f]
           prefsd --user NAME [--idle SECONDS] [-f]

    Owns the preferences of the user (or of DIRECTORY) and serves them to mounts and programs, which
    start it themselves. It ends when there has been no client for 2 s, or for 30 s where it holds
    what takes long to read again; with --idle, after that time. Where the state directory cannot be
    written, it writes nothing, and ends as soon as it can be.

      --user NAME            read that user's preferences, beside their owner (root only)
      --writeback SECONDS    time from a change to the rewriting of its list (1)
      -f                     stay in the foreground, log to standard error
      -h, --help             this help

    Exit status: 0  it serves, or another process does; 1  failure; 2  wrong arguments

    """

  private struct Options {
    var store: String?
    var user: String?
    /// nil means as what it holds demands.
    var idle: Double?
    var writeback = 1.0
    var isForeground = false

    init?(_ words: [String]) {
      var rest = words[...]
      while let word = rest.popFirst() {
        switch word {
        case "--store":
          guard let directory = rest.popFirst() else { return nil }
          store = directory
        // Older clients say it; whether an owner only reads follows from its directories.
        case "--read-only": break
        case "--user":
          guard let name = rest.popFirst() else { return nil }
          user = name
        case "--idle":
          guard let seconds = Self.seconds(rest.popFirst()) else { return nil }
          idle = seconds
        case "--writeback":
          guard let seconds = Self.seconds(rest.popFirst()), seconds <= 3600 else { return nil }
          writeback = seconds
        case "-f": isForeground = true
        default: return nil
        }
      }
      if user != nil, store != nil { return nil }
    }

    /// The surroundings of the store. Throws where there is no such user, or this is not root.
    func surroundings() throws(EngineError) -> Surroundings {
      guard let user else { return Surroundings(store: store) }
      return try Surroundings(ofUser: user)
    }

    private static func seconds(_ text: String?) -> Double? {
      text.flatMap(Double.init).flatMap { $0 >= 0 ? $0 : nil }
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
      // What it says before it serves is for whoever has started it, and for the system's log.
      if Background.isChild { log.moveToSystemLog(copiesToErrors: true) }
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
    // Whoever has started it: a directory of the machine's is never closed to others for a moment.
    umask(0o022)
    // SIGUSR2 asks for an upgrade: clients start the program that is installed now.
    var signals = sigset_t()
    sigemptyset(&signals)
    for signal in [SIGTERM, SIGINT, SIGHUP, SIGUSR2, SIGALRM] { sigaddset(&signals, signal) }
    pthread_sigmask(SIG_BLOCK, &signals, nil)
    do throws(EngineError) {
      let calls = ActivationSocket()
      defer { calls?.answer() }
      try Server.requireDescriptors()
      let surroundings = try options.surroundings()
      // What root would write into a user's directories would be root's.
      let isReadOnly = surroundings.other != nil || surroundings.stateObstacle != nil
      let store = try OwnedStore(
        surroundings, readOnly: isReadOnly, writeback: options.writeback
      ) { log($0) }
      if Background.isChild {
        Background.detach(log)
        Background.ready()
      } else {
        // In the background it is no service, and the variables are its starter's.
        ServiceManager.reportReady()
      }
      calls?.answerAlways()
      waitForEnd(of: store, options.idle, &signals)
      store.close()
      return 0
    } catch  where error.reason == .owned {
      // The store has its owner: a service that ends before it is ready has failed.
      if !Background.isChild { ServiceManager.reportReady() }
      return 0
    } catch {
      log("\(error)")
      return 1
    }
  }

  /// Seconds without a client after which it ends: the usual ones, those where it costs nothing, and
  /// those between two looks whether it does.
  private static let (longIdle, shortIdle, look) = (30.0, 1.4, 0.5)

  /// Waits until a signal comes, there has been no client for that many seconds (nil means as long
  /// as what the store holds demands), or the store must be given up.
  ///
  /// While there are clients, it looks again after that time. Nothing wakes this thread when a
  /// client comes, or goes and another one follows within a second: it would take a processor from
  /// the client.
  private static func waitForEnd(
    of store: OwnedStore, _ idle: Double?, _ signals: inout sigset_t
  ) {
    // As every thread blocks them, they wait for this one.
    store.whenGivenUp { _ = kill(getpid(), SIGTERM) }
    if idle == nil { store.whenIdle { _ = kill(getpid(), SIGALRM) } }
    let longest = idle ?? longIdle
    var hasServed = false
    while true {
      let idleSince = store.idleSince
      let rest = hasServed ? store.rest : .long
      let patience = rest == .short ? shortIdle : longest
      var end = idleSince?.advanced(seconds: patience) ?? .now.advanced(seconds: max(longest, 0.1))
      if idleSince != nil, end <= .now { return }
      if idleSince != nil, rest == .passing { end = min(end, .now.advanced(seconds: look)) }
      var pause = Instant(nanoseconds: max(0, end.nanoseconds(after: .now))).timespec
      switch sigtimedwait(&signals, nil, &pause) {
      case SIGALRM: hasServed = true
      case ...0: break
      default: return
      }
    }
  }
}
