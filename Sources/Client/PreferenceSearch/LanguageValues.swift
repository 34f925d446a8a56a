import Glibc
import PreferenceModel
import PropertyList
import StoreAccess
import SystemCalls

/// The values of one language: the keys that NSUserDefaults' language domains have, under the names
/// of GNUstep's language files.
///
/// They come from `preferences/languages/<LANGUAGE>.plist` in XDG_DATA_HOME or a directory of
/// XDG_DATA_DIRS, else from the C library's data of an installed locale of the language. A language
/// that is found in neither has no values.
enum LanguageValues {
  /// Reads the values of a language, e.g. `de` or `pt-BR`; empty if there are none. Waits for a
  /// disk. A file that cannot be read, or is not a dictionary, is passed over.
  static func read(_ language: String) -> ValueDictionary {
    guard isName(language) else { return [:] }
    for directory in Surroundings.dataDirectories {
      let path = "\(directory)/preferences/languages/\(language).plist"
      guard let bytes = try? Files.regularContents(path, limit: 1 << 20) else { continue }
      if case .dictionary(let values)? = try? Document.read(bytes).value { return values }
    }
    return localeNames(language).lazy.compactMap { LocaleData($0) }.first.map(values) ?? [:]
  }

  /// Whether the text can be a part of a file name.
  private static func isName(_ language: String) -> Bool {
    !language.isEmpty && language.utf8.count <= 64 && !language.hasPrefix(".")
      && !language.utf8.contains(0x2F) && !language.utf8.contains(0)
  }

  // MARK: - Locales

  /// The names that a locale of the language may have, the likeliest first.
  static func localeNames(_ language: String) -> [String] {
    let parts = language.split(whereSeparator: { $0 == "-" || $0 == "_" }).map(String.init)
    guard let code = parts.first else { return [] }
    // A script (zh-Hans) decides the region too; it is no part of a locale's name.
    let region = parts.dropFirst().first { $0.utf8.count == 2 || $0.utf8.count == 3 }
    let script = parts.dropFirst().first { $0.utf8.count == 4 }
    let usual = regions[script.map { "\(code)-\($0)" } ?? code] ?? regions[code]
    let all = [region?.uppercased(), region == nil ? usual : nil, code.uppercased()]
    return all.compactMap { $0 }.map { "\(code)_\($0).UTF-8" } + ["\(code).UTF-8"]
  }

  /// The usual regions of languages, where the region's code is not that of the language.
  private static let regions: [String: String] = [
    "en": "US", "ja": "JP", "zh": "CN", "zh-Hans": "CN", "zh-Hant": "TW", "ko": "KR", "da": "DK",
    "sv": "SE", "cs": "CZ", "el": "GR", "he": "IL", "uk": "UA", "ar": "EG", "hi": "IN", "vi": "VN",
    "nb": "NO", "nn": "NO", "et": "EE", "sl": "SI", "sr": "RS", "ca": "ES", "eu": "ES", "gl": "ES",
    "ga": "IE", "cy": "GB", "fa": "IR", "ms": "MY", "kk": "KZ", "ka": "GE", "hy": "AM", "be": "BY",
    "bn": "BD", "ta": "IN", "te": "IN", "sq": "AL", "bs": "BA", "sw": "KE", "ur": "PK", "af": "ZA",
  ]

  /// The values of a locale, by the keys of language domains.
  private static func values(_ locale: LocaleData) -> ValueDictionary {
    let array = { (texts: [String]) in Value.array(texts.map { .string($0) }) }
    return [
      "NSLanguageName": .string(locale.languageName),
      "NSLanguageCode": .string(locale.languageCode),
      "NSWeekDayNameArray": array(locale.days),
      "NSShortWeekDayNameArray": array(locale.shortDays),
      "NSMonthNameArray": array(locale.months),
      "NSShortMonthNameArray": array(locale.shortMonths),
      "NSAMPMDesignation": array(locale.dayHalves),
      "NSDateFormatString": .string(locale.dateFormat),
      "NSShortDateFormatString": .string(locale.dateFormat),
      "NSTimeFormatString": .string(locale.timeFormat),
      "NSTimeDateFormatString": .string(locale.dateTimeFormat),
      "NSShortTimeDateFormatString": .string(locale.dateTimeFormat),
      "NSDecimalSeparator": .string(locale.decimalSeparator),
      "NSThousandsSeparator": .string(locale.thousandsSeparator),
      "NSCurrencySymbol": .string(locale.currencySymbol),
      "NSInternationalCurrencyString": .string(locale.currencyCode),
    ]
  }
}
