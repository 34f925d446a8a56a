import PreferenceModel
import PropertyList
import SystemCalls

// Making and removing keys and domains.

extension Tree {
  /// open(2) with O_CREAT of a name that is not there: a scratch file where the name is a tool's, a
  /// key that was moved away a moment ago as if it had been truncated, else a key with an empty
  /// string, whose type follows from what its creator writes until he closes it.
  public func create(
    _ parent: NodeID, _ name: [UInt8], _ flags: CreationFlags, now: Instant
  ) throws(TreeError) -> (entry: Entry, handle: HandleID) {
    let text = try validated(name)
    if engine.isReadOnly { throw .readOnly }
    let directory = try scratchParent(parent)
    switch try find(parent, text, now: now) {
    case .nothing: break
    case _ where flags.exclusively: throw .exists
    case .key(let path, _): return (try reopen(table.node(of: path), flags, now: now), .none)
    case .scratch(let node): return (try reopen(node, flags, now: now), .none)
    }
    if case .domain(let domain) = directory, let path = try path(domain, text),
      removals[path]?.holder != nil
    {
      return (try remake(path, now: now), .none)
    }
    let making = ScratchName.Making.file(
      exclusively: flags.exclusively, readsToo: flags.readsToo)
    if isScratchName(text, in: directory, making) {
      let path = ScratchPath(parent: directory, name: text)
      let node = try addScratch(path, .file([]), mode: nil)
      watchScratch(node, text, now: now)
      return (try entry(node), .none)
    }
    let mode = flags.mode & 0o200 == 0 ? flags.mode & 0o777 : nil
    return try createKey(try newPath(parent, name), mode: mode, now: now)
  }

  /// A file that came between the look-up and now; no truncation follows a CREATE.
  private func reopen(
    _ node: Node, _ flags: CreationFlags, now: Instant
  ) throws(TreeError) -> Entry {
    if flags.truncating { try truncate(node, to: 0, handle: .none, now: now) }
    return try entry(node)
  }

  private func createKey(
    _ path: KeyPath, mode: UInt32?, now: Instant
  ) throws(TreeError) -> (entry: Entry, handle: HandleID) {
    let preferred = removals[path]?.kind
    let empty: [UInt8] = []
    var intents = [Intent.set(path.key, path.domain, .string(""), .exact(empty))]
    if let mode = mode ?? removals[path]?.mode {
      intents.append(.describe(path.key, path.domain, Description(mode: mode)))
    }
    let changeset = try apply(intents)
    removals[path] = nil
    table.renewInode(of: path)
    let node = table.node(of: path)
    lastHandle += 1
    node.creation = Node.Creation(handle: HandleID(rawValue: lastHandle), preferred: preferred)
    propagate(changeset, known: [path], addsEntries: true)
    return (try entry(node), HandleID(rawValue: lastHandle))
  }

  /// The creator has closed the file: its type is what it is now.
  public func release(_ id: NodeID, _ handle: HandleID) {
    guard let node = table[id], node.creation?.handle == handle else { return }
    // Bytes that might have gone on as text are data now. What is refused has been logged.
    if let editor = node.editor, editor.isInferred, editor.isHeld {
      do { try expire(node, now: editor.deadline ?? .now) } catch {}
    }
    node.creation = nil
    if node.editor?.isInferred == true { node.editor = nil }
  }

  /// A key's path for a name that may be made.
  func newPath(_ parent: NodeID, _ name: [UInt8]) throws(TreeError) -> KeyPath {
    let name = try validated(name)
    if engine.isReadOnly { throw .readOnly }
    let domain: DomainName
    do {
      domain = try self.domain(parent)
    } catch {
      throw refused(error)
    }
    return KeyPath(domain: domain, key: try newKey(name, "\(domain) \(name)"))
  }

  func newKey(_ name: String, _ subject: String) throws(TreeError) -> Key {
    switch NameCodec.decode(name) {
    case .key(let key): return key
    case .scratch:
      throw refused(
        .refused(
          "\(subject): a temporary file's name; write the first character as % and two digits"))
    case .none, .shortened:
      throw refused(.invalid("\(subject): not the canonical name of a key ('%' begins an escape)"))
    }
  }

