import Foundation
import Testing

import class Preferences.UserDefaults
@testable import Preferences

/// Observations within a process.
@Suite("Observation") struct ObservationTests {
  private let defaults = UserDefaults.inMemory()

  /// The changes that have been told, once there are so many, or after 5 s.
  private final class Told: Sendable {
    private let lines = Lock<[String]>([])
    func add(_ line: String) { lines.withLock { $0.append(line) } }
    func lines(_ count: Int) -> [String] {
      for _ in 0..<500 where lines.withLock({ $0.count }) < count { usleep(10000) }
      return lines.withLock { $0 }
    }
  }

  private func observe(_ name: String, _ told: Told) -> PreferenceObservation {
    defaults.observe(PreferenceKey(name, default: -1)) { change in
      told.add("\(change.old) -> \(change.new)\(change.isOwn ? " own" : "")")
    }
  }

  /// Waits until everything that happened before was looked at.
  private func settle(_ last: Int) {
    let told = Told()
    let observation = observe("Last", told)
    defaults.set(last, forKey: "Last")
    _ = told.lines(1)
    observation.cancel()
  }

  @Test("old and new effective values, in order; silent where nothing changes")
  func effective() {
    let told = Told()
    let observation = observe("K", told)
    for value in [1, 1, 2] {
      defaults.set(value, forKey: "K")
      settle(value)
    }
    defaults.set("2", forKey: "Other")
    defaults.register(defaults: ["K": 5])
    defaults.setPersistentDomain(["K": 6], forName: UserDefaults.globalDomain)
    settle(10)
    defaults.removeObject(forKey: "K")
    settle(11)
    defaults.removePersistentDomain(forName: UserDefaults.globalDomain)
    settle(12)
    #expect(told.lines(4) == ["-1 -> 1 own", "1 -> 2 own", "2 -> 6 own", "6 -> 5 own"])
    observation.cancel()
    defaults.set(9, forKey: "K")
    settle(13)
    #expect(told.lines(4).count == 4)
  }

  @Test("an observation ends when it goes")
  func ends() {
    let told = Told()
    var observation: PreferenceObservation? = observe("K", told)
    defaults.set(1, forKey: "K")
    #expect(told.lines(1).count == 1)
    observation = nil
    _ = observation
    defaults.set(2, forKey: "K")
    settle(1)
    #expect(told.lines(1).count == 1)
  }

  @Test("a body may set and read what it observes")
  func reentrant() {
    let told = Told()
    let defaults = defaults
    let observation = defaults.observe("K") { old, new, _ in
      told.add("\(new as? Int ?? -1) \(defaults.integer(forKey: "K"))")
      if new as? Int == 1 { defaults.set(2, forKey: "K") }
    }
    defaults.set(1, forKey: "K")
    #expect(told.lines(2) == ["1 1", "2 2"])
    observation.cancel()
  }

  @Test("a sequence of changes, which ends with its task")
  func sequence() async {
    let (defaults, told) = (defaults, Told())
    let key = PreferenceKey("K", default: 0)
    let changes = defaults.changes(of: key)
    let task = Task {
      for await change in changes { told.add("\(change.old) -> \(change.new)") }
      told.add("end")
    }
    for value in 1...3 {
      defaults[key] = value
      settle(value)
    }
    #expect(told.lines(3) == ["0 -> 1", "1 -> 2", "2 -> 3"])
    task.cancel()
    await task.value
    #expect(told.lines(4).last == "end")
  }
}
