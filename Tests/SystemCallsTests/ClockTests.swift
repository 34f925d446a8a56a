import Glibc
import Testing

@testable import SystemCalls

/// Numbers from outside at their extremes: nothing traps, and nothing turns round.
@Suite("Clock") struct ClockTests {
  static let extremes: [Int] = [.min, .min + 1, -10_000_000_000, -1, 0, 1, 10_000_000_000, .max]

  @Test("any time of the kernel becomes the nearest moment that there is", arguments: extremes)
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

  @Test("differences and sums stop at the ends", arguments: extremes, extremes)
  func arithmetic(_ one: Int, _ other: Int) {
    let (first, second) = (Int64(one), Int64(other))
    let (early, late) = (min(first, second), max(first, second))
    #expect(
      Timestamp(nanoseconds: late).nanoseconds(after: Timestamp(nanoseconds: early)) >= 0)
    #expect(Instant(nanoseconds: late).milliseconds(after: Instant(nanoseconds: early)) >= 0)
    let moment = Instant(nanoseconds: first)
    for later in [moment.advanced(milliseconds: second), moment.advanced(microseconds: second)] {
      #expect(second >= 0 ? later >= moment : later <= moment)
    }
    #expect(moment.advanced(seconds: Double(second)) >= Instant(nanoseconds: .min))
  }

  @Test("seconds that are no number are none")
  func noNumber() {
    #expect(Instant(nanoseconds: 5).advanced(seconds: .nan) == Instant(nanoseconds: 5))
    #expect(Instant(nanoseconds: 5).advanced(seconds: .infinity).nanoseconds == .max)
  }
}

@Suite("Log") struct LogTests {
  @Test("a line stays one line, whatever stands in it")
  func printable() {
    #expect(Log.printable("d Key\nprefsfs: forged") == "d Key\\u{A}prefsfs: forged")
    #expect(Log.printable("a\u{1B}[2Jb\u{202E}c\r") == "a\\u{1B}[2Jb\\u{202E}c\\u{D}")
    #expect(Log.printable("schön, 日本 100%") == "schön, 日本 100%")
    #expect(Log.printable(String(repeating: "x", count: 100_000)).utf8.count < 4096)
  }
}
