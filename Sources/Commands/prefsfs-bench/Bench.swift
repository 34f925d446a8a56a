import Glibc
import SystemCalls

/// Measures prefsfs and its peers in one run, so that all find the machine in the same state.
enum Bench {
  /// Rounds of each measurement; in each round every subject has one turn.
  static let rounds = 7

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
