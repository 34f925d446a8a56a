import Glibc
import Testing

@testable import SystemCalls

/// Times at the extremes of their numbers: nothing traps, and nothing overflows.
@Suite("Clock") struct ClockTests {
  static let extremes: [Int] = [.min, .min + 1, -10_000_000_000, -1, 0, 1, 10_000_000_000, .max]

  @Test("any time of the kernel becomes the nearest timestamp", arguments: extremes)
  func timespecs(_ seconds: Int) {
    for rest in [Int.min, -1, 0, 999_999_999, Int.max] {
      let time = Timestamp(timespec(tv_sec: seconds, tv_nsec: rest))
      if seconds.magnitude > 9_300_000_000, (0..<1_000_000_000).contains(rest) {
        #expect((time.nanoseconds < 0) == (seconds < 0))
      }
      let back = Timestamp(time.timespec)
      #expect(back == time || time.nanoseconds == .min || time.nanoseconds == .max)
      #expect(time.next >= time)
    }
  }

  @Test("sums and differences stop at the largest numbers", arguments: extremes, extremes)
  func arithmetic(_ one: Int, _ other: Int) {
    let (first, second) = (Int64(one), Int64(other))
    let (early, late) = (min(first, second), max(first, second))
    #expect(
      Timestamp(nanoseconds: late).nanoseconds(after: Timestamp(nanoseconds: early)) >= 0)
    #expect(Instant(nanoseconds: late).milliseconds(after: Instant(nanoseconds: early)) >= 0)
    let moment = Instant(nanoseconds: first)
    for later in [moment.advanced(milliseconds: second), moment.advanced(nanoseconds: second)] {
      #expect(second >= 0 ? later >= moment : later <= moment)
    }
    #expect(moment.advanced(seconds: Double(second)) >= Instant(nanoseconds: .min))
  }

  @Test("NaN seconds add nothing, and infinite ones give the last instant")
  func noNumber() {
    #expect(Instant(nanoseconds: 5).advanced(seconds: .nan) == Instant(nanoseconds: 5))
    #expect(Instant(nanoseconds: 5).advanced(seconds: .infinity).nanoseconds == .max)
  }
}
