import Glibc
import PreferenceModel
import StoreAccess
import SystemCalls

/// Measures whole commands, from start to exit: `defaults`, beside cat(1) of a small file and the
/// commands of other preference systems, as far as they are installed.
enum StartBench {
  private static let repetitions = 50

  /// - Parameters:
  ///   - defaults: the path of prefsfs's `defaults`.
  ///   - file: a small file for cat(1).
  static func run(_ defaults: String, file: String) throws {
    let write = [defaults, "write", "com.example.bench", "Key", "value"]
    let read = [defaults, "read", "com.example.bench", "Key"]
    guard succeeds(write), succeeds(read) else {
      throw SystemError("write and read with", defaults, .inputOutput)
    }
    let peers = [
      ("cat", ["cat", file]), ("GNUstep", ["/usr/bin/defaults", "read", "NSGlobalDomain"]),
      ("dconf", ["dconf", "read", "/com/example/bench/key"]),
      ("kreadconfig5", ["kreadconfig5", "--file", "bench", "--group", "G", "--key", "K"]),
    ].filter { runs($0.1) }
    let report = Report("Commands")
    report.add(
      "defaults read, with an owner", .nanoseconds,
      Bench.samples(
        [Subject("prefsfs") { time(read) }]
          + peers.map { name, command in Subject(name) { time(command) } }),
      goals: [.times(1.3, of: "cat")])
    report.add(
      "defaults read, without an owner", .nanoseconds,
      Bench.samples(
        [
          Subject("prefsfs") {
            endOwner()
            return time(read, 1)
          },
          Subject("with one") { time(read, 1) },
        ], rounds: 25), goals: [.times(1, of: "with one", plus: 5e6)])
    report.add(
      "defaults write, with an owner", .nanoseconds,
      Bench.samples([
        Subject("prefsfs") { time(write) }, Subject("cat") { time(["cat", file]) },
      ]), goals: [.times(2, of: "cat")])
    endOwner()
  }

  private static func time(_ command: [String], _ count: Int = repetitions) -> Double {
    Bench.time(count) { _ in _ = status(command) }
  }

  private static func status(_ command: [String]) -> Int32? {
    (try? Child.runApart(command[0], Array(command.dropFirst())))?.status
  }

  private static func succeeds(_ command: [String]) -> Bool { status(command) == 0 }

  /// Whether there is such a program. Its status does not matter: it may find no such key.
  private static func runs(_ command: [String]) -> Bool {
    status(command).map { $0 < 126 } ?? false
  }

  /// Ends the process that owns the store, and waits until it is gone.
  private static func endOwner() {
    guard let owner = try? Bench.owner(), kill(owner, SIGTERM) == 0 else { return }
    while kill(owner, 0) == 0 { Instant.sleep(milliseconds: 1) }
  }
}
