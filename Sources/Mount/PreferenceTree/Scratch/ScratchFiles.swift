import PreferenceModel
import PropertyList
import SystemCalls

/// The files, links and directories that tools make beside keys while they work (backups, temporary
/// files, locks), and the texts of files whose name is gone. They are in memory only.
///
/// Promises: scratch files have at most 64 MiB in all, with removed ones that are still open. The
/// text of a removed key's file grows only while all of them have less than that. A file that may
/// have been meant as a key becomes one 5 s after its last change (`ScratchName.Verdict.inDoubt`).
/// The log names each file that is lost at the end of the mount. A file that open(2) with O_EXCL
/// has made has its name for itself in all mounts of the store while it has that name
/// (`NameClaims`), unless it is in a scratch directory.
///
/// Threads: the tree's alone.
final class ScratchFiles {
  private let engine: any Engine
  private let options: TreeOptions
  private let log: TreeLog
  private let table: NodeTable
  private let removedNames: RemovedNames
  private let kernel: KernelCache
  private let position: TreePosition
  private let author: Author
  private let claims: (any NameClaims)?
  /// Scratch files that may stay, and when they become keys.
  private var unclaimed = NodeTimers()

  init(_ parts: TreeParts, _ kernel: KernelCache) {
    (engine, options, log, table) = (parts.engine, parts.options, parts.log, parts.table)
    (removedNames, self.kernel) = (parts.removedNames, kernel)
    (position, author, claims) = (parts.position, parts.author, parts.claims)
    table.lostClaim = { [position, author, claims] path in
      if let name = position.path(of: path) { claims?.release(Key(name), by: author) }
    }
  }

  /// When `removeUnclaimed` must be called; nil if it need not be.
  var deadline: Instant? { unclaimed.earliest }

  // MARK: - Which names are scratch

  /// What becomes of a file that is about to be made under a new name in the directory.
  /// - Parameter renamed: the name of the key that is renamed to it; nil if none is.
  func judge(
    _ name: String, in directory: any Directory, _ making: ScratchName.Making,
    renamed: String? = nil
  ) -> ScratchName.Verdict {
    let domain: DomainName
    switch directory.scratchParent {
    case .domain(let parent): domain = parent
    case .root: return ScratchName.isRootName(name) ? .temporary : .key
    case .directory: return .temporary
    }
    // The name of a key that left a moment ago means that key again.
    if case .key(let key) = NameCodec.decode(name),
      removedNames.contains(KeyPath(domain: domain, key: key)),
      making != .file(exclusively: true, readsToo: true)
    {
      return .key
    }
    let verdict = ScratchName.judge(name, making) { stem in
      renamed.map { $0 == stem } ?? isOrWasKey(stem, in: domain)
    }
    guard options.isGenerated, making != .directory else { return verdict }
    if NameCodec.isScratchPattern(name) { return .temporary }
    return ScratchName.isOfDocument(name) ? .inDoubt : verdict
  }

  private func isOrWasKey(_ name: String, in domain: DomainName) -> Bool {
    guard case .key(let key) = NameCodec.decode(name) else { return false }
    return removedNames.contains(KeyPath(domain: domain, key: key))
      || (try? engine.resolve(key, in: domain)) != nil
  }

  // MARK: - Files and directories

  /// Makes a scratch file or link.
  func add(
    _ path: ScratchPath, _ content: ScratchFile.Content, mode: UInt32?, now: Moment
  ) throws(TreeError) -> Node {
    try checkRoom(for: content.bytes.count + ScratchSpace.overhead, path.name)
    let node = table.addScratch(path, content, mode: mode, now: now)
    kernel.entriesChanged(path.parent, at: now.time)
    return node
  }

  /// Makes a scratch file exclusively; EEXIST if another mount has one that was made so, or has just
  /// made a key of it.
  /// - Parameter isNew: whether this mount knows nothing of that name.
  func addExclusively(
    _ path: ScratchPath, now: Moment, isNew: () throws(TreeError) -> Bool
  ) throws(TreeError) -> Node {
    guard let claims, let name = position.path(of: path).map({ Key($0) }) else {
      return try add(path, .file([]), mode: nil, now: now)
    }
    guard try claim(name, claims) else {
      throw log.refused(
        .system(
          .fileExists, "\(path.subject): another mount has made a temporary file of that name"))
    }
    do throws(TreeError) {
      guard try isNew() else { throw .exists }
      let node = try add(path, .file([]), mode: nil, now: now)
      node.scratch?.isClaimed = true
      return node
    } catch {
      claims.release(name, by: author)
      throw error
    }
  }

  private func claim(_ name: Key, _ claims: any NameClaims) throws(TreeError) -> Bool {
    do { return try claims.claim(name, by: author) } catch { throw log.refused(TreeError(error)) }
  }

  /// The names that are claimed.
  var claimed: [Key] {
    table.scratchNodes.compactMap { node in
      guard let file = node.scratch, file.isClaimed else { return nil }
      return position.path(of: file.path).map { Key($0) }
    }
  }

