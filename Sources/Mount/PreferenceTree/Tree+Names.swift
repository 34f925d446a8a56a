import PreferenceModel
import SystemCalls

// Requests about names. Those in the directory of a domain, or of a tool, are passed on to `KeyFiles`.

extension Tree {
  /// Carries out mkdir(2). At the root it makes an empty domain, which is stored.
  public func makeDirectory(
    _ parent: NodeID, _ name: [UInt8], now: Moment
  ) throws(TreeError) -> Entry {
    let name = try NameCodec.validated(name)
    try engine.requireWritable()
    let directory = try directory(parent)
    if directory is RootDirectory { return try entry(makeDomain(name, now)) }
    return try entry(keys.makeScratchDirectory(in: directory, name, now: now))
  }

  /// Carries out rmdir(2). At the root it removes a domain, which must have no keys.
  public func removeDirectory(
    _ parent: NodeID, _ name: [UInt8], now: Moment
  ) throws(TreeError) {
    let name = try NameCodec.validated(name)
    try engine.requireWritable()
    let directory = try directory(parent)
    if directory is RootDirectory { return try removeDomain(name, now) }
    switch try keys.find(name, in: directory, now: now) {
    case .nothing: throw .missing
    case .key: throw .notDirectory
    case .scratch(let node): try keys.removeScratchDirectory(node, now: now)
    }
  }

  /// Carries out unlink(2).
  public func unlink(_ parent: NodeID, _ name: [UInt8], now: Moment) throws(TreeError) {
    let name = try NameCodec.validated(name)
    try engine.requireWritable()
    try unlink(name, in: directory(parent), now)
    showUsualName(of: name, in: parent)
  }

  private func unlink(
    _ name: String, in directory: any Directory, _ now: Moment
  ) throws(TreeError) {
    if directory is RootDirectory { return try unlinkAtRoot(name, now) }
    if transactor.made != nil { return try keys.followUnlink(name, in: directory, now: now) }
    switch try keys.find(name, in: directory, now: now) {
    case .nothing: throw .missing
    case .key(let path, let resolution):
      try keys.unlink(path, RemovedNames.Former(path, resolution), now: now)
    case .scratch(let node): try keys.unlinkScratch(node, now: now)
    }
  }

  /// Carries out rename(2) and renameat2(2) of a key, domain or scratch file, as one transaction of
  /// the engine.
  ///
  /// A key or scratch file that is renamed over a key sets that key, which keeps its type. A text
  /// that is not a value of the type is EPERM, and nothing is changed. It is never EINVAL, after
  /// which Foundation's atomic write moves the key aside, tries again and deletes both.
  public func rename(
    _ oldParent: NodeID, _ oldName: [UInt8], to newParent: NodeID, _ newName: [UInt8],
    _ mode: RenameMode, now: Moment
  ) throws(TreeError) {
    try engine.requireWritable()
    let (old, new) = (try NameCodec.validated(oldName), try NameCodec.validated(newName))
    do {
      try rename(old, in: directory(oldParent), to: directory(newParent), new, mode, now)
      showUsualName(of: old, in: oldParent)
      showUsualName(of: new, in: newParent)
    } catch {
      // Never EINVAL, after which programs move the key aside, try again, and delete both.
      throw error.isOfText ? .refused(error.sentence ?? "") : error
    }
  }

  private func rename(
    _ name: String, in source: any Directory, to target: any Directory, _ newName: String,
    _ mode: RenameMode, _ now: Moment
  ) throws(TreeError) {
    if source is RootDirectory {
      return try renameAtRoot(name, to: target, newName, mode, now)
    }
    guard !(target is RootDirectory) else {
      throw log.refused(
        .refused(
          "\(source.subject) \(name): a file cannot be moved to the root, which has only domains"))
    }
    if transactor.made != nil {
      return try keys.followRename(name, in: source, to: target, newName, mode, now: now)
    }
    switch try keys.find(name, in: source, now: now) {
    case .nothing: throw .missing
    case .scratch(let node): try keys.renameScratch(node, to: target, newName, mode, now: now)
    case .key(let path, _): try keys.renameKey(path, to: target, newName, mode, now: now)
    }
  }

