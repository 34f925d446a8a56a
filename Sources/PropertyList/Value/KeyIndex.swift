/// Where in a list each of its keys stands: an open-addressed table of positions, four bytes a slot.
///
/// A slot holds a position and, in the bits that the position leaves, bits of the hash; a probe looks
/// at a key only where these agree. The table is full to four fifths at most: a small one stays in the
/// processor's cache. It knows no keys: who asks says whether the key at a position is the one that is
/// meant. Cost: O(1), a cache line mostly.
struct KeyIndex: Sendable {
  /// What a probe finds.
  enum Probe {
    case found(position: Int)
    /// No such key; the slot would be its.
    case free(slot: Int)
  }

  /// 0 where free; their number is a power of two, or none.
  private var slots: [UInt32]

  /// For lists that are searched without a table.
  static let none = KeyIndex(slots: [])

  private init(slots: [UInt32]) { self.slots = slots }

  /// An empty table for that many keys.
  init(capacity: Int) {
    let least = max(capacity, 2) * 5 / 4 + 1
    let count = 1 << (Int.bitWidth - (least - 1).leadingZeroBitCount)
    slots = Array(repeating: 0, count: count)
  }

  /// How many keys there may be.
  var capacity: Int { slots.count * 4 / 5 }

  private var mask: UInt32 { UInt32(truncatingIfNeeded: slots.count &- 1) }

  @inline(__always)
  func probe(_ hash: UInt64, _ isAt: (_ position: Int) -> Bool) -> Probe {
    let mask = self.mask
    let tag = UInt32(truncatingIfNeeded: hash >> 32) & ~mask
    return slots.withUnsafeBufferPointer { slots in
      var slot = Int(UInt32(truncatingIfNeeded: hash) & mask)
      while slots[slot] != 0 {
        let position = Int(slots[slot] & mask) &- 1
        if slots[slot] & ~mask == tag, isAt(position) { return .found(position: position) }
        slot = (slot &+ 1) & Int(mask)
      }
      return .free(slot: slot)
    }
  }

  /// The key with the hash stands at the position; the slot is the one that a probe found.
  @inline(__always)
  mutating func fill(_ slot: Int, _ hash: UInt64, position: Int) {
    let mask = self.mask
    slots[slot] =
      (UInt32(truncatingIfNeeded: hash >> 32) & ~mask) | UInt32(truncatingIfNeeded: position &+ 1)
  }

  /// The key with the hash has moved.
  mutating func move(_ hash: UInt64, from old: Int, to new: Int) {
    fill(slot(hash, of: old), hash, position: new)
  }

  /// Forgets a position; what was pushed aside by it moves up.
  mutating func remove(_ hash: UInt64, position: Int, hashAt: (_ position: Int) -> UInt64) {
    var hole = slot(hash, of: position)
    var next = hole
    while true {
      next = (next + 1) & Int(mask)
      guard slots[next] != 0 else { break }
      let home = Int(UInt32(truncatingIfNeeded: hashAt(Int(slots[next] & mask) - 1)) & mask)
      // It may move up unless its home lies behind the hole.
      guard (next - home) & Int(mask) >= (next - hole) & Int(mask) else { continue }
      slots[hole] = slots[next]
      hole = next
    }
    slots[hole] = 0
  }

  private func slot(_ hash: UInt64, of position: Int) -> Int {
    var slot = Int(UInt32(truncatingIfNeeded: hash) & mask)
    while Int(slots[slot] & mask) - 1 != position { slot = (slot + 1) & Int(mask) }
    return slot
  }
}
