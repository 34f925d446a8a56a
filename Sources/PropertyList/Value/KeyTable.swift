/// The keys of a list, and a hash table of their positions. With an array of values in the same
/// order it is a dictionary. Unlike one of Swift's, a look-up retains and releases no key.
///
/// Cost: a look-up, a change and a removal are O(1). Copies share their contents until one of them
/// changes.
package struct KeyTable: Sendable {
  /// The keys, in the order in which they were added, until one is removed.
  package private(set) var keys: [Key] = []
  private var index = KeyIndex.none

  /// Creates an empty table.
  package init() {}

  /// Creates a table of the keys; nil if a key occurs twice. Cost: O(keys).
  package init?(_ keys: [Key]) {
    self.keys = keys
    guard makeIndex(for: keys.count) else { return nil }
  }

  /// The position of the key; nil if the table does not have it.
  package func position(of key: Key) -> Int? {
    guard !keys.isEmpty else { return nil }
    return key.withBytes { bytes in
      guard case .found(let position) = index.probe(key.hash, { keys[$0].holds(bytes) })
      else { return nil }
      return position
    }
  }

  /// Adds a key that the table does not have, at the last position.
  package mutating func append(_ key: Key) {
    keys.append(key)
    guard keys.count <= index.capacity else {
      // The keys differ, so this does not fail.
      _ = makeIndex(for: 2 * keys.count)
      return
    }
    if case .free(let slot) = index.probe(key.hash, { _ in false }) {
      index.fill(slot, key.hash, position: keys.count - 1)
    }
  }

  /// Removes the key at the position. The last key moves there.
  package mutating func remove(at position: Int) {
    let last = keys.count - 1
    index.remove(keys[position].hash, position: position) { keys[$0].hash }
    if position != last { index.move(keys[last].hash, from: last, to: position) }
    keys.swapAt(position, last)
    keys.removeLast()
  }

  /// Makes the index anew.
  /// - Parameter capacity: how many keys there is to be room for.
  /// - Returns: false if a key occurs twice.
  private mutating func makeIndex(for capacity: Int) -> Bool {
    let index = KeyIndex(
      count: keys.count, capacity: capacity, hash: { keys[$0].hash },
      isSame: { keys[$0] == keys[$1] })
    guard let index else { return false }
    self.index = index
    return true
  }
}
