import PreferenceModel
import PropertyList
import SystemCalls

// Scratch files: made, written, linked, renamed and removed in memory (law 8).

extension Tree {
  /// What a name means.
  enum Found {
    case key(KeyPath, Resolution)
    case scratch(Node)
    case nothing
  }

  /// What the name in a domain or scratch directory means now; a key wins over a scratch file.
  func find(_ parent: NodeID, _ name: String, now: Instant) throws(TreeError) -> Found {
    let directory = try scratchParent(parent)
    if case .domain(let domain) = directory, let path = try path(domain, name),
      let resolution = try resolve(path, now: now)
    {
      return .key(path, resolution)
    }
    return table[ScratchPath(parent: directory, name: name)].map { .scratch($0) } ?? .nothing
  }

  /// The directory as a place of scratch files.
  func scratchParent(_ id: NodeID) throws(TreeError) -> ScratchPath.Parent {
    let node = try node(id)
    switch node.subject {
    case .domain(let domain): return .domain(domain)
    case .scratch where node.type == .directory: return .directory(id)
    case .root:
      throw refused(.refused("files at the root: keys lie in the directory of their domain"))
    case .key, .detached, .scratch: throw .notDirectory
    }
  }

  /// Whether a new name in the directory is one of a tool's temporary files.
  func isScratchName(
    _ name: String, in parent: ScratchPath.Parent, _ making: ScratchName.Making
  ) -> Bool {
    guard case .domain(let domain) = parent else { return true }
    // A key that was moved away or removed a moment ago is made again under its own name.
    if case .key(let key) = NameCodec.decode(name),
      removals[KeyPath(domain: domain, key: key)] != nil,
      making != .file(exclusively: true, readsToo: true)
    {
      return false
    }
    return ScratchName.isScratch(name, making) { stem in
      guard case .key(let key) = NameCodec.decode(stem) else { return false }
      let path = KeyPath(domain: domain, key: key)
      return removals[path] != nil || (try? engine.resolve(key, in: domain)) != nil
    }
  }

  /// Makes a scratch file.
  func addScratch(
    _ path: ScratchPath, _ content: Scratch.Content, mode: UInt32?
  ) throws(TreeError) -> Node {
    let scratch = Scratch(content: content, mode: mode, modified: .now)
    try checkRoom(for: scratch.size, path.name)
    let node = table.addScratch(path, scratch)
    node.modified = scratch.modified
    directoryChanged(path.parent)
    return node
  }

  func checkRoom(for bytes: Int, _ name: String) throws(TreeError) {
    guard bytes <= Scratch.largestTotal - table.scratchBytes else {
      throw refused(.system(.noSpace, "\(name): temporary files may take 64 MiB together"))
    }
  }

  /// The entries of the directory are others now.
  func directoryChanged(_ parent: ScratchPath.Parent) {
    switch parent {
    case .root: rootChanged(at: .now)
    case .domain(let domain): entriesChanged(domain, at: .now)
    case .directory(let id):
      guard let node = table[id] else { return }
      node.listing = nil
      node.modified = max(.now, node.modified.next)
      effects.append(.dropAttributes(id))
    }
  }

  /// The name goes; who has the file open keeps it.
  func removeScratch(_ node: Node) {
    guard case .scratch(let path) = node.subject else { return }
    table.detach(node, text: node.scratch?.text ?? [])
    directoryChanged(path.parent)
    forget(node.id, 0)
  }

  // MARK: - Contents

  func writeScratch(
    _ node: Node, _ bytes: [UInt8], at offset: Int, appending: Bool
  ) throws(TreeError) {
    guard var scratch = node.scratch, case .file(var text) = scratch.content else {
      throw .invalid("only a file can be written")
    }
    let position = appending ? text.count : offset
    let (end, overflow) = position.addingReportingOverflow(bytes.count)
    guard !overflow, position >= 0 else { throw .tooLarge(subjectText(node)) }
    try checkRoom(for: max(0, end - text.count), subjectText(node))
    let before = text.count
    // The node lets go of the text, so that it changes in place.
    table.setScratch(nil, of: node)
    scratch.content = .directory
    if position > text.count { text += repeatElement(0, count: position - text.count) }
    text.replaceSubrange(position..<min(end, text.count), with: bytes)
    scratch.content = .file(text)
    touch(node, &scratch)
    if appending, offset != before { effects.append(.dropContents(node.id)) }
  }

  func truncateScratch(_ node: Node, to size: Int) throws(TreeError) {
    guard var scratch = node.scratch, let text = scratch.text else {
      throw .invalid("only a file can be truncated")
    }
    guard size >= 0 else { throw .invalid("a negative size") }
    try checkRoom(for: max(0, size - text.count), subjectText(node))
    scratch.content = .file(
      Array(text.prefix(size)) + repeatElement(0, count: max(0, size - text.count)))
    touch(node, &scratch)
  }

  private func touch(_ node: Node, _ scratch: inout Scratch) {
    scratch.modified = .now
    scratch.hasOwnTime = false
    node.modified = scratch.modified
    table.setScratch(scratch, of: node)
  }

