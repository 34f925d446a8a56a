import PreferenceModel
import PropertyList
import SystemCalls

// Keys are made and removed.

extension Tree {
  /// open(2) with O_CREAT of a name that is not there. It makes a scratch file if the name is a
  /// tool's. A key that was moved away a moment ago is opened as if it had been truncated. Else it
  /// makes a key with an empty string, whose type follows from what its creator writes until the
  /// creator closes it.
  public func create(
    _ parent: NodeID, _ name: [UInt8], _ flags: CreationFlags, now: Moment
  ) throws(TreeError) -> (entry: Entry, handle: HandleID) {
    let name = try validated(name)
    try requireWritable()
    let directory = try fileDirectory(parent)
    switch try find(name, in: directory, now: now) {
    case .nothing: break
    case _ where flags.exclusively: throw .exists
    case .key(let path, _): return (try reopen(table.file(of: path).node, flags, now), .none)
    case .scratch(let node): return (try reopen(node, flags, now), .none)
    }
    if let path = try directory.keyPath(name, self), departures.isMovedAway(path) {
      return (try remake(path, now: now), .none)
    }
    let making = ScratchName.Making.file(
      exclusively: flags.exclusively, readsToo: flags.readsToo)
    if isScratchName(name, in: directory, making) {
      let path = ScratchPath(parent: directory.filesParent, name: name)
      let node = try addScratch(path, .file([]), mode: nil, now: now)
      watchScratch(node, name, now: now)
      return (try entry(node), .none)
    }
    let mode = flags.mode & 0o200 == 0 ? flags.mode & 0o777 : nil
    return try createKey(try newPath(name, in: directory), mode: mode)
  }

  /// Opens a file that was made between the kernel's look-up and now; no truncation follows a
  /// CREATE.
  private func reopen(
    _ node: Node, _ flags: CreationFlags, _ now: Moment
  ) throws(TreeError) -> Entry {
    if flags.truncating { try truncate(node, to: 0, handle: .none, now: now) }
    return try entry(node)
  }

  private func createKey(
    _ path: KeyPath, mode: UInt32?
  ) throws(TreeError) -> (entry: Entry, handle: HandleID) {
    let former = departures.former(path)
    let empty: [UInt8] = []
    var intents = [Intent.set(path.key, path.domain, .string(""), .exact(empty))]
    if let mode = mode ?? former?.mode {
      intents.append(.describe(path.key, path.domain, Description(mode: mode)))
    }
    lastHandle += 1
    let handle = HandleID(rawValue: lastHandle)
    try transact(intents, touching: [path]) { _ in
      departures.forget(path)
      table.renewInode(of: path)
      table.file(of: path).file.creation = KeyFile.Creation(
        handle: handle, preferred: former?.kind)
    }
    return (try entry(table.file(of: path).node), handle)
  }

  /// close(2) by the creator of a key: the key keeps the type that it has now.
  public func release(_ id: NodeID, _ handle: HandleID, now: Moment) {
    guard let file = table[id]?.keyFile, file.creation?.handle == handle else { return }
    // Bytes that might have gone on as text are data now. A refusal has been logged.
    if let editor = file.editor, editor.isInferred, editor.isHeld {
      do { try expire(file, now: now) } catch {}
    }
    file.creation = nil
    if file.editor?.isInferred == true { file.editor = nil }
  }

  /// unlink(2) of a key.
  func unlink(_ path: KeyPath, _ resolution: Resolution, now: Moment) throws(TreeError) {
    let displaced = try displaced(path)
    let former = Departures.Former(kind: resolution.kind, mode: resolution.mode)
    try transact([.remove(path.key, path.domain)], touching: [path]) { _ in
      detach(displaced, at: now.time)
      depart(path, former, now: now)
    }
  }

  /// The name of a key is gone for a second.
  func depart(_ path: KeyPath, _ former: Departures.Former, now: Moment) {
    departures.remove(path, former, at: now.instant)
    wake(at: departures.deadline ?? now.instant)
    table.renewInode(of: path)
  }

  /// The file of a key that is about to lose its name, and the text that it shows.
  func displaced(_ path: KeyPath) throws(TreeError) -> (node: Node, text: [UInt8])? {
    try table[path].map { node throws(TreeError) in (node, try shownText(node)) }
  }

  /// Whoever has the displaced file open keeps the text that it showed.
  func detach(_ displaced: (node: Node, text: [UInt8])?, at time: Timestamp) {
    guard let (node, text) = displaced else { return }
    node.modified = time
    if let file = node.keyFile { dropCachedText(file) }
    table.detach(node, text: text)
  }

  /// An entry for a name that is gone, which the driver's announcer unlinks once so that watchers
  /// hear of the removal.
  public func ghost(isDirectory: Bool, now: Moment) throws(TreeError) -> Entry {
    let node = table.addGhost(isDirectory: isDirectory, now: now)
    var entry = try entry(node)
    entry.isCacheable = false
    entry.attributes.isCacheable = false
    return entry
  }
}
