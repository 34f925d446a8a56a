/// A property list: what a preference holds.
///
/// Equality is that of the stored bytes, because a preference that was set to another spelling
/// of "the same" has changed: strings and keys by UTF-8 bytes, reals and dates by bit pattern
/// (a NaN equals itself, -0.0 is not 0.0), an integer never equals a real or a boolean, nor a real of
/// single precision one of double.
public enum Value: Sendable {
  /// Unicode text.
  case string(String)
  /// A whole number from -2^63 to 2^64-1.
  case integer(WideInteger)
  /// A double.
  case real(Double)
  /// A real of single precision: `Float`, and a real of four bytes in a binary list, which keeps its size.
  case single(Float)
  /// True or false.
  case boolean(Bool)
  /// A moment.
  case date(AbsoluteTime)
  /// Bytes.
  case data([UInt8])
  /// A reference inside a keyed archive (CF$UID).
  case uid(UInt64)
  /// Values in order.
  case array([Value])
  /// Values by key.
  case dictionary(ValueDictionary)
}

/// The kinds of a value, with the names that `user.prefs.type` shows.
public enum Kind: String, Sendable, CaseIterable {
  case string, integer, real, boolean, date, data, uid, array, dictionary
}

extension Value {
  /// Which kind it is.
  public var kind: Kind {
    switch self {
    case .string: .string
    case .integer: .integer
    case .real, .single: .real
    case .boolean: .boolean
    case .date: .date
    case .data: .data
    case .uid: .uid
    case .array: .array
    case .dictionary: .dictionary
    }
  }
}

extension Value {
  /// Bytes that a document of the value has, roughly, with so many for the marks around each value and key.
  /// Cost: O(values); no text is looked at.
  func extent(of marks: Int) -> Int {
    switch self {
    case .string(let text): marks + text.utf8.count
    case .data(let data): marks + data.count / 3 * 4
    case .array(let items): items.reduce(2 * marks) { $0 + $1.extent(of: marks) }
    case .dictionary(let items):
      items.reduce(2 * marks) { $0 + marks + $1.key.utf8Count + $1.value.extent(of: marks) }
    case .integer, .real, .single, .boolean, .date, .uid: marks + 16
    }
  }
}

extension Value: Equatable {
  public static func == (left: Value, right: Value) -> Bool {
    switch (left, right) {
    case (.string(let left), .string(let right)): left.hasSameBytes(as: right)
    case (.integer(let left), .integer(let right)): left == right
    case (.real(let left), .real(let right)): left.bitPattern == right.bitPattern
    case (.single(let left), .single(let right)): left.bitPattern == right.bitPattern
    case (.boolean(let left), .boolean(let right)): left == right
    case (.date(let left), .date(let right)): left == right
    case (.data(let left), .data(let right)): left == right
    case (.uid(let left), .uid(let right)): left == right
    case (.array(let left), .array(let right)): left == right
    case (.dictionary(let left), .dictionary(let right)): left == right
    default: false
    }
  }
}

extension Value: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral,
  ExpressibleByFloatLiteral, ExpressibleByBooleanLiteral, ExpressibleByArrayLiteral,
  ExpressibleByDictionaryLiteral
{
  /// A string in source code.
  public init(stringLiteral value: String) { self = .string(value) }
  /// An integer in source code.
  public init(integerLiteral value: Int64) { self = .integer(WideInteger(value)) }
  /// A real in source code.
  public init(floatLiteral value: Double) { self = .real(value) }
  /// A boolean in source code.
  public init(booleanLiteral value: Bool) { self = .boolean(value) }
  /// An array in source code.
  public init(arrayLiteral elements: Value...) { self = .array(elements) }
  /// A dictionary in source code; of a key that stands twice the last one counts.
  public init(dictionaryLiteral elements: (Key, Value)...) {
    self = .dictionary(ValueDictionary(elements.map { (key: $0, value: $1) }))
  }
}
