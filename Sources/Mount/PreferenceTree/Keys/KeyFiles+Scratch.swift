import PreferenceModel
import SystemCalls

// rename(2), link(2), unlink(2), symlink(2), mkdir(2) and rmdir(2) of scratch files, some of which
// become keys.

extension KeyFiles {
  /// Carries out rename(2) of a scratch file, link or directory.
  func renameScratch(
    _ node: Node, to directory: any Directory, _ name: String, _ mode: RenameMode,
    now: Moment
  ) throws(TreeError) {
    guard mode != .exchange else {
      throw log.refused(.invalid("\(node.subject): temporary files cannot be exchanged"))
    }
    let found = try find(name, in: directory, now: now)
    if mode == .keep, case .nothing = found {} else if mode == .keep { throw .exists }
    if case .scratch(let existing) = found, existing === node { return }
    if case .key(let path, _) = found { return try setKey(path, from: node, now: now) }
    if case .domain = directory.scratchParent, becomesKey(node, name, directory) {
      let path = try newPath(name, in: directory)
      try setKey(path, from: node, isNew: mode == .keep, now: now)
      if case .scratch(let existing) = found { try replaceScratch(existing, now: now) }
      return
    }
    if case .scratch(let existing) = found {
      guard (existing.type == .directory) == (node.type == .directory) else {
        throw existing.type == .directory ? .isDirectory : .notDirectory
      }
      try replaceScratch(existing, now: now)
    }
    if let old = node.scratchPath { kernel.entriesChanged(old.parent, at: now.time) }
    table.rename(node, to: ScratchPath(parent: directory.scratchParent, name: name))
    scratch.note(scratch.judge(name, in: directory, .rename), of: node, at: now.instant)
    kernel.entriesChanged(directory.scratchParent, at: now.time)
  }

  /// Whether a scratch file becomes a key under the new name: the name is not a scratch name, or a
  /// tool has set a type on the file and the name is not a scratch name by its pattern alone.
  private func becomesKey(
    _ node: Node, _ name: String, _ directory: any Directory
  ) -> Bool {
    guard node.type == .file else { return false }
    if node.scratch?.wantedKind != nil, !NameCodec.isScratchPattern(name) { return true }
    let making = ScratchName.Making.file(exclusively: false, readsToo: false)
    return scratch.judge(name, in: directory, making) == .key
  }

  /// Carries out unlink(2) of a scratch file. Also removes the key that was moved away to it.
  func unlinkScratch(_ node: Node, now: Moment) throws(TreeError) {
    if node.type == .directory { throw .isDirectory }
    if let source = removedNames.source(of: node.id), let former = removedNames.former(source) {
      try transactor.transact([.remove(source.key, source.domain)], touching: [source]) { _ in
        hideName(source, former, now: now)
      }
    }
    scratch.remove(node, now: now)
  }

  /// Removes a scratch file or an empty scratch directory that a rename replaces, and the key that
  /// was moved away to it.
  func replaceScratch(_ existing: Node?, now: Moment) throws(TreeError) {
    guard let existing else { return }
    guard existing.type == .directory else { return try unlinkScratch(existing, now: now) }
    guard table.scratchNodes(in: .directory(existing.id)).isEmpty else {
      throw log.refused(.notEmpty("\(existing.subject): it has files"))
    }
    scratch.remove(existing, now: now)
  }

  /// Carries out link(2). To a scratch name it makes a copy. A scratch file that is linked to the
  /// name of a new key makes the key; EEXIST if the name is there. A key cannot be linked to
  /// another key's name (EPERM).
  func link(
    _ id: NodeID, to name: String, in directory: any Directory, now: Moment
  ) throws(TreeError) -> Node {
    let isMade = transactor.made != nil
    if !isMade {
      guard case .nothing = try find(name, in: directory, now: now) else { throw .exists }
    }
    guard let source = table[id] else { throw .missing }
    let text = try values.shownText(source)
    if !isMade, let node = try addCopy(of: source, text, name, in: directory, now: now) {
      return node
    }
    guard let file = source.scratch, case .domain = directory.scratchParent else {
      throw log.refused(.refused("\(source.subject): a preference has one name"))
    }
    let path = try newPath(name, in: directory)
    let existing = removedNames.isMovedAway(path) ? try values.resolve(path) : nil
    let formerMode = existing == nil ? removedNames.former(path)?.mode : nil
    let kept = Description(
      mode: file.mode ?? formerMode, modified: file.hasOwnTime ? source.modified : nil)
    let set = try setting(path, to: text, existing: existing, of: file)
    let describe = kept.isEmpty ? [] : [Intent.describe(path.key, path.domain, kept)]
    let intents = [set] + describe
    let made = existing == nil ? inFormerPlace(path, expectNone(path) + intents) : intents
    try transactor.transact(
      made, touching: [path], isDecisive: true, isNew: existing == nil
    ) { _ in
      removedNames.forget(path)
      if table[path] == nil { table.renewInode(of: path) }
    }
    // Where the key had that value already, nothing else says that its name is there again.
    kernel.entriesChanged(path.domain, at: now.time)
    return table.node(of: path)
  }

