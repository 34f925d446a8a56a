import PreferenceModel
import PropertyList
import SystemCalls

// Makes, writes, links and removes scratch files, which are in memory only, and makes keys of those
// that may stay.

extension Tree {
  /// Whether a file that is about to be made under a new name in the directory is a scratch file.
  func isScratchName(
    _ name: String, in directory: any FileDirectory, _ making: ScratchName.Making
  ) -> Bool {
    guard case .domain(let domain) = directory.filesParent else { return true }
    // The name of a key that departed a moment ago means that key again.
    if case .key(let key) = NameCodec.decode(name),
      departures.contains(KeyPath(domain: domain, key: key)),
      making != .file(exclusively: true, readsToo: true)
    {
      return false
    }
    return ScratchName.isScratch(name, making) { stem in
      isOrWasKey(stem, in: domain)
    }
  }

  /// Whether a scratch file that is about to be made may be meant to stay: see
  /// `ScratchName.isDoubtful`.
  func isDoubtfulScratch(
    _ name: String, in directory: any FileDirectory, _ making: ScratchName.Making
  ) -> Bool {
    guard case .domain(let domain) = directory.filesParent else { return false }
    return ScratchName.isDoubtful(name, making) { stem in
      isOrWasKey(stem, in: domain)
    }
  }

  private func isOrWasKey(_ name: String, in domain: DomainName) -> Bool {
    guard case .key(let key) = NameCodec.decode(name) else { return false }
    return departures.contains(KeyPath(domain: domain, key: key))
      || (try? engine.resolve(key, in: domain)) != nil
  }

  /// Notes that a scratch file was made or changed. One that may stay becomes a key 5 s later,
  /// unless it was changed again, or a tool has renamed or removed it by then. Nothing depends on
  /// its close(2): the kernel sends no RELEASE once it has an OPEN answered with ENOSYS.
  func noteUse(_ node: Node, at now: Instant) {
    guard node.scratch?.mayStay == true else { return }
    let end = now.advanced(milliseconds: 5000)
    unclaimed[node.id] = end
    wake(at: end)
  }

  /// Makes keys of the scratch files that may stay, and that no tool has renamed or removed in
  /// time. A refusal is logged, and the file stays what it is. Where the store does not answer, it
  /// is tried again 5 s later.
  /// - Parameter end: nil: whatever the time, because the mount ends.
  func keepUnclaimed(until end: Instant?, now: Moment) {
    for (id, due) in unclaimed where end.map({ due <= $0 }) ?? true {
      unclaimed[id] = nil
      guard let node = table[id], let file = node.scratch,
        case .domain(let domain) = file.path.parent, departures.source(of: id) == nil,
        case .key(let key) = NameCodec.decode(file.path.name)
      else { continue }
      do throws(TreeError) {
        try setKey(KeyPath(domain: domain, key: key), from: node, now: now)
      } catch  where end != nil && error.mayPass {
        noteUse(node, at: now.instant)
      } catch {
        log("\(node.subject): this file cannot become a preference; it is lost with the mount")
      }
    }
  }

  /// Makes a scratch file or link.
  func addScratch(
    _ path: ScratchPath, _ content: ScratchFile.Content, mode: UInt32?, now: Moment
  ) throws(TreeError) -> Node {
    try checkRoom(for: content.count + ScratchSpace.overhead, path.name)
    let node = table.addScratch(path, content, mode: mode, now: now)
    entriesChanged(path.parent, at: now.time)
    return node
  }

  /// Makes a scratch directory.
  func addScratchDirectory(_ path: ScratchPath, now: Moment) throws(TreeError) -> Entry {
    try checkRoom(for: ScratchSpace.overhead, path.name)
    let node = table.addScratchDirectory(path, now: now)
    entriesChanged(path.parent, at: now.time)
    return try entry(node)
  }

  /// Throws ENOSPC if scratch files would take too much memory with `bytes` more.
  func checkRoom(for bytes: Int, _ subject: String) throws(TreeError) {
    guard bytes <= ScratchSpace.total - table.scratchBytes else {
      throw refused(.system(.noSpace, "\(subject): temporary files may take 64 MiB in all"))
    }
  }

