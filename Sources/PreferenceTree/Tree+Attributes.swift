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
    switch node.subject {
    case .root, .domain:
      return Attributes(
        inode: node.inode, isDirectory: true, mode: 0o700, size: 0, modified: node.modified,
        isSettled: true)
    case .detached(let text):
      return Attributes(
        inode: node.inode, isDirectory: false, mode: 0o600, size: text.count,
        modified: node.modified, isSettled: true)
    case .key(let path):
      guard let resolution = try resolve(path) else { throw .missing }
      let size = node.editor?.text.count ?? text(resolution, of: node).count
      return Attributes(
        inode: node.inode, isDirectory: false, mode: resolution.isReadOnly ? 0o400 : 0o600,
        size: size, modified: resolution.modified, isSettled: true)
    }
  }

  /// chmod(2), chown(2), truncate(2), utimensat(2). Times and modes are accepted and not kept.
  public func setAttributes(
    _ id: NodeID, _ change: AttributeChange, handle: HandleID = .none, now: Instant
  ) throws(TreeError) -> Attributes {
    let node = try node(id)
    if engine.isReadOnly { throw .readOnly }
    if change.changesOwner {
      throw refused(.refused("\(subjectText(node)): a preference belongs to the user of the mount"))
    }
    if let size = change.size { try truncate(node, to: size, handle: handle, now: now) }
    return try attributes(node)
  }

  /// The node for people.
  func subjectText(_ node: Node) -> String {
    switch node.subject {
    case .root: "the root"
    case .domain(let domain): domain.string
    case .key(let path): "\(path.domain) \(path.key)"
    case .detached: "a removed file"
    }
  }
}
