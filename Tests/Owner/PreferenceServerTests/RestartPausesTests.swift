import Testing

@testable import PreferenceServer

@Suite("Pauses before a program is started again") struct RestartPausesTests {
  @Test(
    "a run of 10 s makes the next pause the first one again; shorter runs double it to a minute",
    arguments: [
      (runs: [10_000, 10_000, 10_000, 10_000], pauses: [1000, 1000, 1000, 1000]),
      (
        runs: [5, 5, 5, 5, 5, 5, 5, 5],
        pauses: [1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]
      ),
      (runs: [9999, 9999, 9999, 59_000, 9999], pauses: [1000, 2000, 4000, 1000, 2000]),
      (runs: [0, .max, 0], pauses: [1000, 1000, 2000]),
    ] as [(runs: [Int64], pauses: [Int64])])
  func pauses(_ runs: [Int64], _ pauses: [Int64]) {
    var next = RestartPauses()
    #expect(runs.map { next.next(afterRunOf: $0) } == pauses)
  }
}
