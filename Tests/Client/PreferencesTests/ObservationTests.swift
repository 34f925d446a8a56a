import Foundation
import Synchronization
import Testing

import class Preferences.UserDefaults
import PreferenceModel
@testable import Preferences
import PropertyList

/// Observations within a process.
@Suite("Observation") struct ObservationTests {
  private let defaults = UserDefaults.inMemory()

  /// The changes that were told to an observer. `lines` returns them once there are so many, or
  /// after 5 s.
  private final class Told: Sendable {
    private let lines = Mutex<[String]>([])
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

  /// Waits until all changes so far were told.
  private func settle() {
    let told = Told()
    let observation = observe("Last", told)
    defaults.set(defaults.integer(forKey: "Last") + 1, forKey: "Last")
    #expect(told.lines(1).count == 1)
    observation.cancel()
  }

  @Test("an observer gets old and new effective values in order, and nothing without a change")
  func effective() {
    let told = Told()
    let observation = observe("K", told)
    for value in [1, 1, 2] {
      defaults.set(value, forKey: "K")
      settle()
    }
    defaults.set("2", forKey: "Other")
    defaults.register(defaults: ["K": 5])
    defaults.setPersistentDomain(["K": 6], forName: UserDefaults.globalDomain)
    settle()
    defaults.removeObject(forKey: "K")
    settle()
    defaults.removePersistentDomain(forName: UserDefaults.globalDomain)
    settle()
    #expect(told.lines(4) == ["-1 -> 1 own", "1 -> 2 own", "2 -> 6 own", "6 -> 5 own"])
    observation.cancel()
    defaults.set(9, forKey: "K")
    settle()
    #expect(told.lines(4).count == 4)
  }

  @Test("a value of the key's type that is the same is no change, whatever list it comes from")
  func same() {
    let told = Told()
    let observation = observe("K", told)
    for value: Any? in [-1, nil, "-1", "text", 3, nil] {
      defaults.set(value, forKey: "K")
      settle()
    }
    #expect(told.lines(2) == ["-1 -> 3 own", "3 -> -1 own"])
    observation.cancel()
  }

  @Test("another process's change is told as not own, also together with an own one")
  func writers() throws {
    let told = Told()
    let observation = observe("K", told)
    let (engine, other) = (defaults.session.engine, Author.unique())
    func setByOther(_ value: Value) throws {
      let name = DomainName(ProcessInfo.processInfo.processName)
      _ = try engine.apply([.set("K", name, value, .unknown)], by: other)
    }
    try setByOther(1)
    settle()
    defaults.set(2, forKey: "K")
    settle()
    let slow = defaults.observe("Slow") { _, _, _ in usleep(200_000) }
    defaults.set(1, forKey: "Slow")
    usleep(50_000)
    defaults.set(3, forKey: "K")
    try setByOther(4)
    settle()
    #expect(told.lines(3) == ["-1 -> 1", "1 -> 2 own", "2 -> 4"])
    // An own set of the same key in another domain does not make the next change an own one.
    UserDefaults(domain: "elsewhere", session: defaults.session).set(5, forKey: "K")
    try setByOther(5)
    settle()
    #expect(told.lines(4).last == "4 -> 5")
    for each in [observation, slow] { each.cancel() }
  }

  @Test("many own sets in a row are told as own, however many of them are told")
  func ownRow() {
    let told = Told()
    let observation = observe("K", told)
    for value in 0..<500 { defaults.set(value, forKey: "K") }
    settle()
    let lines = told.lines(1)
    #expect(lines.allSatisfy { $0.hasSuffix(" own") }, "\(lines.filter { !$0.hasSuffix(" own") })")
    #expect(lines.last?.hasSuffix("-> 499 own") == true)
    observation.cancel()
  }

  @Test("adding and removing a suite is told, and an observation outlives its UserDefaults")
  func suites() {
    let told = Told()
    defaults.setPersistentDomain(["K": 7], forName: "suite")
    var other: UserDefaults? = UserDefaults(domain: defaults.domain, session: defaults.session)
    let observation = other?.observe(PreferenceKey("K", default: -1)) { change in
      told.add("\(change.old) -> \(change.new)")
    }
    other = nil
    defaults.addSuite(named: "suite")
    settle()
    defaults.removeSuite(named: "suite")
    settle()
    #expect(told.lines(2) == ["-1 -> 7", "7 -> -1"])
    observation?.cancel()
    _ = other
  }

