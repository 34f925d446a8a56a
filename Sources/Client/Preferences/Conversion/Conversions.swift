import Foundation
internal import PropertyList

/// The implicit conversions: what each getter of `UserDefaults` makes of a stored value.
///
/// The rules are Apple's: NSUserDefaults.h and the articles of the getters. A boolean as a double
/// follows what macOS does (swift-corelibs-foundation, pull requests 4782 and 4783), which the
/// header denies. A real keeps the precision that it was set with: `string` of `Float(12.34)` is
/// 12.34. Where Apple's documents are silent, a conversion loses nothing (a number that does not
/// fit becomes the nearest that does). Brackets hold what Foundation's UserDefaults on Linux
/// (swift-corelibs-foundation 6.3) does, where that differs.
///
/// | getter | string | integer | real | boolean | date | data | array | dictionary |
/// |---|---|---|---|---|---|---|---|---|
/// | `string` | itself | decimal | shortest, no `.0` | `1`, `0` | nil | nil | nil | nil |
/// | `integer` | digits at its beginning, else 0 | itself | towards 0 [0.5 is 0, 1e20 is Int.min] | 1, 0 | 0 | 0 | 0 | 0 |
/// | `double`, `float` | number at its beginning, else 0 | itself | itself | 1, 0 | 0 | 0 | 0 | 0 |
/// | `bool` | YES, true, 1, 1.0 in any case [NSString.boolValue: Y3, t, 2] | not 0 | not 0 | itself | false | false | false | false |
/// | `url` | a file's path, `~` is the home directory | nil | nil | nil | nil | an archived URL, else nil [crash] | nil | nil |
/// | `data` | nil | nil | nil | nil | nil | itself | nil | nil |
/// | `array` | nil | nil | nil | nil | nil | nil | itself | nil |
/// | `stringArray` | nil | nil | nil | nil | nil | nil | itself if all are strings, else nil | nil |
/// | `dictionary` | nil | nil | nil | nil | nil | nil | nil | itself |
/// | `object` | String | Int, UInt64 above Int.max | Double; of single precision NSNumber, which is cast to Float and to Double | Bool | Date | Data | [Any] | [String: Any] |
enum Conversions {
  static func string(_ value: Value) -> String? {
    switch value {
    case .string(let text): text
    case .integer(let number): number.description
    case .real(let number): text(of: number)
    case .single(let number): text(of: number)
    case .boolean(let flag): flag ? "1" : "0"
    case .date, .data, .uid, .array, .dictionary: nil
    }
  }

  /// Returns the text of a real as NSNumber's stringValue gives it: without a fraction of 0.
  private static func text(of number: some BinaryFloatingPoint & CustomStringConvertible) -> String
  {
    let text = number.description
    return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
  }

  static func integer(_ value: Value) -> Int {
    switch value {
    case .string(let text): NumberPrefix(text).integer
    case .integer(let number): number.signed.map { Int($0) } ?? .max
    case .real(let number): nearest(number)
    case .single(let number): nearest(Double(number))
    case .boolean(let flag): flag ? 1 : 0
    case .date, .data, .uid, .array, .dictionary: 0
    }
  }

  /// Returns the number rounded towards 0, or the nearest Int if it does not fit; 0 for NaN.
  private static func nearest(_ number: Double) -> Int {
    if number.isNaN { return 0 }
    return Int(exactly: number.rounded(.towardZero)) ?? (number < 0 ? .min : .max)
  }

  static func double(_ value: Value) -> Double {
    switch value {
    case .string(let text): NumberPrefix(text).double
    case .integer(let number): number.double
    case .real(let number): number
    case .single(let number): Double(number)
    case .boolean(let flag): flag ? 1 : 0
    case .date, .data, .uid, .array, .dictionary: 0
    }
  }

  static func boolean(_ value: Value) -> Bool {
    switch value {
    case .string(let text): ["yes", "true", "1", "1.0"].contains(text.lowercased())
    case .integer(let number): number != 0
    case .real(let number): number != 0
    case .single(let number): number != 0
    case .boolean(let flag): flag
    case .date, .data, .uid, .array, .dictionary: false
    }
  }

  static func url(_ value: Value) -> URL? {
    switch value {
    case .string(let path): URL(fileURLWithPath: (path as NSString).expandingTildeInPath)
    case .data(let data): ArchivedURL.url(data)
    default: nil
    }
  }

  static func data(_ value: Value) -> Data? { Data.value(from: value) }

  static func strings(_ value: Value) -> [String]? { [String].value(from: value) }
}
