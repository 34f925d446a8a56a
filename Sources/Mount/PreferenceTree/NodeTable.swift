import PreferenceModel
import PropertyList
import SystemCalls

/// Finds nodes by their number and by what they show, gives them inode numbers, and counts the
/// memory of scratch files.
///
/// It is a class, because reading a structure of this size may copy it.
///
/// Threads: the tree's alone.
final class NodeTable {
  private(set) var nodes: [NodeID: Node] = [:]
  /// The nodes that were made, changed or removed since the tree was saved.
  let changes = TreeChanges()
  private var byDomain: [DomainName: Node] = [:]
  private var byKey: [DomainName: [Key: Node]] = [:]
  /// Stores the names of keys in blocks of 4 KiB. A block is freed with the last of its names.
  private var names = KeyMaker(largest: 4096)
  private var byScratch: [ScratchPath: Node] = [:]
  /// Told the path that a file had whose name was claimed, when the file has it no longer.
  var lostClaim: (ScratchPath) -> Void = { _ in }
  /// Bytes that all scratch files, links and directories count for, overhead included.
  private(set) var scratchBytes = 0
  /// Bytes of the texts of all detached files.
  private(set) var detachedBytes = 0
  var lastNumber: UInt64
  var inodes: InodeNumbers
  /// The number of names with a number of their own at which some lose it, and the least such
  /// number.
  private var mostInodes = NodeTable.leastInodes
  private static let leastInodes = 1 << 18
  let root: Node

  /// Creates a table that has only the root, which shows domains or the keys of one domain.
  init(_ position: TreePosition, now: Moment) {
    inodes = InodeNumbers(position)
    let content: any Directory
    switch position.root {
    case .domains: content = RootDirectory()
    case .keys(let domain): content = DomainDirectory(domain)
    }
    root = Node(
      id: position.rootNode, inode: inodes.root, .directory(content), modified: now.time,
      changes: changes)
    lastNumber = root.id.rawValue
    nodes[root.id] = root
    if case .keys(let domain) = position.root { byDomain[domain] = root }
  }

  var domains: [DomainName] { Array(byDomain.keys) }

  /// How many nodes there are.
  var count: Int { nodes.count }

  /// The keys that have a node. Cost: O(nodes of keys).
  func paths() -> [KeyPath] {
    byKey.flatMap { domain, nodes in nodes.keys.map { KeyPath(domain: domain, key: $0) } }
  }

  /// The keys of a domain that have a node. Cost: O(their nodes).
  func paths(in domain: DomainName) -> [KeyPath] {
    byKey[domain]?.keys.map { KeyPath(domain: domain, key: $0) } ?? []
  }

  /// Whether the domain, or a key of it, has a node: else the kernel has nothing of it.
  func knows(_ domain: DomainName) -> Bool { byDomain[domain] != nil || byKey[domain] != nil }

  /// The domains in which the key has a node. Cost: O(domains).
  func domains(with key: Key) -> [DomainName] { byKey.filter { $0.value[key] != nil }.map(\.key) }

  subscript(id: NodeID) -> Node? { nodes[id] }
  subscript(domain: DomainName) -> Node? { byDomain[domain] }

  private(set) subscript(path: KeyPath) -> Node? {
    get { byKey[path.domain]?[path.key] }
    set {
      byKey[path.domain, default: [:]][path.key] = newValue
      if newValue == nil, byKey[path.domain]?.isEmpty == true { byKey[path.domain] = nil }
    }
  }

  subscript(path: ScratchPath) -> Node? { byScratch[path] }

  /// Gives the name a new inode number, because its next file is a different one. When very many
  /// names have such a number, those without a node lose it: a key of such a name that was renamed,
  /// or is made once more, then has the number of the name, as in other mounts.
  func renewInode(of path: KeyPath) {
    give(inodes.next(), to: EntryName(path))
    guard inodes.own.count > mostInodes else { return }
    let known = inodes.own.filter { name, _ in
      name.path.map { self[$0] != nil || $0 == path } ?? true
    }
    // No two files have one number, whatever the names of those are that are open.
    let taken = Set(nodes.values.map(\.inode)).union(known.values)
    for other in inodes.own.keys where known[other] == nil {
      if let name = other.path, !taken.contains(inodes.ofName(name)) { give(nil, to: other) }
    }
    mostInodes = max(Self.leastInodes, 2 * inodes.own.count)
  }

  /// Gives a name an inode number that does not follow from it; nil means the one that does.
  private func give(_ inode: UInt64?, to name: EntryName) {
    inodes.own[name] = inode
    changes.note(name)
  }

  /// Returns a number that no node and no handle of this mount has had.
  func nextNumber() -> UInt64 {
    lastNumber += 1
    return lastNumber
  }

  private func add(inode: UInt64, _ kind: (NodeID) -> Node.Content) -> Node {
    let id = NodeID(rawValue: nextNumber())
    let node = Node(id: id, inode: inode, kind(id), changes: changes)
    assert(nodes[id] == nil, "a number names one node")
    nodes[id] = node
    return node
  }

