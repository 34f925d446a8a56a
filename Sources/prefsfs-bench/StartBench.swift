import Glibc
import PreferenceModel
import SystemCalls

/// Measures whole commands, from start to exit: `defaults`, beside cat(1) of a small file and the
/// commands of other preference systems, as far as they are installed.
enum StartBench {
  private static let repetitions = 50

  /// - Parameters:
  ///   - defaults: the path of prefsfs's `defaults`.
  ///   - file: a small file for cat(1).
  static func run(_ defaults: String, file: String) -> Int32 {
    let write = [defaults, "write", "com.example.bench", "Key", "value"]
    let read = [defaults, "read", "com.example.bench", "Key"]
    guard succeeds(write), succeeds(read) else {
      print("prefsfs-bench: \(defaults) does not work")
      return 1
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
        [(name: "prefsfs", run: { time(read) })]
          + peers.map { peer in (name: peer.0, run: { time(peer.1) }) }),
      goals: [.times(1.3, of: "cat")])
    report.add(
      "defaults read, without an owner", .nanoseconds,
      Bench.samples(
        [
          (
            name: "prefsfs",
            run: {
              endOwner(); return time(read, 1)
            }
          ),
          (name: "with one", run: { time(read, 1) }),
        ], rounds: 25), goals: [.times(1, of: "with one", plus: 5e6)])
    report.add(
      "defaults write, with an owner", .nanoseconds,
      Bench.samples([
        (name: "prefsfs", run: { time(write) }), (name: "cat", run: { time(["cat", file]) }),
      ]), goals: [.times(2, of: "cat")])
    endOwner()
    return 0
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
    let lock = Surroundings().stateDirectory + "/lock"
    guard let bytes = (try? Files.contents(lock, limit: 64)) ?? nil,
      let owner = pid_t(String(decoding: bytes, as: UTF8.self)), kill(owner, SIGTERM) == 0
    else { return }
    while kill(owner, 0) == 0 { Instant.sleep(milliseconds: 1) }
  }
}
