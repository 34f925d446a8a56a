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
  private var keys = KeyTable()
  /// What is known of the keys, in their order.
  private var answers: [Answer] = []

  /// How many keys are kept. A table that would exceed it is emptied.
  private static let largest = 1 << 16

  /// What is known of a key. Cost: O(1).
  func find(_ key: Key) -> Answer { keys.position(of: key).map { answers[$0] } ?? .unknown }

  /// Keeps what a look-up of the key found; nil: no place holds it.
  mutating func note(_ value: Value?, for key: Key) {
    let answer = value.map { Answer.value($0) } ?? .nothing
    if let position = keys.position(of: key) { return answers[position] = answer }
    if answers.count >= Self.largest { forget() }
    keys.append(key)
    answers.append(answer)
  }

  /// Forgets the answer of one key.
  mutating func forget(_ key: Key) {
    changes += 1
    if let position = keys.position(of: key) { answers[position] = .unknown }
  }

  /// Forgets the answers of all keys.
  mutating func forget() {
    changes += 1
    sweeps += 1
    keys = KeyTable()
    answers = []
  }
}
