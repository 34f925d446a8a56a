import PropertyList

/// The values of a list as it is on the disk: decoded, or packed if the list is large.
///
/// A change decodes a packed list as a whole: O(keys). A packed list decodes the value at each
/// look-up, which then takes a little longer.
package enum ListValues: Sendable {
  case decoded(ValueDictionary)
  case packed(PackedDictionary)

  /// The values in a list's bytes, packed if the list is a large binary one; nil if it is not.
  package init?(packing bytes: [UInt8]) throws(FormatError) {
    guard let packed = try PackedDictionary(bytes) else { return nil }
    self = .packed(packed)
  }

  /// Packs the values, if they are many. Cost: O(1) if not; else that of writing a binary list, and
  /// of reading it.
  package init(packingIfLarge values: ValueDictionary) {
    self = PackedDictionary(values).map { .packed($0) } ?? .decoded(values)
  }

  /// Whether the values are packed.
  package var isPacked: Bool { if case .packed = self { true } else { false } }

  /// Reads a binary list of a message, and packs it if it is a large one; nil if it is not a
  /// dictionary.
  package init?(binary bytes: [UInt8]) throws(FormatError) {
    // Most of the lists of a search list are empty.
    if bytes == Self.emptyBinary {
      self = .decoded([:])
    } else if let packed = try PackedDictionary(bytes, limits: .message) {
      self = .packed(packed)
    } else {
      guard case .dictionary(let values) = try Document.read(bytes, limits: .message).value
      else { return nil }
      self = .decoded(values)
    }
  }

  /// The bytes of a binary list with the values. Cost: O(1) if they are packed; else O(keys).
  package var binary: [UInt8] {
    switch self {
    case .decoded(let values) where values.isEmpty: Self.emptyBinary
    case .decoded(let values): Document.binary(.dictionary(values))
    case .packed(let values): values.bytes
    }
  }

  private static let emptyBinary = Document.binary(.dictionary([:]))

  package subscript(key: Key) -> Value? {
    get {
      switch self {
      case .decoded(let values): values[key]
      case .packed(let values): values[key]
      }
    }
    set { change { $0[key] = newValue } }
  }

  /// Sorts the keys, so that the list is written in this order. A packed list is not sorted,
  /// because it is not written as long as it is packed.
  package mutating func sort() {
    if case .decoded = self { change { $0.sort() } }
  }

  private mutating func change(_ body: (inout ValueDictionary) -> Void) {
    var values = dictionary
    self = .decoded([:])
    body(&values)
    self = .decoded(values)
  }

  package var count: Int {
    switch self {
    case .decoded(let values): values.count
    case .packed(let values): values.count
    }
  }

  package var isEmpty: Bool { count == 0 }

  /// The keys. Cost: O(keys).
  package var keys: [Key] {
    switch self {
    case .decoded(let values): values.keys
    case .packed(let values): values.keys
    }
  }

  /// The values, decoded. Cost: O(1), or O(keys) if they are packed.
  package var dictionary: ValueDictionary {
    switch self {
    case .decoded(let values): values
    case .packed(let values): values.unpacked
    }
  }
}

extension ListValues: Equatable {
  package static func == (left: ListValues, right: ListValues) -> Bool {
    left.dictionary == right.dictionary
  }
}
