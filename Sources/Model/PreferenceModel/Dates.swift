import PropertyList
import SystemCalls

extension AbsoluteTime {
  /// Seconds from 1970 to 2001.
  private static let epoch = 978_307_200.0

  /// The moment that many milliseconds after 1970.
  package init(milliseconds: Int64) {
    self.init(seconds: Double(milliseconds) / 1000 - Self.epoch)
  }

  /// The same moment, as property lists have it.
  package init(_ time: Timestamp) {
    self.init(seconds: Double(time.nanoseconds) / 1e9 - Self.epoch)
  }
}

extension Timestamp {
  /// ISO 8601, UTC, to the second.
  package var text: String {
    // Whole seconds: a Double would round the last nanoseconds of one up.
    AbsoluteTime(milliseconds: Int64(timespec.tv_sec) * 1000).text
  }

  /// The nearest time that a file can have.
  package init(_ time: AbsoluteTime) {
    let nanoseconds = (time.seconds + 978_307_200) * 1e9
    self.init(
      nanoseconds: nanoseconds.isNaN
        ? .max : Int64(clamping: Int128(max(-9e18, min(9e18, nanoseconds)))))
  }
}
