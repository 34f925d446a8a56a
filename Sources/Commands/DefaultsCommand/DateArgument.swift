import CLinux
import Glibc
import PropertyList

/// Parses the text of `-date`.
///
/// It accepts `2026-11-21 07:20:00 +0000` and ISO 8601; a day with or without a time, in the local
/// time zone (`2026-11-21`, `11/21/2026`, `2026-11-21 07:20`); and `now`, `today`, `tomorrow` and
/// `yesterday`. A day without a time is noon of that day.
enum DateArgument {
  static func date(_ text: String) -> AbsoluteTime? {
    if case .date(let date)? = Recogniser.value(of: Array(text.utf8), kind: .date) { return date }
    if let date = relative(text.lowercased()) { return date }
    let formats = [
      "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d", "%m/%d/%Y %H:%M:%S",
      "%m/%d/%Y %H:%M", "%m/%d/%Y",
    ]
    for format in formats {
      if let date = local(text, format) { return date }
    }
    return nil
  }

  /// Seconds from 1970 to 2001.
  private static let epoch = 978_307_200

  private static func local(_ text: String, _ format: String) -> AbsoluteTime? {
    var fields = tm()
    // Noon, which stays if the format has no time.
    fields.tm_hour = 12
    fields.tm_isdst = -1
    guard prefsfs_parse_time(text, format, &fields) != 0 else { return nil }
    let day = fields.tm_mday
    let moment = moment(&fields)
    // mktime(3) moves a day that does not exist, such as the 30th of February, to the next month.
    return fields.tm_mday == day ? moment : nil
  }

  private static func relative(_ word: String) -> AbsoluteTime? {
    let days = ["yesterday": -1, "today": 0, "tomorrow": 1]
    var now = time(nil)
    if word == "now" { return AbsoluteTime(seconds: Double(now - epoch)) }
    guard let day = days[word] else { return nil }
    var fields = tm()
    localtime_r(&now, &fields)
    (fields.tm_hour, fields.tm_min, fields.tm_sec, fields.tm_isdst) = (12, 0, 0, -1)
    fields.tm_mday += Int32(day)
    return moment(&fields)
  }

  private static func moment(_ fields: inout tm) -> AbsoluteTime {
    AbsoluteTime(seconds: Double(mktime(&fields) - epoch))
  }
}