  // MARK: - Links and directories

  /// link(2): to a scratch name it makes a copy; of a scratch file to a key's name it sets the
  /// key. Two keys cannot be one file (EPERM).
  public func link(
    _ id: NodeID, _ parent: NodeID, _ name: [UInt8], now: Instant
  ) throws(TreeError) -> Entry {
    let name = try validated(name)
    if engine.isReadOnly { throw .readOnly }
    let directory = try scratchParent(parent)
    guard case .nothing = try find(parent, name, now: now) else { throw .exists }
    let source = try node(id)
    let text = try shownText(source)
    if isScratchName(name, in: directory, .link) {
      let path = ScratchPath(parent: directory, name: name)
      return try entry(try addScratch(path, .file(text), mode: source.scratch?.mode))
    }
    guard source.scratch != nil, case .domain(let domain) = directory else {
      throw refused(.refused("\(subjectText(source)): a preference has one name"))
    }
    let path = KeyPath(domain: domain, key: try newKey(name, "\(domain) \(name)"))
    let existing = removals[path]?.holder == nil ? nil : try resolve(path)
    let changeset = try apply([try setting(path, to: text, existing: existing)])
    endHold(path)
    table.renewInode(of: path)
    propagate(changeset, known: [path], addsEntries: true)
    return try entry(table.node(of: path))
  }

  /// symlink(2): scratch names only (emacs' locks); EOPNOTSUPP for others, never EPERM, because
  /// emacs then writes a file instead.
  public func makeLink(
    _ parent: NodeID, _ name: [UInt8], to target: [UInt8], now: Instant
  ) throws(TreeError) -> Entry {
    let name = try validated(name)
    if engine.isReadOnly { throw .readOnly }
    guard let directory = try? scratchParent(parent) else { throw .unsupported }
    guard case .nothing = try find(parent, name, now: now) else { throw .exists }
    guard isScratchName(name, in: directory, .link) else { throw .unsupported }
    let path = ScratchPath(parent: directory, name: name)
    return try entry(try addScratch(path, .link(target), mode: 0o777))
  }

  /// readlink(2).
  public func readLink(_ id: NodeID) throws(TreeError) -> [UInt8] {
    guard case .link(let target)? = try node(id).scratch?.content else {
      throw .invalid("not a symbolic link")
    }
    return target
  }

  /// mkdir(2) in a domain, for tools that lock or collect files so.
  func makeScratchDirectory(
    _ parent: NodeID, _ name: String, now: Instant
  ) throws(TreeError) -> Entry {
    let directory = try scratchParent(parent)
    guard case .nothing = try find(parent, name, now: now) else { throw .exists }
    guard isScratchName(name, in: directory, .directory) else {
      throw refused(.refused("\(subjectText(try node(parent))): a domain has no directories"))
    }
    let path = ScratchPath(parent: directory, name: name)
    return try entry(try addScratch(path, .directory, mode: 0o700))
  }

  func removeScratchDirectory(
    _ parent: NodeID, _ name: String, now: Instant
  ) throws(TreeError) {
    switch try find(parent, name, now: now) {
    case .nothing: throw .missing
    case .key: throw .notDirectory
    case .scratch(let node): try removeScratchDirectory(node, name)
    }
  }

  func removeScratchDirectory(_ node: Node, _ name: String) throws(TreeError) {
    guard node.type == .directory else { throw .notDirectory }
    guard table.scratchNodes(in: .directory(node.id)).isEmpty else {
      throw .notEmpty("\(name): it has files")
    }
    removeScratch(node)
  }

  /// A file that a person may take for a key is named in the log where it is still a temporary one after a
  /// moment.
  func watchScratch(_ node: Node, _ name: String, now: Instant) {
    guard case .key = NameCodec.decode(name) else { return }
    let end = now.advanced(milliseconds: 2000)
    watchedScratch[node.id] = end
    wake(at: end)
  }

  func reportScratch(now: Instant) {
    for (id, end) in watchedScratch where end <= now {
      watchedScratch[id] = nil
      guard let node = table[id], case .scratch = node.subject, node.scratch?.movedFrom == nil
      else {
        continue
      }
      log(
        "\(subjectText(node)): a temporary file by its name; it is no preference and is lost with the "
          + "mount, unless it is renamed or user.prefs.type is set on it")
    }
  }

  /// What is left of scratch files when the mount ends is lost; the log says which.
  func logLostScratch() {
    for path in table.scratchPaths {
      guard case .domain(let domain) = path.parent, let node = table[path], node.type == .file
      else { continue }
      log("\(domain) \(path.name): a temporary file is lost with the mount")
    }
  }
}

extension Node {
  /// What it is.
  var type: FileType {
    switch subject {
    case .root, .domain: return .directory
    case .key, .detached: return .file
    case .scratch:
      switch scratch?.content {
      case .directory: return .directory
      case .link: return .link
      case .file, nil: return .file
      }
    }
  }
}