  /// Removes the name of a scratch file, link or directory. A process that has the file open keeps
  /// a private copy of its text.
  func removeScratch(_ node: Node, now: Moment) {
    guard let path = node.scratchPath else { return }
    table.detach(node, text: node.scratch?.text ?? [], mode: node.scratch?.mode)
    entriesChanged(path.parent, at: now.time)
    forget(node.id, 0)
  }

  /// Carries out unlink(2) of a scratch file. Also removes the key that was moved away to it.
  func unlinkScratch(_ node: Node, now: Moment) throws(TreeError) {
    if node.type == .directory { throw .isDirectory }
    if let source = departures.source(of: node.id), let former = departures.former(source) {
      try transact([.remove(source.key, source.domain)], touching: [source]) { _ in
        depart(source, former, now: now)
      }
    }
    removeScratch(node, now: now)
  }

  /// Removes a scratch file or an empty scratch directory that a rename replaces, and the key that
  /// was moved away to it.
  func replaceScratch(_ existing: Node?, now: Moment) throws(TreeError) {
    guard let existing else { return }
    guard existing.type == .directory else { return try unlinkScratch(existing, now: now) }
    guard table.scratchNodes(in: .directory(existing.id)).isEmpty else {
      throw refused(.notEmpty("\(existing.subject): it has files"))
    }
    removeScratch(existing, now: now)
  }

  // MARK: - Contents

  func writeScratch(
    _ node: Node, _ file: ScratchFile, _ write: WriteRequest, now: Moment
  ) throws(TreeError) {
    guard !file.isLink else { throw .invalid("only a file can be written") }
    let count = file.count
    let bytes = write.bytes
    let position = write.appending ? count : write.offset
    let (end, overflow) = position.addingReportingOverflow(bytes.count)
    guard !overflow, position >= 0 else { throw tooLarge(node.subject) }
    try checkRoom(for: max(0, end - count), node.subject)
    table.edit(node, file, min(position, count)..<end) { $0.overwrite(at: position, with: bytes) }
    (file.hasOwnTime, node.modified) = (false, now.time)
    noteUse(node, at: now.instant)
    if write.appending, write.offset != count { effects.append(.invalidateContents(node.id)) }
  }

  func truncateScratch(
    _ node: Node, _ file: ScratchFile, to size: Int, now: Moment
  ) throws(TreeError) {
    guard !file.isLink else { throw .invalid("only a file can be truncated") }
    guard size >= 0 else { throw .invalid("a negative size") }
    try checkRoom(for: max(0, size - file.count), node.subject)
    table.edit(node, file, min(size, file.count)..<size) { $0.resize(to: size) }
    (file.hasOwnTime, node.modified) = (false, now.time)
    noteUse(node, at: now.instant)
  }

  // MARK: - Links and directories

  /// Carries out link(2). To a scratch name it makes a copy. A scratch file that is linked to a
  /// key's name sets the key. A key cannot be linked to another key's name (EPERM).
  public func link(
    _ id: NodeID, _ parent: NodeID, _ name: [UInt8], now: Moment
  ) throws(TreeError) -> Entry {
    let name = try validated(name)
    try requireWritable()
    let directory = try fileDirectory(parent)
    guard case .nothing = try find(name, in: directory, now: now) else { throw .exists }
    let source = try node(id)
    let text = try shownText(source)
    if isScratchName(name, in: directory, .link) {
      let path = ScratchPath(parent: directory.filesParent, name: name)
      return try entry(
        try addScratch(path, .file(text), mode: source.scratch?.mode, now: now))
    }
    guard let scratch = source.scratch, case .domain(let domain) = directory.filesParent else {
      throw refused(.refused("\(source.subject): a preference has one name"))
    }
    let path = KeyPath(domain: domain, key: try newKey(name, "\(domain) \(name)"))
    let existing = departures.isMovedAway(path) ? try resolve(path) : nil
    let formerMode = existing == nil ? departures.former(path)?.mode : nil
    let kept = Description(
      mode: scratch.mode ?? formerMode, modified: scratch.hasOwnTime ? source.modified : nil)
    let set = try setting(path, to: text, existing: existing, wanted: scratch.wantedKind)
    let describe = kept.isEmpty ? [] : [Intent.describe(path.key, path.domain, kept)]
    let made = existing == nil ? inFormerPlace(path, [set] + describe) : [set] + describe
    try transact(made, touching: [path]) { _ in
      departures.forget(path)
      if table[path] == nil { table.renewInode(of: path) }
    }
    // Where the key had that value already, nothing else says that its name is there again.
    entriesChanged(path.domain, at: now.time)
    return try entry(table.file(of: path).node)
  }