  /// unlink(2).
  public func unlink(_ parent: NodeID, _ name: [UInt8], now: Instant) throws(TreeError) {
    let name = try validated(name)
    if engine.isReadOnly { throw .readOnly }
    if case .root = try node(parent).subject { throw .isDirectory }
    let (path, resolution): (KeyPath, Resolution)
    switch try find(parent, name, now: now) {
    case .nothing: throw .missing
    case .scratch(let node): return try unlinkScratch(node, now: now)
    case .key(let found, let value): (path, resolution) = (found, value)
    }
    let node = table[path]
    let text = try node.map { node throws(TreeError) in try shownText(node) }
    let changeset = try apply([.remove(path.key, path.domain)])
    removed(path, node, text ?? [], kind: resolution.value.kind, now: now)
    removals[path]?.mode = resolution.mode
    propagate(changeset, known: [path], addsEntries: true)
  }

  /// With a key that was moved away to it, the key goes.
  func unlinkScratch(_ node: Node, now: Instant) throws(TreeError) {
    if node.type == .directory { throw .isDirectory }
    if let moved = node.scratch?.movedFrom, let kind = removals[moved]?.kind {
      let changeset = try apply([.remove(moved.key, moved.domain)])
      removed(moved, nil, [], kind: kind, now: now)
      propagate(changeset, known: [moved], addsEntries: true)
    }
    removeScratch(node)
  }

  /// A name is gone for a second, and its file keeps a private copy.
  func removed(_ path: KeyPath, _ node: Node?, _ text: [UInt8], kind: Kind, now: Instant) {
    let until = now.advanced(milliseconds: Self.removalTime)
    removals[path] = Removal(until: until, kind: kind)
    wake(at: until)
    if let node {
      node.modified = .now
      dropCache(node)
      table.detach(node, text: text)
    }
    table.renewInode(of: path)
  }

  /// A directory entry that is announced as removed although it is gone: something that can be
  /// unlinked, once.
  public func ghost(isDirectory: Bool) throws(TreeError) -> Entry {
    let node = table.addGhost(isDirectory: isDirectory)
    node.modified = .now
    var entry = try entry(node)
    entry.isRemembered = false
    entry.attributes.isSettled = false
    return entry
  }

  /// mkdir(2): an empty domain, which is kept.
  public func makeDirectory(
    _ parent: NodeID, _ name: [UInt8], now: Instant
  ) throws(TreeError) -> Entry {
    switch try node(parent).subject {
    case .root:
      if let entry = try makeRootScratch(name, now: now) { return entry }
    default:
      if engine.isReadOnly { throw .readOnly }
      return try makeScratchDirectory(parent, try validated(name), now: now)
    }
    let domain = try newDomain(name)
    let changeset = try apply([.createDomain(domain)])
    rootChanged(at: changeset.time)
    let node = table.node(of: domain)
    node.modified = changeset.time
    return try entry(node)
  }

  /// A directory of a tool's at the root; nil where the name is not one of those.
  private func makeRootScratch(_ name: [UInt8], now: Instant) throws(TreeError) -> Entry? {
    let name = try validated(name)
    guard ScratchName.isRootDirectory(name) else { return nil }
    if engine.isReadOnly { throw .readOnly }
    let path = ScratchPath(parent: .root, name: name)
    if table[path] != nil { throw .exists }
    return try entry(try addScratch(path, .directory, mode: 0o700))
  }

  private func newDomain(_ name: [UInt8]) throws(TreeError) -> DomainName {
    let name = try validated(name)
    if engine.isReadOnly { throw .readOnly }
    return DomainName(try newKey(name, name).string)
  }

  /// rmdir(2) of a domain without keys.
  public func removeDirectory(
    _ parent: NodeID, _ name: [UInt8], now: Instant
  ) throws(TreeError) {
    let name = try validated(name)
    if engine.isReadOnly { throw .readOnly }
    guard case .root = try node(parent).subject else {
      return try removeScratchDirectory(parent, name, now: now)
    }
    if let node = table[ScratchPath(parent: .root, name: name)] {
      return try removeScratchDirectory(node, name)
    }
    guard let domain = try domain(named: name) else { throw .missing }
    endHolds(of: domain)
    guard table.scratchNodes(in: .domain(domain)).isEmpty else {
      throw .notEmpty("\(domain): it has temporary files")
    }
    let changeset = try apply([.removeDomain(domain)])
    table.remove(domain)
    rootChanged(at: changeset.time)
  }
}
