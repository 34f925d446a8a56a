import PropertyList
import SystemCalls
import Testing

@testable import PreferenceEffects

/// When a rule is carried out, by a clock of the test's own.
@Suite("When rules are carried out") struct EffectScheduleTests {
  private static let key = EffectState().key

  private static func values(_ number: Int64) -> EffectValues {
    EffectValues("r", "rule", [EffectKey("d", "K"): .integer(WideInteger(number))], key: key)
  }

  private static func at(_ milliseconds: Int64) -> Instant {
    Instant(nanoseconds: 1_000_000_000_000).advanced(milliseconds: milliseconds)
  }

  /// Compares what changes the schedule, which `#expect` cannot call.
  private func check(
    _ found: Bool, _ expected: Bool, sourceLocation: SourceLocation = #_sourceLocation
  ) {
    #expect(found == expected, sourceLocation: sourceLocation)
  }

  private static func due(_ schedule: EffectSchedule) -> Int64? {
    schedule.due.map { $0.nanoseconds(after: at(0)) / 1_000_000 }
  }

  @Test("a rule waits for the delay without a change, ten times that at most")
  func delay() {
    var schedule = EffectSchedule(delay: 0.2, now: Self.at(0))
    #expect(Self.due(schedule) == 200)
    schedule.hear(Self.at(150))
    #expect(Self.due(schedule) == 350)
    for moment in 1...40 { schedule.hear(Self.at(Int64(moment) * 100)) }
    #expect(Self.due(schedule) == 2000)
  }

  @Test("it runs if the values are not those of the last success, and once for each")
  func level() {
    var schedule = EffectSchedule(delay: 0.2, now: Self.at(0))
    check(schedule.begins(Self.values(1), done: Self.values(1), now: Self.at(200)), false)
    #expect(schedule.due == nil)
    schedule.hear(Self.at(1000))
    check(schedule.begins(Self.values(2), done: Self.values(1), now: Self.at(1200)), true)
    // While it runs, a change only waits.
    schedule.hear(Self.at(1300))
    #expect(schedule.due == nil)
    schedule.end(Self.values(2), succeeded: true, now: Self.at(2000))
    #expect(Self.due(schedule) == 1500)
    check(schedule.begins(Self.values(2), done: Self.values(2), now: Self.at(2000)), false)
    #expect(schedule.due == nil)
  }

  @Test("a failure is tried again after 1, 10, 60, 600 s, then every hour")
  func retries() {
    var schedule = EffectSchedule(delay: 0.2, now: Self.at(0))
    var now: Int64 = 200
    for pause: Int64 in [1, 10, 60, 600, 3600, 3600] {
      check(schedule.begins(Self.values(1), done: nil, now: Self.at(now)), true)
      schedule.end(Self.values(1), succeeded: false, now: Self.at(now + 50))
      now += 50 + pause * 1000
      #expect(Self.due(schedule) == now)
    }
    // What is heard and changes nothing leaves the moment as it is; other values are tried at once.
    schedule.hear(Self.at(now - 5000))
    #expect(Self.due(schedule) == now - 4800)
    check(schedule.begins(Self.values(1), done: nil, now: Self.at(now - 4800)), false)
    #expect(Self.due(schedule) == now)
    schedule.hear(Self.at(now - 3000))
    check(schedule.begins(Self.values(2), done: nil, now: Self.at(now - 2800)), true)
    schedule.end(Self.values(2), succeeded: true, now: Self.at(now - 2700))
    #expect(schedule.due == nil)
  }

  @Test("values that cannot be read are looked at again after 10 s")
  func putOff() {
    var schedule = EffectSchedule(delay: 0.2, now: Self.at(0))
    schedule.putOff(Self.at(200))
    #expect(Self.due(schedule) == 10_200)
    check(schedule.begins(Self.values(1), done: nil, now: Self.at(10_200)), true)
  }

  @Test("after ten times in a minute it runs once a minute, until it is quiet for a minute")
  func loop() {
    var schedule = EffectSchedule(delay: 0.2, now: Self.at(0))
    var (now, number): (Int64, Int64) = (200, 0)
    func once(_ schedule: inout EffectSchedule) {
      number += 1
      check(
        schedule.begins(Self.values(number), done: Self.values(number - 1), now: Self.at(now)), true
      )
      schedule.end(Self.values(number), succeeded: true, now: Self.at(now + 10))
      schedule.hear(Self.at(now + 20))
    }
    for run in 1...10 {
      #expect(!schedule.isSlowed)
      once(&schedule)
      #expect(schedule.isSlowed == (run == 10))
      if run < 10 { now = Self.due(schedule) ?? 0 }
    }
    for _ in 0..<3 {
      #expect(Self.due(schedule) == now + 60_000)
      now += 60_000
      once(&schedule)
      #expect(schedule.isSlowed)
    }
    now += 60_000
    check(schedule.begins(Self.values(number), done: Self.values(number), now: Self.at(now)), false)
    schedule.hear(Self.at(now + 1000))
    #expect(!schedule.isSlowed)
    #expect(Self.due(schedule) == now + 1200)
  }
}
