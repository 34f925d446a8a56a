import SystemCalls

/// When something is due for each of some nodes.
///
/// Cost: `set` and `remove` O(1); `removeDue` O(nodes), and a look where nothing is due.
struct NodeTimers {
  private var due: [NodeID: Instant] = [:]
  /// When the first is due; nil if nothing is. It may be early where a later time was set for a
  /// node.
  private(set) var earliest: Instant?

  /// Sets the time of a node, also of one that has a time already.
  mutating func set(_ id: NodeID, _ moment: Instant) {
    due[id] = moment
    earliest = min(earliest ?? moment, moment)
  }

  /// Forgets the time of a node.
  mutating func remove(_ id: NodeID) { due[id] = nil }

  /// Removes and returns the nodes that are due; nil means all nodes.
  mutating func removeDue(at end: Instant?) -> [NodeID] {
    if let end, earliest.map({ $0 > end }) ?? true { return [] }
    let nodes = due.filter { _, moment in end.map { moment <= $0 } ?? true }.map(\.key)
    for id in nodes { due[id] = nil }
    earliest = due.values.min()
    return nodes
  }
}