  func addDirectory(_ path: ScratchPath, now: Moment) throws(TreeError) -> Node {
    try checkRoom(for: ScratchSpace.overhead, path.name)
    let node = table.addScratchDirectory(path, now: now)
    kernel.entriesChanged(path.parent, at: now.time)
    return node
  }

  /// Throws ENOSPC if scratch files would take too much memory with `bytes` more.
  func checkRoom(for bytes: Int, _ subject: String) throws(TreeError) {
    guard bytes <= ScratchSpace.total - table.scratchBytes else {
      throw log.refused(.system(.noSpace, "\(subject): temporary files may take 64 MiB in all"))
    }
  }

  /// Removes the name of a scratch file, link or directory. A process that has the file open keeps
  /// a private copy of its text.
  func remove(_ node: Node, now: Moment) {
    guard let path = node.scratchPath else { return }
    table.detach(node)
    kernel.entriesChanged(path.parent, at: now.time)
    _ = table.forget(node.id, 0)
  }

  // MARK: - Contents

  /// Carries out write(2) of a scratch file, or of a file whose name is gone.
  func write(
    _ node: Node, _ file: ScratchFile, _ write: WriteRequest, now: Moment
  ) throws(TreeError) {
    guard !file.isLink else { throw .invalid("only a file can be written") }
    let count = file.count
    let bytes = write.bytes
    let position = write.appending ? count : write.offset
    let (end, overflow) = position.addingReportingOverflow(bytes.count)
    guard !overflow, position >= 0 else { throw log.refused(.textTooLarge(node.subject)) }
    try checkRoom(for: file, of: end, node)
    table.edit(file, min(position, count)..<end) { $0.overwrite(at: position, with: bytes) }
    (file.hasOwnTime, node.modified) = (false, now.time)
    noteUse(node, at: now.instant)
    if write.appending, write.offset != count {
      kernel.append(.invalidateContents(node.id))
    }
  }

  /// Carries out truncate(2) and ftruncate(2) of a scratch file, or of a file whose name is gone.
  func truncate(
    _ node: Node, _ file: ScratchFile, to size: Int, now: Moment
  ) throws(TreeError) {
    guard !file.isLink else { throw .invalid("only a file can be truncated") }
    guard size >= 0 else { throw .invalid("a negative size") }
    try checkRoom(for: file, of: size, node)
    table.edit(file, min(size, file.count)..<size) { $0.resize(to: size) }
    (file.hasOwnTime, node.modified) = (false, now.time)
    noteUse(node, at: now.instant)
  }

  /// Throws where the file may not have a text of that size: ENOSPC if all of its kind would take too
  /// much memory, EFBIG for a removed key's that would be larger than a key's may be.
  private func checkRoom(for file: ScratchFile, of size: Int, _ node: Node) throws(TreeError) {
    let growth = max(0, size - file.count)
    guard file.isOfKey else { return try checkRoom(for: growth, node.subject) }
    guard size <= TextEditor.largest else { throw log.refused(.textTooLarge(node.subject)) }
    guard growth <= max(0, ScratchSpace.total - table.detachedBytes) else {
      throw log.refused(
        .system(.noSpace, "removed files that are still open may take 64 MiB in all"))
    }
  }

  // MARK: - Files that may be meant to stay

  /// Notes that a scratch file was made or changed. One that may stay becomes a key 5 s later,
  /// unless it was changed again, or a tool has renamed or removed it by then. Nothing depends on
  /// its close(2): the kernel sends no RELEASE once it has an OPEN answered with ENOSYS.
  func noteUse(_ node: Node, at now: Instant) {
    guard node.scratch?.mayStay == true else { return }
    unclaimed.set(node.id, now.advanced(milliseconds: 5000))
  }

  /// Notes whether a scratch file may stay, because it was made, or has its name, in this way.
  func note(_ verdict: ScratchName.Verdict, of node: Node, at now: Instant) {
    guard let file = node.scratch, !file.isLink else { return }
    file.mayStay = verdict == .inDoubt
    if file.mayStay { noteUse(node, at: now) } else { unclaimed.remove(node.id) }
  }

  /// Removes and returns the scratch files that may stay, and that no tool has renamed or removed
  /// in time, with the keys that they become. An empty file whose name by pattern no key's file has
  /// becomes none: most are locks and marks.
  /// - Parameter end: nil means whatever the time, because the mount ends.
  func removeUnclaimed(until end: Instant?) -> [(node: Node, path: KeyPath)] {
    unclaimed.removeDue(at: end).compactMap { id in
      guard let node = table[id], let file = node.scratch, file.mayStay,
        case .domain(let domain) = file.path.parent, removedNames.source(of: id) == nil
      else { return nil }
      let name = file.path.name
      switch NameCodec.decode(name) {
      case .key(let key): return (node, KeyPath(domain: domain, key: key))
      case .scratch where file.count > 0: return (node, KeyPath(domain: domain, key: Key(name)))
      case .scratch, .shortened, .none: return nil
      }
    }
  }

  /// Logs which scratch files are lost at the end of the mount.
  func logLost() {
    for node in table.scratchNodes {
      guard let file = node.scratch, !file.isLink else { continue }
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