  /// Returns the domains whose lists a request about the node, or about the name in it, needs. The
  /// driver asks this before the request, because reading a list may take long.
  public func domainsNeeded(at id: NodeID, _ name: [UInt8]? = nil) -> [DomainName] {
    switch table[id]?.content {
    case .key(let path): return engine.domainsNeeded(for: path.key, in: path.domain)
    case .directory(let directory as DomainDirectory):
      // Only a generated text needs the lists of other domains than its directory's.
      guard options.isGenerated, let name, let text = try? NameCodec.validated(name),
        case .key(let key) = NameCodec.decode(text)
      else { return engine.domainsNeeded(for: nil, in: directory.domain) }
      return engine.domainsNeeded(for: key, in: directory.domain)
    case .directory(is RootDirectory):
      guard let name, let text = try? NameCodec.validated(name),
        let domain = try? engine.domain(named: text)
      else { return [] }
      return engine.domainsNeeded(for: nil, in: domain)
    case .directory, .scratch, .detached, nil: return []
    }
  }

  /// Carries out FUSE_FORGET: subtracts look-ups of a node.
  public func forget(_ id: NodeID, _ count: UInt64) { values.forget(id, count) }

  /// Carries out open(2) with O_CREAT of a name that the kernel did not find: see
  /// `KeyFiles.create`.
  /// - Returns: the handle is `.none` unless a new key was made.
  public func create(
    _ parent: NodeID, _ name: [UInt8], _ flags: CreationFlags, now: Moment
  ) throws(TreeError) -> (entry: Entry, handle: HandleID) {
    let name = try NameCodec.validated(name)
    try engine.requireWritable()
    let (node, handle) = try keys.create(name, in: directory(parent), flags, now: now)
    let isNewScratch = node.scratch != nil && node.lookups == 0
    var entry = try entry(node)
    entry.isNewScratch = isNewScratch
    if showUsualName(of: name, in: parent) { entry.isCacheable = false }
    return (entry, handle)
  }

  /// Carries out link(2): see `KeyFiles.link`.
  public func link(
    _ id: NodeID, _ parent: NodeID, _ name: [UInt8], now: Moment
  ) throws(TreeError) -> Entry {
    let name = try NameCodec.validated(name)
    try engine.requireWritable()
    var entry = try entry(keys.link(id, to: name, in: directory(parent), now: now))
    if showUsualName(of: name, in: parent) { entry.isCacheable = false }
    return entry
  }

  /// Has the kernel look up both names of a key again whose first character a request has escaped
  /// without need (`NameCodec.keyOfEscaped`): it knows the other name, or that there is no such file.
  /// - Returns: whether the name is such a one.
  @discardableResult
  private func showUsualName(of name: String, in parent: NodeID) -> Bool {
    guard table[parent]?.directory is DomainDirectory, let key = NameCodec.keyOfEscaped(name) else {
      return false
    }
    kernel.invalidateEntry(parent, key)
    kernel.append(.invalidateEntry(parent: parent, name: name))
    return true
  }

  /// Carries out symlink(2), for scratch names only (emacs' locks). Other names are EOPNOTSUPP and
  /// never EPERM, after which emacs makes a file instead.
  public func makeLink(
    _ parent: NodeID, _ name: [UInt8], to target: [UInt8], now: Moment
  ) throws(TreeError) -> Entry {
    let name = try NameCodec.validated(name)
    try engine.requireWritable()
    return try entry(keys.makeLink(name, in: directory(parent), to: target, now: now))
  }

  /// Makes an entry for a name that is gone. The driver's announcer unlinks it once, so that
  /// watchers of the directory get an event for the removal, and those of the file, if the kernel
  /// still knows it.
  public func ghost(
    isDirectory: Bool, of file: NodeID?, now: Moment
  ) throws(TreeError) -> Entry {
    let known = file.flatMap { table[$0] }.flatMap { $0.isDetached ? $0 : nil }
    let node = known ?? table.addGhost(isDirectory: isDirectory, now: now)
    var entry = try entry(node)
    entry.isCacheable = false
    entry.attributes.isCacheable = false
    return entry
  }

  /// Carries out readlink(2).
  public func readLink(_ id: NodeID) throws(TreeError) -> [UInt8] {
    guard case .link(let target)? = try node(id).inMemory?.content else {
      throw .invalid("not a symbolic link")
    }
    return target
  }
}
