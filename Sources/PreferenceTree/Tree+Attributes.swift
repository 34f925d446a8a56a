import PreferenceModel
import PropertyList
import SystemCalls

// What stat(2) shows, and what chmod(2) and its kin may change.

extension Tree {
  /// What stat(2) shows.
  public func attributes(_ id: NodeID) throws(TreeError) -> Attributes {
    try attributes(try node(id))
  }

  func attributes(_ node: Node) throws(TreeError) -> Attributes {
    var attributes = try contents(node)
    attributes.changed = max(attributes.modified, node.changed ?? attributes.modified)
    return attributes
  }

  private func contents(_ node: Node) throws(TreeError) -> Attributes {
    switch node.subject {
    case .root, .domain:
      return Attributes(
        inode: node.inode, type: .directory, mode: 0o700, size: 0, modified: node.modified)
    case .detached(let text):
      var attributes = Attributes(
        inode: node.inode, type: .file, mode: 0o600, size: text.count, modified: node.modified)
      attributes.links = 0
      return attributes
    case .scratch:
      let size: Int =
        switch node.scratch?.content {
        case .file(let bytes), .link(let bytes): bytes.count
        case .directory, nil: 0
        }
      return Attributes(
        inode: node.inode, type: node.type, mode: node.scratch?.mode ?? 0o600, size: size,
        modified: node.modified)
    case .key(let path):
      guard let resolution = try resolve(path) else { throw .missing }
      node.lastShown = resolution.stored
      let size =
        node.editor?.text.count ?? resolution.stored.textCount ?? text(resolution, of: node).count
      // Text that the engine does not have yet is news too.
      let modified = max(
        resolution.modified, node.editor.flatMap { _ in node.textChanged } ?? resolution.modified)
      var attributes = Attributes(
        inode: node.inode, type: .file, mode: mode(resolution), size: size, modified: modified)
      attributes.isReadOnly = resolution.isReadOnly
      return attributes
    }
  }

  /// chmod(2), chown(2), truncate(2), utimensat(2). Times and modes are kept with the key.
  public func setAttributes(
    _ id: NodeID, _ change: AttributeChange, handle: HandleID = .none, now: Instant
  ) throws(TreeError) -> Attributes {
    let node = try node(id)
    if engine.isReadOnly { throw .readOnly }
    if change.changesOwner {
      throw refused(.refused("\(subjectText(node)): a preference belongs to the user of the mount"))
    }
    if let size = change.size { try truncate(node, to: size, handle: handle, now: now) }
    try describe(node, change)
    node.changed = .now
    return try attributes(node)
  }

  /// What a key's file shows as its permission bits: never the owner's right to write where a
  /// write would be refused.
  private func mode(_ resolution: Resolution) -> UInt32 {
    let mode = resolution.mode ?? 0o600
    return resolution.isReadOnly ? mode & 0o444 : mode
  }

  /// Mode and time are kept with the key (law 3 speaks of a remount too); those of a key that
  /// comes from elsewhere are nobody's to change, and the call succeeds.
  private func describe(_ node: Node, _ change: AttributeChange) throws(TreeError) {
    let description = Description(mode: change.mode, modified: change.modified)
    if description.isEmpty { return }
    if case .key(let path) = node.subject, let found = try resolve(path), !found.isReadOnly,
      isOwn(found, path)
    {
      let changeset = try apply([.describe(path.key, path.domain, description)])
      propagate(changeset, known: [path], addsEntries: false)
      // The value has another time now: what is computed from its text next begins with it.
      if node.editor?.deadline == nil { node.editor = nil }
    } else if node.scratch != nil {
      if let mode = change.mode { node.scratch?.mode = mode }
      if let modified = change.modified {
        node.scratch?.hasOwnTime = true
        node.modified = modified
      }
    } else if let modified = change.modified {
      switch node.subject {
      // A directory's is kept until its entries change, or the mount ends.
      case .root, .domain, .detached: node.modified = modified
      case .key, .scratch: break
      }
    }
  }

  /// The node for people.
  func subjectText(_ node: Node) -> String {
    switch node.subject {
    case .root: "the root"
    case .domain(let domain): domain.string
    case .key(let path): "\(path.domain) \(path.key)"
    case .detached: "a removed file"
    case .scratch(let path):
      if case .domain(let domain) = path.parent { "\(domain) \(path.name)" } else { path.name }
    }
  }
}
