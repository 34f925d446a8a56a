import CLinux

/// What the C library knows of an installed locale (newlocale(3), nl_langinfo(3)). A text that the
/// locale does not have is empty.
///
/// Threads: any. The first object of a locale reads its files, which may wait for a disk.
public final class LocaleData: @unchecked Sendable {
  // Sendable, because a locale object is never changed, and nl_langinfo_l(3) may be called by any
  // thread.
  private let locale: UnsafeMutableRawPointer

  /// Opens the locale of that name, e.g. `de_DE.UTF-8`; nil if it is not installed.
  public init?(_ name: String) {
    guard let locale = prefsfs_new_locale(name) else { return nil }
    self.locale = locale
  }

  deinit { prefsfs_free_locale(locale) }

  private func text(_ item: Int) -> String {
    guard let text = prefsfs_locale_text(locale, item) else { return "" }
    return String(cString: text)
  }

  private func texts(from item: Int, _ count: Int) -> [String] {
    (0..<count).map { text(item + $0) }
  }

  /// The name of the language in English.
  public var languageName: String { text(prefsfs_language_name) }
  /// The code of the language, e.g. `de`.
  public var languageCode: String { text(prefsfs_language_code) }
  /// The names of the days, from Sunday on.
  public var days: [String] { texts(from: prefsfs_first_day, 7) }
  /// The abbreviated names of the days, from Sunday on.
  public var shortDays: [String] { texts(from: prefsfs_first_short_day, 7) }
  /// The names of the months, from January on.
  public var months: [String] { texts(from: prefsfs_first_month, 12) }
  /// The abbreviated names of the months, from January on.
  public var shortMonths: [String] { texts(from: prefsfs_first_short_month, 12) }
  /// The marks of the two halves of a day (AM, PM); empty texts where the locale has none.
  public var dayHalves: [String] {
    [text(prefsfs_morning), text(prefsfs_afternoon)]
  }
  /// The format of a date, for strftime(3).
  public var dateFormat: String { text(prefsfs_date_format) }
  /// The format of a time, for strftime(3).
  public var timeFormat: String { text(prefsfs_time_format) }
  /// The format of a date with its time, for strftime(3).
  public var dateTimeFormat: String { text(prefsfs_date_time_format) }
  /// The sign between the whole part of a number and its fraction.
  public var decimalSeparator: String { text(prefsfs_radix) }
  /// The sign between thousands; may be empty.
  public var thousandsSeparator: String { text(prefsfs_thousands) }
  /// The sign of the currency; may be empty.
  public var currencySymbol: String { text(prefsfs_currency) }
  /// The three letters of the currency (ISO 4217); may be empty.
  public var currencyCode: String {
    String(text(prefsfs_international_currency).prefix(3))
  }
}
