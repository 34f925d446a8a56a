import SystemCalls
import Testing

@testable import PreferenceServer

@Suite("Until when a change that is worked at may be made") struct LeaseTests {
  /// Milliseconds after the request, of each look, and what each lease ends at.
  @Test(
    "it is renewed in time for its client to hear of it, for a minute at most",
    arguments: [
      (
        "the client waits 5 s", 5000, [0, 500, 999, 1000, 1500, 2000],
        [5000, 5000, 5000, 6000, 6000, 7000]
      ),
      ("a short patience", 900, [0, 500, 899], [900, 900, 900]),
      ("the owner was stopped", 5000, [4001, 4900, 6000], [5000, 5000, 5000]),
      ("for ever", 1 << 40, [0, 60_000], [1 << 40, 1 << 40]),
    ])
  func renewed(_ name: String, _ patience: Int64, _ looks: [Int64], _ ends: [Int64]) {
    let start = Instant(nanoseconds: 1_000_000_000)
    var lease = Lease(until: start.advanced(milliseconds: patience), now: start)
    let found = looks.map { look -> Int64 in
      let before = lease.end
      let isRenewed = lease.renew(start.advanced(milliseconds: look))
      #expect(isRenewed == (lease.end != before), "\(name) \(look)")
      return lease.end.nanoseconds(after: start) / 1_000_000
    }
    #expect(found == ends, "\(name)")
  }

  @Test("work that takes longer than a minute is given up")
  func longest() {
    let start = Instant(nanoseconds: 1_000_000_000)
    var lease = Lease(until: start.advanced(milliseconds: 5000), now: start)
    for look in stride(from: Int64(0), through: 90_000, by: 200) {
      _ = lease.renew(start.advanced(milliseconds: look))
    }
    #expect(lease.end.nanoseconds(after: start) / 1_000_000 == 60_000)
  }
}
