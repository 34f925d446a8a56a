import PropertyList

/// What is kept beside the values of a list, by key.
///
/// Cost: a look-up, a change and a removal are O(1). Copies share their contents until one of them
/// changes.
package struct MetadataTable: Sendable {
  private var table = KeyTable()
  /// The metadata of the keys, in their order.
  package private(set) var values: [Metadata] = []

  /// Creates an empty table.
  package init() {}

  /// Creates a table of the keys, with their metadata in the same order; nil if a key occurs twice.
  /// Cost: O(keys).
  package init?(keys: [Key], values: [Metadata]) {
    guard keys.count == values.count, let table = KeyTable(keys) else { return nil }
    (self.table, self.values) = (table, values)
  }

  /// The keys, in the order in which they were added, until one is removed.
  package var keys: [Key] { table.keys }

  /// The number of keys.
  package var count: Int { values.count }

  /// The key's metadata; nil if it has none. Setting nil removes the key, and the last key moves to
  /// its position.
  package subscript(key: Key) -> Metadata? {
    get { table.position(of: key).map { values[$0] } }
    set {
      let position = table.position(of: key)
      if let position, let newValue {
        values[position] = newValue
      } else if let position {
        table.remove(at: position)
        values.swapAt(position, values.count - 1)
        values.removeLast()
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

  /// Adds a key that the table does not have.
  private mutating func append(_ key: Key, _ metadata: Metadata) {
    table.append(key)
    values.append(metadata)
  }
}

extension MetadataTable: Equatable {
  /// Whether both have the same metadata for the same keys, in any order.
  package static func == (left: MetadataTable, right: MetadataTable) -> Bool {
    left.count == right.count && zip(left.keys, left.values).allSatisfy { right[$0] == $1 }
  }
}
