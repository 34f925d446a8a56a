/// A hash table that maps keys to their positions in a list. It uses open addressing and has four
/// bytes for each slot.
///
/// A slot holds a position and, in the bits that the position does not need, bits of the key's
/// hash. A probe compares keys only where these bits agree. At most four fifths of the slots are in
/// use. The table does not hold the keys: the caller compares the key at a position with its own.
/// Cost: O(1), mostly a single cache line.
package struct KeyIndex: Sendable {
  /// The result of a probe.
  package enum Probe {
    /// The key is in the list, at this position.
    case found(position: Int)
    /// The key is not in the list; it can be added in this slot.
    case free(slot: Int)
  }

  /// The slots; a free one is 0. Their number is a power of two, or 0 in `none`.
  private var slots: [UInt32]

  /// A table without slots, for lists that are searched without a table. It must not be probed.
  package static let none = KeyIndex(slots: [])

  private init(slots: [UInt32]) { self.slots = slots }

  /// Creates an empty table with room for at least `capacity` keys.
  package init(capacity: Int) {
    let least = max(capacity, 2) * 5 / 4 + 1
    let count = 1 << (Int.bitWidth - (least - 1).leadingZeroBitCount)
    slots = Array(repeating: 0, count: count)
  }

  /// Creates a table of `count` keys, which are at the positions from 0 on; nil if a key occurs
  /// twice.
  /// - Parameters:
  ///   - capacity: how many keys there is to be room for, if more.
  ///   - hash: returns the hash of the key at a position.
  ///   - isSame: whether the keys at two positions are equal.
  @inline(__always)
  package init?(
    count: Int, capacity: Int = 0, hash: (_ position: Int) -> UInt32,
    isSame: (_ position: Int, _ other: Int) -> Bool
  ) {
    self.init(capacity: max(count, capacity))
    let mask = self.mask
    // With one access for all keys: checking each time that the slots are not shared takes longer
    // than filling one.
    let areUnique = slots.withUnsafeMutableBufferPointer { slots in
      for position in 0..<count {
        let hash = hash(position)
        var slot = Int(hash & mask)
        while slots[slot] != 0 {
          let isLikely = slots[slot] & ~mask == hash & ~mask
          if isLikely, isSame(Int(slots[slot] & mask) &- 1, position) { return false }
          slot = (slot &+ 1) & Int(mask)
        }
        slots[slot] = hash & ~mask | UInt32(truncatingIfNeeded: position &+ 1)
      }
      return true
    }
    guard areUnique else { return nil }
  }

  /// How many keys the table has room for.
  package var capacity: Int { slots.count * 4 / 5 }

  private var mask: UInt32 { UInt32(truncatingIfNeeded: slots.count &- 1) }

  /// Looks for the key with the hash.
  /// - Parameter isAt: whether the key at a position is the one that is looked for.
  @inline(__always)
  package func probe(_ hash: UInt32, _ isAt: (_ position: Int) -> Bool) -> Probe {
    let mask = self.mask
    let tag = hash & ~mask
    return slots.withUnsafeBufferPointer { slots in
      var slot = Int(hash & mask)
      while slots[slot] != 0 {
        let position = Int(slots[slot] & mask) &- 1
        if slots[slot] & ~mask == tag, isAt(position) { return .found(position: position) }
        slot = (slot &+ 1) & Int(mask)
      }
      return .free(slot: slot)
    }
  }

  /// Records that the key with the hash is at the position.
  /// - Parameter slot: the free slot that a probe returned for the key.
  @inline(__always)
  package mutating func fill(_ slot: Int, _ hash: UInt32, position: Int) {
    let mask = self.mask
    slots[slot] = hash & ~mask | UInt32(truncatingIfNeeded: position &+ 1)
  }

  /// Records that the key with the hash has moved from one position to another.
  package mutating func move(_ hash: UInt32, from old: Int, to new: Int) {
    fill(slot(hash, of: old), hash, position: new)
  }

  /// Removes the entry of a position. Entries behind it that collided with it move up.
  /// - Parameters:
  ///   - hash: the hash of the key at the position.
  ///   - hashAt: returns the hash of the key at another position.
  package mutating func remove(_ hash: UInt32, position: Int, hashAt: (_ position: Int) -> UInt32) {
    var hole = slot(hash, of: position)
    var next = hole
    while true {
      next = (next + 1) & Int(mask)
      guard slots[next] != 0 else { break }
      let home = Int(hashAt(Int(slots[next] & mask) - 1) & mask)
      // An entry may move up unless the slot where its probe begins lies behind the hole.
      guard (next - home) & Int(mask) >= (next - hole) & Int(mask) else { continue }
      slots[hole] = slots[next]
      hole = next
    }
    slots[hole] = 0
  }

  /// Returns the slot that holds the position of the key with the hash, which must be there.
  private func slot(_ hash: UInt32, of position: Int) -> Int {
    var slot = Int(hash & mask)
    while Int(slots[slot] & mask) - 1 != position { slot = (slot + 1) & Int(mask) }
    return slot
  }
}
