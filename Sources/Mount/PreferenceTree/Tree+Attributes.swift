import PreferenceModel
import PropertyList
import SystemCalls

// Requests about attributes: stat(2), and chmod(2) and the like.

extension Tree {
  /// Returns what stat(2) shows of the node. The kernel's next page of the file has that size.
  public func attributes(_ id: NodeID) throws(TreeError) -> Attributes {
    let node = try node(id)
    let attributes = try attributes(node)
    values.note(told: node, size: attributes.size)
    return attributes
  }

  func attributes(_ node: Node) throws(TreeError) -> Attributes {
    values.forgetTold(node)
    var attributes = try ownAttributes(node)
    if let changed = node.changed { attributes.changed = max(attributes.changed, changed) }
    return attributes
  }

  /// The attributes without the time of the last chmod(2), chown(2) or rename(2).
  private func ownAttributes(_ node: Node) throws(TreeError) -> Attributes {
    let (mode, size): (UInt32, Int)
    switch node.content {
    case .key(let path): return try attributes(KeyFile(node, path))
    case .directory(let directory): (mode, size) = (directory.mode, 0)
    case .scratch(let file), .detached(let file): (mode, size) = (file.mode ?? 0o600, file.count)
    }
    var attributes = Attributes(
      inode: node.inode, type: node.type, mode: mode, size: size, modified: node.modified)
    if hasLostName(node) { attributes.links = 0 }
    return attributes
  }

  private func attributes(_ file: KeyFile) throws(TreeError) -> Attributes {
    let resolution = try values.requireValue(file.path)
    values.note(shown: resolution, by: file)
    let size =
      file.editor?.text.count ?? resolution.stored.textCount
      ?? values.text(resolution, of: file).count
    var attributes = Attributes(
      inode: file.node.inode, type: .file, mode: mode(resolution), size: size,
      modified: resolution.modified)
    attributes.changed = resolution.changed
    attributes.isReadOnly = resolution.isReadOnly || engine.isReadOnly
    // Text that the engine does not have yet is a change too.
    if file.editor != nil, let written = file.uncommittedSince {
      attributes.modified = max(resolution.modified, written)
      attributes.changed = max(resolution.changed, written)
    }
    return attributes
  }

  /// The permission bits of a key's file. They never allow its user to write if a write would be
  /// refused, but for texts that are watched.
  private func mode(_ resolution: Resolution) -> UInt32 {
    let mode = resolution.mode ?? 0o600
    let isReadOnly = resolution.isReadOnly || engine.isReadOnly
    return isReadOnly && !options.isWatched ? mode & 0o444 : mode
  }

  public func hasLostName(_ id: NodeID) -> Bool { table[id].map { hasLostName($0) } ?? false }

  /// Whether no look-up finds the file, or the domain's directory, any more.
  private func hasLostName(_ node: Node) -> Bool {
    if let directory = node.directory as? DomainDirectory {
      return table[directory.domain] !== node
    }
    return node.isDetached
  }

  /// Carries out chmod(2), chown(2), truncate(2) and utimensat(2): see `AttributeChange`. The
  /// engine stores the mode and time of a key with its value.
  public func setAttributes(
    _ id: NodeID, _ change: AttributeChange, handle: HandleID = .none, now: Moment
  ) throws(TreeError) -> Attributes {
    let node = try node(id)
    try engine.requireWritable()
    if change.changesOwner {
      throw log.refused(.refused("\(node.subject): a preference belongs to the user of the mount"))
    }
    if let size = change.size { try texts.truncate(node, to: size, handle: handle, now: now) }
    try describe(node, change, now: now)
    node.changed = now.time
    var attributes = try attributes(node)
    if change.size != nil, let file = node.keyFile, file.editsOwnValue {
      attributes.isAboutToChange = file.editor?.isTruncated == true
    }
    return attributes
  }

  /// Sets mode and time. Those of a key are stored with the key and survive a remount. The mode and
  /// time of an inherited or read-only key, and the mode of a domain, are not changed, but the call
  /// succeeds. The time of a directory is kept until its entries change, or the mount ends.
  private func describe(
    _ node: Node, _ change: AttributeChange, now: Moment
  ) throws(TreeError) {
    let description = Description(mode: change.mode, modified: change.modified)
    if description.isEmpty { return }
    switch node.content {
    case .key(let path):
      let file = KeyFile(node, path)
      // Text that waits for a decision would be committed later, with the time of that moment.
      if change.size == nil, change.modified != nil, file.editor?.waitsForMore == true {
        try texts.expire(file, now: now)
      }
      return try describe(file, description)
    case .scratch(let file), .detached(let file):
      if let mode = change.mode { file.mode = mode }
      if change.modified != nil { file.hasOwnTime = true }
    case .directory(let directory):
      if let mode = change.mode { (directory as? ScratchDirectory)?.mode = mode }
    }
    if let modified = change.modified { node.modified = modified }
  }

  private func describe(_ file: KeyFile, _ description: Description) throws(TreeError) {
    let path = file.path
    if try values.awaited(path) != nil {
      if let mode = description.mode { file.creation?.awaited?.mode = mode }
      return
    }
    guard let found = try values.resolve(path), !found.isReadOnly, values.isOwn(found, path) else {
      return
    }
    try transactor.transact(
      [.describe(path.key, path.domain, description)], touching: [path], changesNames: false)
    // The value has a different time now. The next editor must begin with that, or what it computes
    // from the text would be refused as outdated.
    if file.editor?.deadline == nil { file.editor = nil }
  }
}
