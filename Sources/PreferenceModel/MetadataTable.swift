import PropertyList

/// What is kept beside the values of a list, by key.
///
/// A look-up compares hashes, and keys only where those agree. Swift's `Dictionary` retains,
/// compares and releases each key that it passes: a fifth of the time of a look-up in the store,
/// and more or less of it with the seed of the hashes.
///
/// Cost: a look-up, a change and a removal are O(1). Copies share their contents until one of them
/// changes.
package struct MetadataTable: Sendable {
  /// The keys, in the order in which they were added, until one is removed.
  package private(set) var keys: [Key] = []
  /// The metadata of the keys, in their order.
  package private(set) var values: [Metadata] = []
  private var index = KeyIndex.none

  /// Creates an empty table.
  package init() {}

  /// Creates a table of the keys, with their metadata in the same order; nil if a key occurs twice.
  /// Cost: O(keys).
  package init?(keys: [Key], values: [Metadata]) {
    guard keys.count == values.count else { return nil }
    (self.keys, self.values) = (keys, values)
    guard makeIndex(for: keys.count) else { return nil }
  }

  /// The number of keys.
  package var count: Int { keys.count }

  /// The key's metadata; nil if it has none. Setting nil removes the key, and the last key moves to
  /// its position.
  package subscript(key: Key) -> Metadata? {
    get { position(of: key).map { values[$0] } }
    set {
      let position = position(of: key)
      if let position, let newValue {
        values[position] = newValue
      } else if let position {
        remove(position)
      } else if let newValue {
        append(key, newValue)
      }
    }
  }

  /// Returns a table of the keys for which the body returns metadata. Cost: O(keys).
  package func compactMap(_ body: (Key, Metadata) -> Metadata?) -> MetadataTable {
    var result = MetadataTable()
    for (key, metadata) in zip(keys, values) {
      if let kept = body(key, metadata) { result.append(key, kept) }
    }
    return result
  }

  private func position(of key: Key) -> Int? {
    guard !keys.isEmpty, case .found(let position) = index.probe(key.hash, { keys[$0] == key })
    else { return nil }
    return position
  }

  /// Adds a key that the table does not have.
  private mutating func append(_ key: Key, _ metadata: Metadata) {
    keys.append(key)
    values.append(metadata)
    guard keys.count <= index.capacity else {
      // The keys differ, so this does not fail.
      _ = makeIndex(for: 2 * keys.count)
      return
    }
    if case .free(let slot) = index.probe(key.hash, { _ in false }) {
      index.fill(slot, key.hash, position: keys.count - 1)
    }
  }

  private mutating func remove(_ position: Int) {
    let last = keys.count - 1
    index.remove(keys[position].hash, position: position) { keys[$0].hash }
    if position != last { index.move(keys[last].hash, from: last, to: position) }
    keys.swapAt(position, last)
    values.swapAt(position, last)
    keys.removeLast()
    values.removeLast()
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

extension MetadataTable: Equatable {
  /// Whether both have the same metadata for the same keys, in any order.
  package static func == (left: MetadataTable, right: MetadataTable) -> Bool {
    left.count == right.count && zip(left.keys, left.values).allSatisfy { right[$0] == $1 }
  }
}