  /// Returns the node of a domain, and makes it if there is none.
  func node(of domain: DomainName) -> Node {
    if let node = byDomain[domain] { return node }
    let node = add(inode: inodes[domain]) { _ in .directory(DomainDirectory(domain)) }
    byDomain[domain] = node
    return node
  }

  /// Returns the node of a key, and makes it if there is none.
  func node(of path: KeyPath) -> Node {
    if let node = self[path] { return node }
    let path = stored(path)
    let node = add(inode: inodes[path]) { _ in .key(path) }
    self[path] = node
    return node
  }

  /// Returns the same path, whose key is stored with the names of other keys.
  func stored(_ path: KeyPath) -> KeyPath {
    KeyPath(domain: path.domain, key: names.copy(path.key))
  }

  /// Adds a node that a predecessor of this process has saved.
  func add(restored node: Node, isNamed: Bool) {
    nodes[node.id] = node
    switch node.content {
    case .directory(let directory as DomainDirectory):
      if isNamed { byDomain[directory.domain] = node }
    case .directory(let directory as ScratchDirectory):
      byScratch[directory.path] = node
      scratchBytes += ScratchSpace.overhead
    case .key(let path):
      self[path] = node
    case .scratch(let file):
      byScratch[file.path] = node
      scratchBytes += file.count + ScratchSpace.overhead
    case .detached(let file): countBytes(file.count, of: file)
    case .directory: break
    }
  }

  /// Makes a node without a name, for an entry that the driver unlinks once: see `Tree.ghost`.
  func addGhost(isDirectory: Bool, now: Moment) -> Node {
    let node = add(inode: inodes.next()) { id in
      isDirectory ? .directory(DomainDirectory("")) : .detached(privateCopy([], id))
    }
    node.modified = now.time
    return node
  }
}

// MARK: - Nodes change their names and kinds

extension NodeTable {
  /// Takes the node's name away. A scratch file or link goes on as it was, and the file of a key
  /// keeps a private copy of the text. A directory is empty from then on.
  func detach(_ node: Node, text: [UInt8] = [], mode: UInt32? = nil) {
    let known = node.inMemory
    unname(node)
    if node.directory != nil {
      node.content = .directory(DomainDirectory(""))
      return
    }
    let file = known ?? privateCopy(text, mode: mode, node.id)
    node.content = .detached(file)
    countBytes(file.count, of: file)
  }

  /// What the file of a removed key goes on showing.
  private func privateCopy(_ text: [UInt8], mode: UInt32? = nil, _ id: NodeID) -> ScratchFile {
    ScratchFile(
      ScratchPath(parent: .root, name: ""), .file(text), mode: mode, isOfKey: true, id: id,
      changes: changes)
  }

  /// Counts so many bytes more of a file in memory.
  private func countBytes(_ bytes: Int, of file: ScratchFile) {
    if file.isOfKey { detachedBytes += bytes } else { scratchBytes += bytes }
    assert(detachedBytes >= 0 && scratchBytes >= 0, "what is taken away was counted")
  }

  /// Takes the name away from a node that has it still, e.g. because the notice of the key's
  /// removal has not been handled. Two nodes of one name would hide each other.
  func unname(otherThan node: Node, _ path: KeyPath) {
    if let other = self[path], other !== node { detach(other) }
  }

  /// Removes the name of a key, scratch file or scratch directory from the table. What a scratch or
  /// detached file has counted for no longer counts.
  private func unname(_ node: Node) {
    switch node.content {
    case .key(let path): self[path] = nil
    case .scratch(let file):
      unname(file)
      scratchBytes -= file.count + ScratchSpace.overhead
    case .directory(let directory as ScratchDirectory):
      byScratch[directory.path] = nil
      scratchBytes -= ScratchSpace.overhead
    case .detached(let file): countBytes(-file.count, of: file)
    case .directory: break
    }
  }

  private func unname(_ file: ScratchFile) {
    byScratch[file.path] = nil
    guard file.isClaimed else { return }
    file.isClaimed = false
    lostClaim(file.path)
  }

  /// Gives the file of a key a new name. It keeps its inode number.
  func rename(_ file: KeyFile, to path: KeyPath) {
    unname(otherThan: file.node, path)
    self[file.path] = nil
    renewInode(of: file.path)
    file.path = path
    self[path] = file.node
    give(file.node.inode, to: EntryName(path))
  }

  /// Exchanges the names of two keys' files. Each file keeps its inode number.
  func exchange(_ one: KeyFile, _ other: KeyFile) {
    (one.path, other.path) = (other.path, one.path)
    for file in [one, other] {
      self[file.path] = file.node
      give(file.node.inode, to: EntryName(file.path))
    }
  }

