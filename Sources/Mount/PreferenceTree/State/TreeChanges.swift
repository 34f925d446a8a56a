import PreferenceModel
import PropertyList

/// A name in a tree: of a domain at the root, or of a key in its domain.
struct EntryName: Hashable {
  let domain: DomainName
  /// nil if the name is the domain's.
  let key: Key?

  init(_ domain: DomainName) { (self.domain, key) = (domain, nil) }
  init(_ path: KeyPath) { (domain, key) = (path.domain, path.key) }

  /// nil for the name of a domain.
  var path: KeyPath? { key.map { KeyPath(domain: domain, key: $0) } }
}

/// The nodes and names of a tree that have changed since the tree's state was last saved: made,
/// removed, or different in anything that a successor must know. Nodes and their files note
/// themselves, so that no change is forgotten.
///
/// Threads: the tree's alone.
final class TreeChanges {
  /// Whether changes are noted. They are only where somebody saves them.
  var isRecording = false
  private var ids: [NodeID] = []
  private var names: [EntryName] = []

  /// Notes that the node was made, removed or changed.
  func note(_ id: NodeID) {
    guard isRecording, ids.last != id else { return }
    ids.append(id)
  }

  /// Notes that the inode number of the name has changed, or whether it was answered.
  func note(_ name: EntryName) { if isRecording { names.append(name) } }

  /// Removes and returns the names, in the order in which they were noted.
  func removeNames() -> [EntryName] {
    defer { names = [] }
    return names
  }

  /// Removes and returns the nodes, each once, in the order of their numbers.
  func removeNodes() -> [NodeID] {
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
