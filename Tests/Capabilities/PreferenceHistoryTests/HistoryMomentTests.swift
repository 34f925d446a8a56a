import PreferenceModel
import PropertyList
import SystemCalls
import Testing

@testable import PreferenceHistory

@Suite("Moments of the history") struct HistoryMomentTests {
  private static let day: Int64 = 86_400_000_000_000
  /// The 101st day of the epoch (1970-04-12), at noon.
  private static let now = Timestamp(nanoseconds: 101 * day + day / 2)

  @Test(
    "a text means a time, the number of a change, or nothing",
    arguments: [
      ("7", HistoryMoment.number(7)), ("now", .time(now)), ("today", at(101)),
      ("yesterday", at(100)), ("1970-04-11", at(100)), ("-1d", .time(at(100, half: true))),
      ("-0s", .time(now)), ("1d", .time(at(100, half: true))),
      ("1970-04-11T12:00:00Z", .time(at(100, half: true))),
      ("-2000000000d", .time(Timestamp(nanoseconds: .min))), ("-1x", nil), ("", nil), ("-d", nil),
      ("tomorrow", nil), ("18446744073709551615", .number(.max)), ("18446744073709551616", nil),
    ] as [(String, HistoryMoment?)])
  func texts(_ text: String, _ moment: HistoryMoment?) {
    #expect(HistoryMoment(text, now: Self.now) == moment)
  }

  private static func at(_ day: Int64) -> HistoryMoment { .time(at(day, half: false)) }

  private static func at(_ number: Int64, half: Bool) -> Timestamp {
    Timestamp(nanoseconds: number * day + (half ? day / 2 : 0))
  }

  /// A history with changes at noon of the 90th, 95th and 100th day; the last one stands for three.
  private static func history(gap: Bool = false) -> HistoryContents {
    var entries: [HistoryDirectory.Entry] = []
    for (number, day, first) in [(5, 90, 5), (6, 95, 6), (9, 100, 7)] as [(UInt64, Int64, UInt64)] {
      var record = HistoryRecord(
        [.init(Location(.user, "d"), "K", from: .none, to: .notKept)], time: at(day, half: true),
        source: ChangeSource(.command), count: Int(number - first + 1))
      (record.number, record.first) = (number, first)
      if gap, number == 9 { entries.append(.gap("why")) }
      entries.append(.change(record))
    }
    return HistoryContents(entries)
  }

  @Test(
    "the last change by a moment; none before the oldest one, in the future, or before a gap",
    arguments: [
      ("now", 9, 9), ("1970-04-11", 6, nil), ("1970-04-12", 9, 9), ("1970-04-02", 5, nil),
      ("1970-04-01", 4, nil), ("1970-03-31", nil, nil), ("-2h", 9, 9), ("1970-04-13", nil, nil),
      ("9", 9, 9), ("8", 8, 8), ("7", 7, 7), ("6", 6, 6), ("5", 5, nil), ("4", 4, nil),
      ("3", nil, nil),
      ("10", nil, nil), ("18446744073709551615", nil, nil),
    ] as [(String, UInt64?, UInt64?)])
  func numbers(_ text: String, _ number: UInt64?, _ withGap: UInt64?) throws {
    let moment = try #require(HistoryMoment(text, now: Self.now))
    #expect(Self.history().number(at: moment, now: Self.now) == number)
    #expect(Self.history(gap: true).number(at: moment, now: Self.now) == withGap)
  }

  @Test(
    "a change under a wrong clock counts as made after the one before it",
    arguments: [
      ([90, 10, 100], "1970-04-01", 1), ([90, 10, 100], "1970-02-01", nil),
      ([90, 10, 100], "1970-04-02", 3), ([90, 200, 100], "now", 4),
      ([90, 200, 95], "1970-04-07", 4),
      ([90, 200, 95], "1970-04-02", 2),
    ] as [([Int64], String, UInt64?)])
  func wrongClock(_ days: [Int64], _ text: String, _ number: UInt64?) throws {
    let entries = days.enumerated().map { index, day -> HistoryDirectory.Entry in
      var record = HistoryRecord(
        [.init(Location(.user, "d"), "K", from: .none, to: .notKept)],
        time: Self.at(day, half: true), source: ChangeSource(.command))
      (record.number, record.first) = (UInt64(index) + 2, UInt64(index) + 2)
      return .change(record)
    }
    let moment = try #require(HistoryMoment(text, now: Self.now))
    #expect(HistoryContents(entries).number(at: moment, now: Self.now) == number)
  }

  @Test("keys that change all the time hold state; a morning of changes does not make one of them")
  func busy() {
    let entries = { (hours: Int64) -> HistoryContents in
      HistoryContents(
        (0..<60).map { index in
          var record = HistoryRecord(
            [.init(Location(.user, "d"), "K", from: .none, to: .notKept)],
            time: Timestamp(nanoseconds: Int64(index) * hours * 3_600_000_000_000 / 60),
            source: ChangeSource(.command))
          record.number = UInt64(index + 1)
          return .change(record)
        })
    }
    #expect(entries(3).busyKeys().isEmpty && entries(24 * 30).busyKeys().isEmpty)
    #expect(entries(25).busyKeys() == [RecordedKey("K", at: Location(.user, "d"))])
  }
}
