import PreferenceModel
import SystemCalls

// Changes of names at the root.

extension Tree {
  /// Makes an empty domain, which is stored, or a tool's temporary directory.
  func makeDomain(_ name: String, _ now: Moment) throws(TreeError) -> Node {
    if ScratchName.isRootName(name) {
      let path = ScratchPath(parent: .root, name: name)
      if table[path] != nil { throw .exists }
      return try scratch.addDirectory(path, now: now)
    }
    let domain = DomainName(try keys.newKey(name, name).string)
    let changeset = try transactor.apply([.createDomain(domain)])
    kernel.rootChanged(at: changeset.time)
    let node = table.node(of: domain)
    node.modified = changeset.time
    return node
  }

  /// Removes a domain that has no keys and no scratch files, or a tool's temporary directory.
  func removeDomain(_ name: String, _ now: Moment) throws(TreeError) {
    if let node = table[ScratchPath(parent: .root, name: name)] {
      return try keys.removeScratchDirectory(node, now: now)
    }
    guard let domain = try keys.formerDomain(name) else { throw .missing }
    if transactor.made == nil {
      keys.completeMoves(from: domain, now: now)
      guard table.scratchNodes(in: .domain(domain)).isEmpty else {
        throw log.refused(.notEmpty("\(domain): it has temporary files"))
      }
    }
    let changeset = try transactor.apply([.removeDomain(domain)], isDecisive: true)
    table.remove(domain)
    kernel.rootChanged(at: changeset.time)
  }

  /// Removes a tool's temporary file.
  func unlinkAtRoot(_ name: String, _ now: Moment) throws(TreeError) {
    guard let node = table[ScratchPath(parent: .root, name: name)] else { throw .isDirectory }
    try keys.unlinkScratch(node, now: now)
  }

  /// Renames a domain, or a tool's temporary file or directory.
  func renameAtRoot(
    _ name: String, to directory: any Directory, _ newName: String, _ mode: RenameMode,
    _ now: Moment
  ) throws(TreeError) {
    guard directory is RootDirectory else {
      throw log.refused(
        .refused("\(name): a directory at the root cannot be moved into another directory"))
    }
    guard let node = table[ScratchPath(parent: .root, name: name)] else {
      return try keys.renameDomain(name, to: newName, mode, now: now)
    }
    guard ScratchName.isRootName(newName) else {
      return try keys.makeDomain(newName, of: node, mode, now: now)
    }
    let path = ScratchPath(parent: .root, name: newName)
    guard table[path] == nil else {
      throw log.refused(
        .refused("\(newName): a tool's temporary file or directory cannot replace it"))
    }
    table.rename(node, to: path)
    kernel.rootChanged(at: now.time)
  }
}
