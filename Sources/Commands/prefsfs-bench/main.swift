import Glibc

exit(Bench.run(Array(CommandLine.arguments.dropFirst())))

extension Bench {
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
}
