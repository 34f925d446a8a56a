import Glibc
import PreferenceClient
import PreferenceCloud
import PreferenceModel
import PropertyList
import StoreAccess
import SystemCalls

/// The program that carries changes between the cloud's place of a store and the servers. The
/// store's owner starts it where a cloud is configured; a service can run it too.
public enum CloudProgram {
  private static let usage = """
    usage: prefs-cloud [--store DIRECTORY] [--owned]

    Keeps the preferences of the cloud the same on every machine of the user. prefsd starts it when
    Endpoints of the domain prefsfs.cloud is set, and ends it; run it yourself only as a service.
    `prefs cloud` says how it is doing.

      --store DIRECTORY  the directory of the user's lists (default: ~/.config)
      --owned            end when standard input ends; log to the system's log
      -h, --help         this help

    While another one runs for the same store, this one waits until that has ended.

    Exit status: 0  ended as asked; 1  failure; 2  wrong arguments

    """

  /// Runs the program with these arguments.
  /// - Returns: its exit status.
  public static func run(_ words: [String]) -> Int32 {
    Inheritance.occupyStandardStreams()
    Inheritance.ignoreWriteSignals()
    var store: String?
    var isOwned = false
    var rest = words[...]
    while let word = rest.popFirst() {
      switch word {
      case "--store" where !rest.isEmpty: store = rest.removeFirst()
      case "--owned": isOwned = true
      case "-h", "--help":
        print(usage, terminator: "")
        return 0
      default:
        print(usage, terminator: "")
        return 2
      }
    }
    let log = Log("prefs-cloud")
    if isOwned { log.moveToSystemLog() }
    defer { log.flush() }
    return run(Surroundings(store: store), isOwned: isOwned, log)
  }

  private static func run(_ surroundings: Surroundings, isOwned: Bool, _ log: Log) -> Int32 {
    do throws(EngineError) {
      if isOwned {
        // Its owner is gone then, or wants it to end. Nothing is lost by that (`Carrier`).
        try EngineError.wrapping { () throws(SystemError) in
          try LinkedChild.whenInputEnds { _exit(0) }
        }
      }
      // Of a service's and one that the owner runs, the later waits for the end of the other, and
      // then takes over.
      try EngineError.wrapping { () throws(SystemError) in
        if try CloudLock.acquire(surroundings, waits: false) { return }
        if !isOwned { log("another prefs-cloud of this store runs; this one waits for its end") }
        _ = try CloudLock.acquire(surroundings, waits: true)
      }
      let places = try StoreClient(clientOf: surroundings, isLasting: true, hearsAll: true) {
        log($0)
      }
      try Carrier(
        places, StoreLayout(surroundings), host: newHostName(),
        userName: surroundings.userName, log: { log($0) }
      ).run()
    } catch {
      log("\(error)")
      return 1
    }
  }

  /// Draws a name for this host, for stamps and for the log of replaced values: for people the
  /// machine's name, and random digits. Each `prefs-cloud` draws its own at its start, because
  /// machines that were cloned have one name, one machine-id and one state directory, and may even
  /// share a kernel.
  static func newHostName() -> String {
    let digits = String(UInt32.random(in: 0 ... .max), radix: 16)
    return Surroundings.hostName + "-" + String(repeating: "0", count: 8 - digits.count) + digits
  }
}