  /// Makes the scratch copy that a link to a scratch name is; nil if the name is a key's.
  private func addCopy(
    of source: Node, _ text: [UInt8], _ name: String, in directory: any Directory, now: Moment
  ) throws(TreeError) -> Node? {
    let verdict = scratch.judge(name, in: directory, .link)
    if verdict == .key { return nil }
    var kind = source.scratch?.formerKind
    if case .key(let path) = source.content { kind = try values.resolve(path)?.kind }
    let path = ScratchPath(parent: directory.scratchParent, name: name)
    let node = try scratch.add(path, .file(text), mode: source.scratch?.mode, now: now)
    node.scratch?.formerKind = kind
    scratch.note(verdict, of: node, at: now.instant)
    return node
  }

  /// Carries out symlink(2); EOPNOTSUPP for a name that is not a scratch file's.
  func makeLink(
    _ name: String, in directory: any Directory, to target: [UInt8], now: Moment
  ) throws(TreeError) -> Node {
    guard case .nothing = try find(name, in: directory, now: now) else { throw .exists }
    guard scratch.judge(name, in: directory, .link) != .key else { throw .unsupported }
    let path = ScratchPath(parent: directory.scratchParent, name: name)
    return try scratch.add(path, .link(target: target), mode: 0o777, now: now)
  }

  /// Carries out mkdir(2) in a directory of files, for tools that use a directory as a lock or for
  /// their temporary files.
  func makeScratchDirectory(
    in directory: any Directory, _ name: String, now: Moment
  ) throws(TreeError) -> Node {
    guard case .nothing = try find(name, in: directory, now: now) else { throw .exists }
    guard scratch.judge(name, in: directory, .directory) != .key else {
      throw log.refused(.refused("\(directory.subject): a domain has no directories"))
    }
    return try scratch.addDirectory(
      ScratchPath(parent: directory.scratchParent, name: name), now: now)
  }

  /// Carries out rmdir(2) of a scratch directory.
  func removeScratchDirectory(_ node: Node, now: Moment) throws(TreeError) {
    guard node.type == .directory else { throw .notDirectory }
    guard table.scratchNodes(in: .directory(node.id)).isEmpty else {
      throw log.refused(.notEmpty("\(node.subject): it has files"))
    }
    scratch.remove(node, now: now)
  }

  /// Makes keys of the scratch files that may stay, and that no tool has renamed or removed in
  /// time. The file of a key whose name is scratch by pattern gets the key's escaped name. A refusal
  /// is logged, and the file stays what it is, also where somebody else has made the key meanwhile.
  /// Where the store does not answer, it is tried again 5 s later.
  /// - Parameter end: nil means whatever the time, because the mount ends.
  func keepUnclaimed(until end: Instant?, now: Moment) {
    for (node, path) in scratch.removeUnclaimed(until: end) {
      do throws(TreeError) {
        let name = node.scratch?.path.name
        try setKey(path, from: node, isNew: true, now: now)
        if name != NameCodec.encode(path.key) { reportRenamed(path) }
      } catch  where end != nil && error.mayPass {
        // The store may have been asked for 5 s.
        scratch.noteUse(node, at: .now)
      } catch {
        log("\(node.subject): this file cannot become a preference; it is lost with the mount")
      }
    }
  }

  /// Logs under which name listings show a key that was a scratch file with a name by pattern.
  private func reportRenamed(_ path: KeyPath) {
    let name = NameCodec.encode(path.key)
    log(.notice("\(path): this file was not removed; it is a preference now, listed as \(name)"))
  }
}