  /// Moves a domain's node, and those of its keys and scratch files, to the domain's new name.
  func rename(_ old: DomainName, to new: DomainName) {
    give(inodes[old], to: EntryName(new))
    give(inodes.next(), to: EntryName(old))
    if let node = byDomain.removeValue(forKey: old) {
      var listing = node.directory?.listing ?? ListingState()
      listing.entriesChanged()
      node.content = .directory(DomainDirectory(new, listing))
      byDomain[new] = node
    }
    for path in paths(in: old) {
      guard let file = self[path]?.keyFile else { continue }
      rename(file, to: KeyPath(domain: new, key: path.key))
      // A text that is being written goes on from the value, which has moved too.
      if let origin = file.origin, origin.location.domain == old {
        file.origin?.location = Location(origin.location.place, new)
      }
    }
    for (path, node) in byScratch where path.parent == .domain(old) {
      rename(node, to: ScratchPath(parent: .domain(new), name: path.name))
    }
  }

  /// Makes a scratch directory the directory of a domain that has no node. It keeps its inode number.
  func makeDomain(_ node: Node, _ domain: DomainName) {
    unname(node)
    var listing = node.directory?.listing ?? ListingState()
    listing.entriesChanged()
    node.content = .directory(DomainDirectory(domain, listing))
    byDomain[domain] = node
    give(node.inode, to: EntryName(domain))
  }

  /// Removes a domain that is gone: if it comes back, it gets a new node.
  func remove(_ domain: DomainName) {
    if let node = byDomain.removeValue(forKey: domain) { changes.note(node.id) }
  }

  /// Subtracts look-ups that the kernel has forgotten, and removes the node after the last one,
  /// unless it must stay.
  /// - Returns: the node, if it was removed.
  func forget(_ id: NodeID, _ count: UInt64) -> Node? {
    guard let node = nodes[id], id != root.id else { return nil }
    node.lookups = node.lookups > count ? node.lookups - count : 0
    guard node.lookups == 0, !node.mustStay else { return nil }
    nodes[id] = nil
    changes.note(id)
    switch node.content {
    case .directory(let directory as DomainDirectory):
      if byDomain[directory.domain] === node { byDomain[directory.domain] = nil }
    case .key(let path): if self[path] === node { self[path] = nil }
    case .detached(let file): countBytes(-file.count, of: file)
    case .directory, .scratch: break
    }
    assert(nodes.count >= byDomain.count + byScratch.count, "what has a name has a node")
    return node
  }
}

// MARK: - Scratch files

extension NodeTable {
  /// The scratch files, links and directories that lie in the directory.
  func scratchNodes(in parent: ScratchPath.Parent) -> [(name: String, node: Node)] {
    byScratch.filter { $0.key.parent == parent }.map { ($0.key.name, $0.value) }
  }

  /// Whether there is any scratch file, link or directory.
  var hasScratch: Bool { !byScratch.isEmpty }

  /// All scratch files, links and directories.
  var scratchNodes: [Node] { Array(byScratch.values) }

  /// Adds a scratch file or link.
  func addScratch(
    _ path: ScratchPath, _ content: ScratchFile.Content, mode: UInt32?, now: Moment
  ) -> Node {
    return add(path, bytes: content.bytes.count, now) { [changes] id in
      .scratch(ScratchFile(path, content, mode: mode, id: id, changes: changes))
    }
  }

  func addScratchDirectory(_ path: ScratchPath, now: Moment) -> Node {
    add(path, bytes: 0, now) { [changes] id in
      .directory(ScratchDirectory(path, id, changes: changes))
    }
  }

  private func add(
    _ path: ScratchPath, bytes: Int, _ now: Moment, _ content: (NodeID) -> Node.Content
  ) -> Node {
    let node = add(inode: inodes.next(), content)
    node.modified = now.time
    byScratch[path] = node
    scratchBytes += bytes + ScratchSpace.overhead
    return node
  }

  /// Changes the text of a scratch or detached file in place, and counts its bytes again.
  /// - Parameter range: the part of the new text that may differ from the old one.
  func edit(_ file: ScratchFile, _ range: Range<Int>, _ body: (inout [UInt8]) -> Void) {
    let before = file.count
    file.edit(range, body)
    countBytes(file.count - before, of: file)
  }

  /// Gives a scratch file, link or directory a new name.
  func rename(_ node: Node, to path: ScratchPath) {
    switch node.content {
    case .scratch(let file):
      unname(file)
      file.path = path
    case .directory(let directory as ScratchDirectory):
      byScratch[directory.path] = nil
      directory.path = path
    case .directory, .key, .detached: return
    }
    byScratch[path] = node
  }

  /// Makes the file of a key a scratch file with the text. The key's next file is a different one.
  func makeScratch(_ file: KeyFile, _ path: ScratchPath, text: [UInt8], mode: UInt32?) {
    self[file.path] = nil
    renewInode(of: file.path)
    let scratch = ScratchFile(path, .file(text), mode: mode, id: file.id, changes: changes)
    file.node.content = .scratch(scratch)
    byScratch[path] = file.node
    scratchBytes += scratch.count + ScratchSpace.overhead
  }

  /// Makes the scratch file the key's file. It keeps its inode number.
  func makeKey(_ node: Node, _ path: KeyPath) {
    unname(otherThan: node, path)
    unname(node)
    node.content = .key(path)
    self[path] = node
    give(node.inode, to: EntryName(path))
  }
}
