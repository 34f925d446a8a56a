/// Finds numbers by a hash of what they stand for, in 8 bytes a slot, of which at most three
/// quarters are in use.
///
/// It consists of 256 tables with open addressing. So one that grows moves 1/256 of the numbers:
/// among a million of them, no insertion takes longer than some 50 us. A slot has 16 bits of the
/// hash beside its number, from which its place follows, so that no hash is computed again.
struct HashIndex {
  fileprivate struct Table {
    /// 16 bits of the hash, then 48 of the number; 0: free.
    var slots: [UInt64] = [0, 0]
    var count = 0
  }

  private var tables = Array(repeating: Table(), count: 256)

  /// How many bits a number has. The smallest number is 1.
  static let numberBits: UInt64 = 48
  /// The largest number.
  static let largest: UInt64 = 1 << numberBits - 1

  /// A number that may be the one that is looked for, and where it was found.
  struct Candidate {
    let number: UInt64
    fileprivate let slot: Int
  }

  /// Returns the first number whose 16 bits of a hash are those of this one; nil: there is none.
  /// The caller compares what the number stands for.
  /// - Parameter last: a candidate that was not the right one; the next one is returned.
  func candidate(_ hash: UInt64, after last: Candidate? = nil) -> Candidate? {
    tables[Self.table(hash)].candidate(Self.tag(hash), after: last?.slot)
  }

  /// Adds a number, which must not be there yet.
  mutating func insert(_ number: UInt64, _ hash: UInt64) {
    tables[Self.table(hash)].insert(Self.tag(hash) << Self.numberBits | number)
  }

  /// Removes the number, if it is there.
  mutating func remove(_ number: UInt64, _ hash: UInt64) {
    tables[Self.table(hash)].remove(Self.tag(hash), number)
  }

  private static func table(_ hash: UInt64) -> Int { Int(hash & 0xFF) }
  private static func tag(_ hash: UInt64) -> UInt64 { hash >> numberBits }
}

extension HashIndex.Table {
  private var mask: Int { slots.count - 1 }

  /// The slot where the probe for the tag begins: its first bits.
  private func home(_ tag: UInt64) -> Int {
    let bits = slots.count.trailingZeroBitCount
    return Int(bits <= 16 ? tag >> (16 - bits) : tag << (bits - 16))
  }

  func candidate(_ tag: UInt64, after last: Int?) -> HashIndex.Candidate? {
    var slot = last.map { ($0 + 1) & mask } ?? home(tag)
    while slots[slot] != 0 {
      if slots[slot] >> 48 == tag {
        return HashIndex.Candidate(number: slots[slot] & HashIndex.largest, slot: slot)
      }
      slot = (slot + 1) & mask
    }
    return nil
  }

  mutating func insert(_ entry: UInt64) {
    if (count + 1) * 4 > slots.count * 3 { resize(to: slots.count * 2) }
    put(entry)
    count += 1
  }

  private mutating func put(_ entry: UInt64) {
    var slot = home(entry >> 48)
    while slots[slot] != 0 { slot = (slot + 1) & mask }
    slots[slot] = entry
  }

  mutating func remove(_ tag: UInt64, _ number: UInt64) {
    var hole = home(tag)
    while slots[hole] != tag << 48 | number {
      if slots[hole] == 0 { return }
      hole = (hole + 1) & mask
    }
    count -= 1
    var next = hole
    while true {
      next = (next + 1) & mask
      guard slots[next] != 0 else { break }
      // An entry may move up unless the slot where its probe begins lies behind the hole.
      let distance = (next - home(slots[next] >> 48)) & mask
      guard distance >= (next - hole) & mask else { continue }
      slots[hole] = slots[next]
      hole = next
    }
    slots[hole] = 0
    if slots.count > 2, count * 8 < slots.count { resize(to: slots.count / 2) }
  }

  private mutating func resize(to size: Int) {
    let old = slots
    slots = Array(repeating: 0, count: size)
    for entry in old where entry != 0 { put(entry) }
  }
}