  /// Carries out symlink(2), for scratch names only (emacs' locks). Other names are EOPNOTSUPP and
  /// never EPERM, after which emacs makes a file instead.
  public func makeLink(
    _ parent: NodeID, _ name: [UInt8], to target: [UInt8], now: Moment
  ) throws(TreeError) -> Entry {
    let name = try validated(name)
    try requireWritable()
    guard let directory = try directory(parent) as? any FileDirectory else { throw .unsupported }
    guard case .nothing = try find(name, in: directory, now: now) else { throw .exists }
    guard isScratchName(name, in: directory, .link) else { throw .unsupported }
    let path = ScratchPath(parent: directory.filesParent, name: name)
    return try entry(try addScratch(path, .link(target: target), mode: 0o777, now: now))
  }

  /// Carries out readlink(2).
  public func readLink(_ id: NodeID) throws(TreeError) -> [UInt8] {
    guard case .link(let target)? = try node(id).scratch?.content else {
      throw .invalid("not a symbolic link")
    }
    return target
  }

  /// Carries out mkdir(2) in a directory of files, for tools that use a directory as a lock or for
  /// their temporary files.
  func makeScratchDirectory(
    in directory: any FileDirectory, _ name: String, now: Moment
  ) throws(TreeError) -> Entry {
    guard case .nothing = try find(name, in: directory, now: now) else { throw .exists }
    guard isScratchName(name, in: directory, .directory) else {
      throw refused(.refused("\(directory.subject): a domain has no directories"))
    }
    return try addScratchDirectory(
      ScratchPath(parent: directory.filesParent, name: name), now: now)
  }

  /// Carries out rmdir(2) of a scratch directory.
  func removeScratchDirectory(_ node: Node, now: Moment) throws(TreeError) {
    guard node.type == .directory else { throw .notDirectory }
    guard table.scratchNodes(in: .directory(node.id)).isEmpty else {
      throw refused(.notEmpty("\(node.subject): it has files"))
    }
    removeScratch(node, now: now)
  }

  // MARK: - Log lines

  /// Notes a scratch file whose name could be a key's: if the file still exists after 2 s, a log
  /// line says that it is not a preference.
  func watchScratch(_ node: Node, _ name: String, now: Moment) {
    guard case .key = NameCodec.decode(name) else { return }
    let end = now.instant.advanced(milliseconds: 2000)
    doubtfulScratch[node.id] = end
    wake(at: end)
  }

  /// Logs the noted scratch files whose 2 s are over.
  func reportScratch(now: Moment) {
    for (id, end) in doubtfulScratch where end <= now.instant {
      doubtfulScratch[id] = nil
      guard let node = table[id], node.scratch != nil, departures.source(of: id) == nil else {
        continue
      }
      let text =
        "\(node.subject): by its name this is a temporary file, not a preference; it is lost with "
        + "the mount, unless it is renamed or user.prefs.type is set on it"
      log(.notice(text))
    }
  }

  /// Logs which scratch files of domains are lost at the end of the mount.
  func logLostScratch() {
    for node in table.scratchNodes {
      guard let file = node.scratch, case .domain = file.path.parent, !file.isLink else { continue }
      log(.notice("\(node.subject): a temporary file is lost with the mount"))
    }
  }
}

extension Node {
  /// The path of a scratch file, link or directory; nil for other kinds.
  var scratchPath: ScratchPath? {
    switch content {
    case .scratch(let file): file.path
    case .directory(let directory): (directory as? ScratchDirectory)?.path
    case .key, .detached: nil
    }
  }
}
