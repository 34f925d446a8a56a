/// A property list value: what a preference holds.
///
/// Two values are equal if they are stored as the same bytes: a preference that was set to another
/// spelling of "the same" value has changed. Strings and keys compare by UTF-8 bytes, reals and
/// dates by bit pattern (a NaN equals itself, -0.0 is not 0.0). An integer never equals a real or a
/// boolean, and a real of single precision never equals one of double precision.
public enum Value: Sendable {
  /// Unicode text.
  case string(String)
  /// A whole number from -2^63 to 2^64-1.
  case integer(WideInteger)
  /// A real of double precision.
  case real(Double)
  /// A real of single precision, which is a real of four bytes in a binary list. It is kept apart
  /// from `real` so that it has four bytes again when the list is written.
  case single(Float)
  /// True or false.
  case boolean(Bool)
  /// A point in time.
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

/// The type of a value. The raw values are the names that `user.prefs.type` shows.
public enum Kind: String, Sendable, CaseIterable {
  case string, integer, real, boolean, date, data, uid, array, dictionary

  /// The kind with its article, for sentences: "an integer".
  public var noun: String {
    switch self {
    case .integer, .array: "an \(rawValue)"
    case .uid: "a UID"
    case .data: "data"
    default: "a \(rawValue)"
    }
  }
}

extension Value {
  /// The kind of the value; a real of either precision is `.real`.
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
  /// The text of a string; nil for other kinds.
  package var string: String? { if case .string(let text) = self { text } else { nil } }

  /// The number of an integer; nil above 2^63-1, and for other kinds.
  package var signed: Int64? { if case .integer(let number) = self { number.signed } else { nil } }

  /// The entries of a dictionary; nil for other kinds.
  package var dictionary: ValueDictionary? {
    if case .dictionary(let entries) = self { entries } else { nil }
  }

  /// The strings in an array; nil for other kinds.
  package var strings: [String]? {
    if case .array(let items) = self { items.compactMap(\.string) } else { nil }
  }

  /// The value of a key of a dictionary, or the element of an array with that number; nil if there
  /// is none.
  package func part(named entry: String) -> Value? {
    switch self {
    case .dictionary(let entries): entries[Key(entry)]
    case .array(let items):
      Int(entry).flatMap { items.indices.contains($0) ? items[$0] : nil }
    default: nil
    }
  }
}

extension Value {
  /// Estimates the size of a document of the value in bytes. Cost: O(values).
  /// - Parameter marks: the bytes that the format needs around each value and key.
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

extension Value {
  /// Returns the value with each value in it that is no container transformed. Cost: O(values).
  package func mappingLeaves(_ transform: (Value) -> Value) -> Value {
    switch self {
    case .array(let items): .array(items.map { $0.mappingLeaves(transform) })
    case .dictionary(let items): .dictionary(items.mapValues { $0.mappingLeaves(transform) })
    default: transform(self)
    }
  }
}

extension Value {
  /// The value as XML gives it back: reals of 32 bits have become reals. Cost: O(values).
  var withoutSingles: Value {
    mappingLeaves { if case .single(let number) = $0 { .real(Double(number)) } else { $0 } }
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
  /// Creates a string from a literal.
  public init(stringLiteral value: String) { self = .string(value) }
  /// Creates an integer from a literal.
  public init(integerLiteral value: Int64) { self = .integer(WideInteger(value)) }
  /// Creates a real of double precision from a literal.
  public init(floatLiteral value: Double) { self = .real(value) }
  /// Creates a boolean from a literal.
  public init(booleanLiteral value: Bool) { self = .boolean(value) }
  /// Creates an array from a literal.
  public init(arrayLiteral elements: Value...) { self = .array(elements) }
  /// Creates a dictionary from a literal. If a key occurs twice, the last value counts.
  public init(dictionaryLiteral elements: (Key, Value)...) {
    self = .dictionary(ValueDictionary(elements.map { (key: $0, value: $1) }))
  }
}
