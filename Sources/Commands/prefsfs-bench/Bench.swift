import Glibc
import StoreAccess
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

  /// The process that owns a store.
  static func owner(_ surroundings: Surroundings = Surroundings()) throws(SystemError) -> pid_t {
    let lock = surroundings.stateDirectory + "/lock"
    let text = String(decoding: try Files.contents(lock, limit: 64) ?? [], as: UTF8.self)
    guard let owner = pid_t(text) else { throw SystemError("read", lock, .noData) }
    return owner
  }
}

/// Something that is measured: it returns nanoseconds, or what the figure counts.
struct Subject {
  let name: String
  let run: () -> Double

  init(_ name: String, _ run: @escaping () -> Double) { (self.name, self.run) = (name, run) }
}
