import Foundation
import Preferences
import SystemCalls

/// Measures the library's class UserDefaults, in a process that is a client of prefsd, beside
/// Foundation's.
enum LibraryBench {
  private static let reads = 100_000
  private static let sets = 1000

  /// Runs the measurements, in the store that the environment names.
  static func run(_ report: Report) {
    guard let ours = Preferences.UserDefaults(suiteName: "com.example.library"),
      let theirs = Foundation.UserDefaults(suiteName: "foundation.library")
    else { return }
    for index in 0..<1000 {
      ours.set("text \(index)", forKey: "Key \(index)")
      theirs.set("text \(index)", forKey: "Key \(index)")
    }
    ours.set(7, forKey: "Number")
    theirs.set(7, forKey: "Number")
    ours.synchronize()
    let key = PreferenceKey("Number", default: 0)
    compare("UserDefaults, string(forKey:)", reads, report) { _ in
      _ = ours.string(forKey: "Key 500")
    } beside: { _ in
      _ = theirs.string(forKey: "Key 500")
    }
    compare("UserDefaults, integer(forKey:)", reads, report) { _ in
      _ = ours.integer(forKey: "Number")
    } beside: { _ in
      _ = theirs.integer(forKey: "Number")
    }
    compare("UserDefaults, a typed key", reads, report, [.atMost(60)]) { _ in
      _ = ours[key]
    } beside: { _ in
      _ = theirs.integer(forKey: "Number")
    }
    compare("UserDefaults, set(_:forKey:)", sets, report, [.atMost(3e3)]) { index in
      ours.set(index, forKey: "Set \(index)")
    } beside: { index in
      theirs.set(index, forKey: "Set \(index)")
    }
    compare("UserDefaults, 100 sets, synchronize", 1, report) { round in
      for index in 0..<100 { ours.set(index + round, forKey: "Set \(index)") }
      ours.synchronize()
    } beside: { round in
      for index in 0..<100 { theirs.set(index + round, forKey: "Set \(index)") }
      theirs.synchronize()
    }
  }

  private static func compare(
    _ title: String, _ count: Int, _ report: Report, _ goals: [Goal] = [],
    _ ours: @escaping (Int) -> Void,
    beside theirs: @escaping (Int) -> Void
  ) {
    report.add(
      title, .nanoseconds,
      Bench.samples([
        Subject("prefsfs") { Bench.time(count, ours) },
        Subject("Foundation") { Bench.time(count, theirs) },
      ]), goals: goals)
  }
}
