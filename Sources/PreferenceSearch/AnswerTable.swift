import PropertyList

/// What look-ups of keys found, in a hash table with open addressing that is at most half full.
struct AnswerTable: Sendable {
  /// What is known of a key.
  enum Answer: Sendable {
    case value(Value)
    /// No place holds the key.
    case nothing
    /// The key must be looked up.
    case unknown
  }

  private struct Slot: Sendable {
    /// The key's hash with its lowest bit set; 0 where the slot is free.
    var mark: UInt32 = 0
    var key: Key = ""
    var answer = Answer.unknown
  }

  /// How often answers were forgotten, of one key or of all.
  private(set) var changes = 0
  /// How often the answers of all keys were forgotten.
  private(set) var sweeps = 0
  private var slots = [Slot](repeating: Slot(), count: 64)
  private var count = 0

  /// How many keys are kept. A table that would exceed it is emptied.
  private static let largest = 1 << 16

  /// What is known of a key. Cost: a few loads, and one comparison of keys where the key is found.
  func find(_ key: Key) -> Answer {
    slots.withUnsafeBufferPointer { slots in slots[Self.place(of: key, slots)].answer }
  }

  /// The index of the key's slot, or of the empty slot where the key would be.
  private static func place(of key: Key, _ slots: UnsafeBufferPointer<Slot>) -> Int {
    let mark = key.hash | 1
    var place = Int(key.hash >> 1) & (slots.count - 1)
    while slots[place].mark != 0 {
      if slots[place].mark == mark, slots[place].key == key { break }
      place = (place + 1) & (slots.count - 1)
    }
    return place
  }

  private func place(of key: Key) -> Int {
    slots.withUnsafeBufferPointer { Self.place(of: key, $0) }
  }

  /// Keeps what a look-up of the key found; nil: no place holds it.
  mutating func note(_ value: Value?, for key: Key) {
    if count * 2 >= slots.count { grow() }
    let place = place(of: key)
    if slots[place].mark == 0 { count += 1 }
    slots[place] = Slot(mark: key.hash | 1, key: key, answer: value.map { .value($0) } ?? .nothing)
  }

  /// Forgets the answer of one key.
  mutating func forget(_ key: Key) {
    changes += 1
    let place = place(of: key)
    if slots[place].mark != 0 { slots[place].answer = .unknown }
  }

  /// Forgets the answers of all keys.
  mutating func forget() {
    changes += 1
    sweeps += 1
    slots = [Slot](repeating: Slot(), count: 64)
    count = 0
  }

  private mutating func grow() {
    if count >= Self.largest { return forget() }
    let old = slots
    slots = [Slot](repeating: Slot(), count: old.count * 2)
    for slot in old where slot.mark != 0 { slots[place(of: slot.key)] = slot }
  }
}
