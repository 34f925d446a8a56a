import PropertyList

/// What look-ups of keys found.
struct AnswerTable: Sendable {
  /// What is known of a key.
  enum Answer: Sendable {
    case value(Value)
    /// No place holds the key.
    case nothing
    /// The key must be looked up.
    case unknown
  }

  /// How often answers were forgotten, of one key or of all.
  private(set) var changes = 0
  /// How often the answers of all keys were forgotten.
  private(set) var sweeps = 0
  private var values: ValueDictionary = [:]
  /// The keys that no place holds. `KeyFilter` answers for most of them.
  private var absent: Set<Key> = []

  /// How many answers are kept. A table that would exceed it is emptied.
  private static let largest = 1 << 16

  /// What is known of a key. Cost: O(1).
  func find(_ key: Key) -> Answer {
    if let value = values[key] { return .value(value) }
    return absent.contains(key) ? .nothing : .unknown
  }

  /// Keeps what a look-up of the key found; nil if no place holds it.
  mutating func note(_ value: Value?, for key: Key) {
    if values.count + absent.count >= Self.largest { forget() }
    values[key] = value
    if value == nil { absent.insert(key) } else { absent.remove(key) }
  }

  mutating func forget(_ key: Key) {
    changes += 1
    values[key] = nil
    absent.remove(key)
  }

  /// Forgets the answers of all keys.
  mutating func forget() {
    changes += 1
    sweeps += 1
    (values, absent) = ([:], [])
  }
}
