import PreferenceModel
import PropertyList

// Turns nodes into plain ones and back.

extension NodeTable {
  /// The most nodes of keys that stay as they are although they could be plain.
  static let mostExpanded = 1024

  /// Makes the nodes plain that were expanded long ago, apart from the last `mostExpanded`. Call it
  /// when nothing has a reference to a node: at the end of a request.
  /// - Parameter simplify: drops what need not be known of a node, such as a text that can be made
  ///   again.
  func makePlain(_ simplify: (KeyFile) -> Void) {
    var failures = 0
    while expanded.count > Self.mostExpanded, failures < Self.mostFailures {
      guard let id = expanded.popFirst(), let node = nodes[id], let file = node.keyFile else {
        continue
      }
      simplify(file)
      if makePlain(node, file) { continue }
      expanded.append(id)
      failures += 1
    }
  }

  /// How many nodes that cannot be plain a call looks at.
  private static let mostFailures = 2

  /// - Returns: false if more is known of the node than a plain one has.
  private func makePlain(_ node: Node, _ file: KeyFile) -> Bool {
    guard node.isPlain, file.isPlain, node.lookups > 0, node.inode == inodes[file.path],
      plain.insert(node.id, PlainNodes.Node(path: file.path, lookups: node.lookups))
    else { return false }
    nodes[node.id] = nil
    byKey.remove(node, file.path)
    return true
  }

  /// Replaces a plain node by a `Node` (it is expanded), and returns it; nil if there is no plain
  /// node of that number.
  func expand(_ id: NodeID) -> Node? {
    guard let known = plain.remove(id) else { return nil }
    let node = changes.withoutNotes { () -> Node in
      let file = KeyFile(id: id, known.path, changes: changes)
      let node = Node(id: id, inode: inodes[known.path], .key(file), changes: changes)
      node.lookups = known.lookups
      return node
    }
    nodes[id] = node
    byKey[known.path] = node
    expanded.append(id)
    return node
  }

  /// Counts a look-up of a key's node that is plain, and makes a plain one where the key has no
  /// node. Returns nil, and does nothing, if the node is not plain, or cannot be.
  func lookUpPlain(_ path: KeyPath) -> NodeID? {
    if byKey[path] != nil { return nil }
    if let id = plain.find(path) {
      guard plain.addLookup(id) else { return nil }
      changes.note(id)
      return id
    }
    let id = NodeID(rawValue: lastNumber + 1)
    guard plain.insert(id, PlainNodes.Node(path: path, lookups: 1)) else { return nil }
    lastNumber += 1
    changes.note(id)
    return id
  }
}
