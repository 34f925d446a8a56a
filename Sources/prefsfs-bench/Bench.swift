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
           prefsfs-bench start DEFAULTS FILE
           prefsfs-bench administrator PREFSFS DIRECTORY
           prefsfs-bench history PROGRAMS DIRECTORY
           prefsfs-bench scale PREFSFS DIRECTORY FLOOR
           prefsfs-bench codecs | engine DIRECTORY | clients DIRECTORY | compare FIGURES FIGURES
           prefsfs-bench repeat read|write FORMAT KEYS     one step over and over, for a profiler
    """

  static func run(_ words: [String]) -> Int32 {
    switch (words.first, words.count) {
    case ("files", 2...): return FileBench.run(Array(words.dropFirst()))
    case ("shared", 5...6): return SharedBench.run(Array(words.dropFirst()))
    case ("outside", 3): return OutsideBench.run(lists: words[1], mount: words[2])
    case ("start", 3): return StartBench.run(words[1], file: words[2])
    case ("administrator", 3): return AdministratorBench.run(words[1], words[2])
    case ("history", 3): return HistoryBench.run(words[1], words[2])
    case ("scale", 4): return ScaleBench.run(words[1], words[2], floor: words[3])
    case ("codecs", 1): CodecBench.run()
    case ("engine", 2): return EngineBench.run(words[1])
    case ("clients", 2): return ClientBench.run(words[1])
    case ("compare", 3): return Comparison.run(words[1], words[2])
    case ("repeat", 4): CodecBench.repeatStep(words[1], words[2], Int(words[3]) ?? 10_000)
    default:
      print(usage)
      return 2
    }
    return 0
  }

  /// Returns the mean time of `count` repetitions, in nanoseconds.
  static func time(_ count: Int, _ body: (Int) -> Void) -> Double {
    let start = Instant.now
    for index in 0..<count { body(index) }
    return Double(Instant.now.nanoseconds - start.nanoseconds) / Double(count)
  }

  /// Measures several subjects in turns, so that all see the same changes of the machine.
  static func samples(
    _ subjects: [(name: String, run: () -> Double)], rounds: Int = Bench.rounds
  ) -> [Report.Samples] {
    var all = subjects.map { Report.Samples(subject: $0.name, values: []) }
    for _ in 0..<rounds {
      for (index, subject) in subjects.enumerated() { all[index].values.append(subject.run()) }
    }
    return all
  }
}
