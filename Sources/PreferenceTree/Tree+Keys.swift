import PreferenceModel
import PropertyList
import SystemCalls

// Makes and removes the files of keys.

extension Tree {
  /// Carries out open(2) with O_CREAT of a name that the kernel did not find. Makes a scratch file
  /// if the name is a tool's. A key that was moved away a moment ago is opened as if it had been
  /// truncated. Otherwise makes a key whose value is the empty string; its type follows from what
  /// its creator writes, until the creator closes it.
  /// - Returns: the handle is `.none` unless a new key was made.
  public func create(
    _ parent: NodeID, _ name: [UInt8], _ flags: CreationFlags, now: Moment
  ) throws(TreeError) -> (entry: Entry, handle: HandleID) {
    let name = try validated(name)
    try requireWritable()
    for attempt in 1...Self.mostAttempts {
      do throws(TreeError) {
        return try make(name, in: parent, flags, now)
      } catch  where error == .changedMeanwhile && attempt < Self.mostAttempts {
        // Somebody else has made the key, and it is opened.
        if let path = try fileDirectory(parent).keyPath(name, self) { departures.forget(path) }
      }
    }
    throw .changedMeanwhile
  }

  private func make(
    _ name: String, in parent: NodeID, _ flags: CreationFlags, _ now: Moment
  ) throws(TreeError) -> (entry: Entry, handle: HandleID) {
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
      guard isDoubtfulScratch(name, in: directory, making) else {
        watchScratch(node, name, now: now)
        return (try entry(node), .none)
      }
      node.scratch?.mayStay = true
      noteUse(node, at: now.instant)
      return (try entry(node), .none)
    }
    let mode = flags.mode & 0o200 == 0 ? flags.mode & 0o777 : nil
    return try createKey(try newPath(name, in: directory), mode: mode)
  }

  /// Opens a file that was made after the kernel's look-up. Truncates it if open(2) asks for that,
  /// because the kernel sends no SETATTR after a CREATE.
  private func reopen(
    _ node: Node, _ flags: CreationFlags, _ now: Moment
  ) throws(TreeError) -> Entry {
    if flags.truncating { try truncate(node, to: 0, handle: .none, now: now) }
    return try entry(node)
  }

  /// Makes a key whose value is the empty string. Throws `.changedMeanwhile` if the key is there:
  /// somebody else has made it, and this mount has not heard of it yet.
  private func createKey(
    _ path: KeyPath, mode: UInt32?
  ) throws(TreeError) -> (entry: Entry, handle: HandleID) {
    let former = departures.former(path)
    let empty: [UInt8] = []
    let value = options.kind == .dictionary ? Value.dictionary([:]) : .string("")
    var intents = [Intent.set(path.key, path.domain, value, .exact(empty))]
    if let mode = mode ?? former?.mode {
      intents.append(.describe(path.key, path.domain, Description(mode: mode)))
    }
    let place = former?.place == .host ? Place.host : .user
    if !options.isGenerated, engine.reaches(Location(place, path.domain), of: path.domain) {
      let target = Location(place, path.domain)
      intents.insert(.expectUnchanged(path.key, target, since: nil), at: 0)
    }
    intents = inFormerPlace(path, intents)
    lastHandle += 1
    let handle = HandleID(rawValue: lastHandle)
    // Schemas judge the text that follows, not the empty value until then.
    try transact(intents, touching: [path], isJudged: false) { _ in
      departures.forget(path)
      // Where the notice of a removal has not been handled, there is a node. It keeps its number.
      if table[path] == nil { table.renewInode(of: path) }
      table.file(of: path).file.creation = KeyFile.Creation(
        handle: handle, preferredKind: former?.kind)
    }
    return (try entry(table.file(of: path).node), handle)
  }

  /// Carries out the close(2) of a key's creator: the type that the key has at this moment is
  /// fixed.
  public func release(_ id: NodeID, _ handle: HandleID, now: Moment) {
    guard let file = table[id]?.keyFile, file.creation?.handle == handle else { return }
    // Text that ends inside a UTF-8 character is data, because nothing can complete it any more;
    // the tail behind new text counts if the text is a value with it. A refusal has been logged.
    if let editor = file.editor, editor.isInferred, editor.deadline != nil {
      do { try expire(file, now: now) } catch {}
    }
    file.creation = nil
    if file.editor?.isInferred == true { file.editor = nil }
  }

  /// Carries out unlink(2) of a key.
  func unlink(_ path: KeyPath, _ resolution: Resolution, now: Moment) throws(TreeError) {
    let displaced = try displaced(path)
    let former = Departures.Former(path, resolution)
    try transact([.remove(path.key, path.domain)], touching: [path]) { _ in
      detach(displaced, at: now.time)
      depart(path, former, now: now)
    }
  }

  /// Hides the name of a key that was removed or renamed, for a second: see `Departures`.
  func depart(_ path: KeyPath, _ former: Departures.Former, now: Moment) {
    departures.noteRemoval(path, former, at: now.instant)
    wake(at: departures.deadline ?? now.instant)
    table.renewInode(of: path)
  }

  /// Returns the file of a key that is about to lose its name, with the text that it shows; nil if
  /// the kernel does not know the file.
  func displaced(_ path: KeyPath) throws(TreeError) -> Displaced? {
    guard let node = table[path] else { return nil }
    do {
      return Displaced(node: node, text: try shownText(node), mode: try resolve(path)?.mode)
    } catch  where error == .missing {
      // The key is gone, and the notice of that has not been handled.
      return Displaced(node: node, text: [], mode: nil)
    }
  }

  /// A file that is about to lose its name, with the text and the permission bits that it shows.
  struct Displaced {
    let node: Node
    let text: [UInt8]
    let mode: UInt32?
  }

  /// Detaches a displaced file: a process that has it open keeps reading the text that it showed.
  func detach(_ displaced: Displaced?, at time: Timestamp) {
    guard let displaced else { return }
    let node = displaced.node
    node.modified = time
    if let file = node.keyFile { dropCachedText(file) }
    table.detach(node, text: displaced.text, mode: displaced.mode)
  }

  /// Makes an entry for a name that is gone. The driver's announcer unlinks it once, so that
  /// watchers get an event for the removal.
  public func ghost(isDirectory: Bool, now: Moment) throws(TreeError) -> Entry {
    let node = table.addGhost(isDirectory: isDirectory, now: now)
    var entry = try entry(node)
    entry.isCacheable = false
    entry.attributes.isCacheable = false
    return entry
  }
}