  @Test("no change after observe returns is missed, with observations on many threads")
  func races() async {
    let defaults = defaults
    await withTaskGroup(of: Bool.self) { group in
      for thread in 0..<4 {
        group.addTask {
          let key = PreferenceKey("K\(thread)", default: 0)
          for round in 1...200 {
            let told = Told()
            let observation = defaults.observe(key) { told.add("\($0.new)") }
            defaults[key] = round
            if told.lines(1) != ["\(round)"] { return false }
            observation.cancel()
          }
          return true
        }
      }
      for await isWell in group { #expect(isWell) }
    }
  }

  @Test("cancelling an observation may free an object that holds other observations")
  func cancelling() {
    final class Holder: Sendable {
      let observations = Mutex<[PreferenceObservation]>([])
      let defaults: UserDefaults
      init(_ defaults: UserDefaults) { self.defaults = defaults }
      deinit { defaults.set(1, forKey: "Gone") }
    }
    var holder: Holder? = Holder(defaults)
    let first = defaults.observe("A") { [holder] _, _, _ in _ = holder }
    holder?.observations.withLock { $0 = [defaults.observe("B") { _, _, _ in }] }
    holder = nil
    first.cancel()
    // The observer's thread may still use the object for a moment.
    for _ in 0..<500 where defaults.integer(forKey: "Gone") == 0 { usleep(10000) }
    #expect(defaults.integer(forKey: "Gone") == 1)
  }

  @Test("an observation ends when it is freed")
  func ends() {
    let told = Told()
    var observation: PreferenceObservation? = observe("K", told)
    defaults.set(1, forKey: "K")
    #expect(told.lines(1).count == 1)
    observation = nil
    _ = observation
    defaults.set(2, forKey: "K")
    settle()
    #expect(told.lines(1).count == 1)
  }

  @Test("an observer may set and read what it observes")
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

  @Test("an observer of all keys is told what changed, by key, and of nothing else")
  func all() throws {
    let told = Told()
    defaults.set(1, forKey: "A")
    let observation = defaults.observeAll { changes in
      let lines = changes.filter { $0.key != "Last" }.sorted { $0.key < $1.key }
        .map { key, change -> String in
          let values = [change.old, change.new].map { $0.flatMap { Int.value(from: $0) } ?? -1 }
          return "\(key) \(values[0]) \(values[1])\(change.isOwn ? " own" : "")"
        }
      if !lines.isEmpty { told.add(lines.joined(separator: ", ")) }
    }
    settle()
    defaults.setValuesForKeys(["A": 1, "B": 2, "C": 3])
    settle()
    defaults.removeObject(forKey: "B")
    settle()
    defaults.register(defaults: ["A": 9, "D": 4])
    settle()
    _ = try defaults.session.engine.apply(
      [.set("C", defaults.domain, 5, .unknown)], by: Author.unique())
    settle()
    defaults.setPersistentDomain(["K": 7], forName: "suite")
    defaults.addSuite(named: "suite")
    settle()
    #expect(
      told.lines(5) == [
        "B -1 2 own, C -1 3 own", "B 2 -1 own", "D -1 4 own", "C 3 5", "K -1 7 own",
      ])
    observation.cancel()
    defaults.set(8, forKey: "A")
    settle()
    #expect(told.lines(5).count == 5)
  }

  @Test("a sequence with the initial value begins with it, and misses no change after it")
  func initial() async {
    let key = PreferenceKey("K", default: 0)
    for round in 1...50 {
      defaults[key] = round
      var changes = defaults.changes(of: key, withInitial: true).makeAsyncIterator()
      defaults[key] = -round
      let first = await changes.next()
      let second = await changes.next()
      #expect(first == PreferenceChange(old: round, new: round, isOwn: false))
      #expect(second?.old == round && second?.new == -round)
    }
  }

  @Test("a sequence of changes ends with its task")
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
      settle()
    }
    #expect(told.lines(3) == ["0 -> 1", "1 -> 2", "2 -> 3"])
    task.cancel()
    await task.value
    #expect(told.lines(4).last == "end")
  }
}
