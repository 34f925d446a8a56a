import Glibc
import SystemCalls

/// Measures prefsfs and its peers in one run, so that all find the machine in the same state.
enum Bench {
  /// Rounds of each measurement; in each round every subject has one turn.
  static let rounds = 7

  private static let usage = """
    usage: prefsfs-bench files NAME=DIRECTORY [PEER=DIRECTORY ...]
           prefsfs-bench shared ALONE WATCHED FIRST SECOND [BINDFS]
           prefsfs-bench outside LISTS MOUNT
           prefsfs-bench recovery PREFSFS DIRECTORY
           prefsfs-bench start DEFAULTS FILE
           prefsfs-bench administrator PREFSFS DIRECTORY
           prefsfs-bench history PROGRAMS DIRECTORY
           prefsfs-bench scale PREFSFS DIRECTORY FLOOR
           prefsfs-bench codecs | engine DIRECTORY | clients DIRECTORY | compare FIGURES FIGURES
    """

  /// Runs the measurement that the words name.
  /// - Returns: the exit status.
  static func run(_ words: [String]) -> Int32 {
    do {
      switch (words.first, words.count) {
      case ("files", 2...): try FileBench.run(Array(words.dropFirst()))
      case ("shared", 5...6): try SharedBench.run(Array(words.dropFirst()))
      case ("outside", 3): try OutsideBench.run(lists: words[1], mount: words[2])
      case ("recovery", 3): try RecoveryBench.run(words[1], words[2])
      case ("start", 3): try StartBench.run(words[1], file: words[2])
      case ("administrator", 3): try AdministratorBench.run(words[1], words[2])
      case ("history", 3): try HistoryBench.run(words[1], words[2])
      case ("scale", 4): try ScaleBench.run(words[1], words[2], floor: words[3])
      case ("codecs", 1): CodecBench.run()
      case ("engine", 2): try EngineBench.run(words[1])
      case ("clients", 2): try ClientBench.run(words[1])
      case ("compare", 3): Comparison.run(words[1], words[2])
      default:
        print(usage)
        return 2
      }
      return 0
    } catch {
      print("prefsfs-bench: \(error)")
      return 1
    }
  }

  /// Returns the mean time of `count` repetitions, in nanoseconds.
  static func time(_ count: Int, _ body: (Int) throws -> Void) rethrows -> Double {
    let start = Instant.now
    for index in 0..<count { try body(index) }
    return Double(Instant.now.nanoseconds - start.nanoseconds) / Double(count)
  }

  /// Measures several subjects in turns, so that all see the same changes of the machine.
  static func samples(_ subjects: [Subject], rounds: Int = Bench.rounds) -> [Report.Samples] {
    var all = subjects.map { Report.Samples(subject: $0.name, values: []) }
    for _ in 0..<rounds {
      for (index, subject) in subjects.enumerated() { all[index].values.append(subject.run()) }
    }
    return all
  }

  /// Returns the nanoseconds from the start of the program until a key of a mount has been read.
  /// - Parameters:
  ///   - lists: the directory of the mount's lists.
  ///   - point: the mount point.
  ///   - system: the directory of the machine's lists, profiles and schemas.
  static func firstRead(
    _ prefsfs: String, lists: String, point: String, system: String
  ) -> Double {
    setenv("PREFSFS_SYSTEM_DIR", system, 1)
    let time = Bench.time(1) { _ in
      _ = try? Child.run(prefsfs, [lists, point])
      _ = try? Files.contents("\(point)/com.example.bench/K", limit: 64)
    }
    _ = try? Child.run("fusermount3", ["-u", point])
    return time
  }
}

/// Something that is measured: it returns nanoseconds, or what the figure counts.
struct Subject {
  let name: String
  let run: () -> Double

  init(_ name: String, _ run: @escaping () -> Double) { (self.name, self.run) = (name, run) }
}
