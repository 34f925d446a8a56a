/// The nodes of a tree that have changed since the tree's state was last saved: made, removed, or
/// different in anything that a successor must know. Nodes and their files note themselves, so that
/// no change is forgotten.
///
/// Threads: the tree's alone.
final class ChangedNodes {
  /// Whether changes are noted. They are only where somebody saves them.
  var isRecording = false
  private var ids: [NodeID] = []

  /// Notes that the node was made, removed or changed.
  func note(_ id: NodeID) {
    guard isRecording, ids.last != id else { return }
    ids.append(id)
  }

  /// Removes and returns the nodes, each once, in the order of their numbers.
  func removeAll() -> [NodeID] {
    defer { ids = [] }
    guard ids.count > 1 else { return ids }
    // They are mostly noted in order, and then this costs a comparison each.
    ids.sort { $0.rawValue < $1.rawValue }
    var last: NodeID?
    return ids.filter { id in
      defer { last = id }
      return id != last
    }
  }
}

/// A dictionary that knows which keys have changed since its changes were last removed.
struct TrackedDictionary<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private(set) var all: [Key: Value] = [:]
  private var changed: [Key] = []
  /// Whether changes are noted. They are only where somebody saves them.
  var isRecording = false

  subscript(key: Key) -> Value? {
    get { all[key] }
    set {
      all[key] = newValue
      if isRecording { changed.append(key) }
    }
  }

  /// Removes the changes, and returns the keys that have changed, in that order, or all keys.
  mutating func removeChanges(all isAll: Bool) -> [Key] {
    defer { changed = [] }
    return isAll ? Array(all.keys) : changed
  }
}
