import PreferenceModel
import PropertyList
import SystemCalls

/// The root: it has a directory for each domain, and tools' temporary directories and files
/// (`mktemp -d`, rsync, watchman).
final class RootDirectory: FileDirectory {
  var listing = ListingState()
  var subject: String { "the root" }

  func listsNeeded(for name: [UInt8]?, _ tree: Tree) -> (domain: DomainName, key: Key?)? {
    guard let name, let text = try? NameCodec.validated(name),
      let domain = try? tree.engine.domain(named: text)
    else { return nil }
    return (domain, nil)
  }

  var names: ListingPlan.Names { .domains }
  var scratchParent: ScratchPath.Parent { .root }

  func lookup(_ name: String, _ tree: Tree, _ now: Moment) throws(TreeError) -> LookupResult {
    if let domain = try tree.engine.domain(named: name),
      try asTreeError({ () throws(EngineError) in try tree.engine.hasDomain(domain) })
    {
      return .found(try tree.entry(tree.directoryNode(of: domain, now: now)))
    }
    return try tree.lookupScratch(ScratchPath(parent: .root, name: name))
      ?? .missing(isCacheable: true)
  }

  /// Makes an empty domain, which is stored, or a tool's temporary directory.
  func makeDirectory(_ name: String, _ tree: Tree, _ now: Moment) throws(TreeError) -> Entry {
    if ScratchName.isRootName(name) {
      let path = ScratchPath(parent: .root, name: name)
      if tree.table[path] != nil { throw .exists }
      return try tree.entry(tree.scratch.addDirectory(path, now: now))
    }
    let domain = DomainName(try tree.keys.newKey(name, name).string)
    let changeset = try tree.transactor.apply([.createDomain(domain)])
    tree.kernel.rootChanged(at: changeset.time)
    let node = tree.table.node(of: domain)
    node.modified = changeset.time
    return try tree.entry(node)
  }

  /// Removes a domain that has no keys and no scratch files, or a tool's temporary directory.
  func removeDirectory(_ name: String, _ tree: Tree, _ now: Moment) throws(TreeError) {
    if let node = tree.table[ScratchPath(parent: .root, name: name)] {
      return try tree.keys.removeScratchDirectory(node, now: now)
    }
    guard let domain = try tree.keys.formerDomain(name) else { throw .missing }
    if tree.transactor.made == nil {
      tree.keys.completeMoves(from: domain, now: now)
      guard tree.table.scratchNodes(in: .domain(domain)).isEmpty else {
        throw tree.log.refused(.notEmpty("\(domain): it has temporary files"))
      }
    }
    let changeset = try tree.transactor.apply([.removeDomain(domain)], isDecisive: true)
    tree.table.remove(domain)
    tree.kernel.rootChanged(at: changeset.time)
  }

  func unlink(_ name: String, _ tree: Tree, _ now: Moment) throws(TreeError) {
    guard let node = tree.table[ScratchPath(parent: .root, name: name)] else { throw .isDirectory }
    try tree.keys.unlinkScratch(node, now: now)
  }

  func rename(
    _ name: String, to directory: any Directory, _ newName: String, _ mode: RenameMode,
    _ tree: Tree, _ now: Moment
  ) throws(TreeError) {
    guard directory is RootDirectory else {
      throw tree.log.refused(
        .refused("\(name): a directory at the root cannot be moved into another directory"))
    }
    guard let node = tree.table[ScratchPath(parent: .root, name: name)] else {
      return try tree.keys.renameDomain(name, to: newName, mode, now: now)
    }
    guard ScratchName.isRootName(newName) else {
      return try tree.keys.makeDomain(newName, of: node, mode, now: now)
    }
    let path = ScratchPath(parent: .root, name: newName)
    guard tree.table[path] == nil else {
      throw tree.log.refused(
        .refused("\(newName): a tool's temporary file or directory cannot replace it"))
    }
    tree.table.rename(node, to: path)
    tree.kernel.rootChanged(at: now.time)
  }
}
