import PreferenceModel
import PropertyList
import SystemCalls

/// Finds nodes by their number and by what they show, gives them inode numbers, and counts the
/// memory of scratch files.
struct NodeTable {
  private(set) var nodes: [NodeID: Node] = [:]
  private var byDomain: [DomainName: Node] = [:]
  private var byKey: [KeyPath: Node] = [:]
  private var byScratch: [ScratchPath: Node] = [:]
  /// Bytes that all scratch files, links and directories count for, overhead included.
  private(set) var scratchBytes = 0
  private var lastNumber: UInt64
  private var inodes: InodeNumbers
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
      id: position.rootNode, inode: inodes.root, .directory(content), modified: now.time)
    lastNumber = root.id.rawValue
    nodes[root.id] = root
    if case .keys(let domain) = position.root { byDomain[domain] = root }
  }

  /// The domains with a node.
  var domains: [DomainName] { Array(byDomain.keys) }

  /// The keys of a domain that have a node.
  func paths(in domain: DomainName) -> [KeyPath] { byKey.keys.filter { $0.domain == domain } }

  /// The domains in which the key has a node. Cost: O(nodes of keys).
  func domains(with key: Key) -> [DomainName] {
    byKey.keys.filter { $0.key == key }.map(\.domain)
  }

  subscript(id: NodeID) -> Node? { nodes[id] }
  subscript(domain: DomainName) -> Node? { byDomain[domain] }
  subscript(path: KeyPath) -> Node? { byKey[path] }
  subscript(path: ScratchPath) -> Node? { byScratch[path] }

  /// `st_ino` of a domain: the same in every mount.
  func inode(of domain: DomainName) -> UInt64 { inodes[domain] }

  /// `st_ino` of a key: it follows from the name, except for names that were renamed or made anew.
  func inode(of path: KeyPath) -> UInt64 { inodes[path] }

  /// Gives the name a new inode number, because its next file is a different one.
  mutating func renewInode(of path: KeyPath) { inodes.renew(path) }

  private mutating func add(inode: UInt64, _ kind: (NodeID) -> Node.Content) -> Node {
    lastNumber += 1
    let id = NodeID(rawValue: lastNumber)
    let node = Node(id: id, inode: inode, kind(id))
    nodes[id] = node
    return node
  }

  /// Returns the node of a domain, and makes it if there is none.
  mutating func node(of domain: DomainName) -> Node {
    if let node = byDomain[domain] { return node }
    let node = add(inode: inodes[domain]) { _ in .directory(DomainDirectory(domain)) }
    byDomain[domain] = node
    return node
  }

  /// Returns the node and file of a key, and makes them if there are none.
  mutating func file(of path: KeyPath) -> (node: Node, file: KeyFile) {
    if let node = byKey[path], let file = node.keyFile { return (node, file) }
    var file: KeyFile?
    let node = add(inode: inodes[path]) { id in
      let made = KeyFile(id: id, path)
      file = made
      return .key(made)
    }
    byKey[path] = node
    return (node, file ?? KeyFile(id: node.id, path))
  }

  /// Makes a node without a name, for an entry that the driver unlinks once: see `Tree.ghost`.
  mutating func addGhost(isDirectory: Bool, now: Moment) -> Node {
    let node = add(inode: inodes.next()) { _ in
      isDirectory ? .directory(DomainDirectory("")) : .detached([])
    }
    node.modified = now.time
    return node
  }
}

// MARK: - Nodes change their names and kinds

extension NodeTable {
  /// Takes the node's name away; the node keeps a private copy of the text.
  mutating func detach(_ node: Node, text: [UInt8]) {
    unname(node)
    node.content = .detached(text)
  }

  /// Removes the name of a key, scratch file or scratch directory from the table.
  private mutating func unname(_ node: Node) {
    switch node.content {
    case .key(let file): byKey[file.path] = nil
    case .scratch(let file):
      byScratch[file.path] = nil
      scratchBytes -= file.count + ScratchSpace.overhead
    case .directory(let directory as ScratchDirectory):
      byScratch[directory.path] = nil
      scratchBytes -= ScratchSpace.overhead
    case .directory, .detached: break
    }
  }

  /// Gives the file of a key a new name. It keeps its inode number.
  mutating func rename(_ node: Node, _ file: KeyFile, to path: KeyPath) {
    byKey[file.path] = nil
    inodes.renew(file.path)
    file.path = path
    byKey[path] = node
    inodes[path] = node.inode
  }

  /// Exchanges the names of two keys' files. Each file keeps its inode number.
  mutating func exchange(_ first: Node, _ second: Node) {
    guard let one = first.keyFile, let other = second.keyFile else { return }
    (one.path, other.path) = (other.path, one.path)
    (byKey[one.path], byKey[other.path]) = (first, second)
    (inodes[one.path], inodes[other.path]) = (first.inode, second.inode)
  }

  /// Moves a domain's node, and those of its keys and scratch files, to the domain's new name.
  mutating func rename(_ old: DomainName, to new: DomainName) {
    inodes.rename(old, to: new)
    if let node = byDomain.removeValue(forKey: old) {
      node.content = .directory(DomainDirectory(new))
      byDomain[new] = node
    }
    for (path, node) in byKey where path.domain == old {
      guard let file = node.keyFile else { continue }
      rename(node, file, to: KeyPath(domain: new, key: path.key))
    }
    for (path, node) in byScratch where path.parent == .domain(old) {
      rename(node, to: ScratchPath(parent: .domain(new), name: path.name))
    }
  }

  /// Removes a domain that is gone: if it comes back, it gets a new node.
  mutating func remove(_ domain: DomainName) { byDomain[domain] = nil }

  /// Subtracts look-ups that the kernel has forgotten, and removes the node after the last one,
  /// unless it must stay.
  /// - Returns: the node, if it was removed.
  mutating func forget(_ id: NodeID, _ count: UInt64) -> Node? {
    guard let node = nodes[id], id != root.id else { return nil }
    node.lookups = node.lookups > count ? node.lookups - count : 0
    guard node.lookups == 0, !node.mustStay else { return nil }
    nodes[id] = nil
    switch node.content {
    case .directory(let directory as DomainDirectory):
      if byDomain[directory.domain] === node { byDomain[directory.domain] = nil }
    case .key(let file): if byKey[file.path] === node { byKey[file.path] = nil }
    case .directory, .detached, .scratch: break
    }
    return node
  }
}

// MARK: - Scratch files

extension NodeTable {
  /// The scratch files, links and directories that lie in the directory.
  func scratchNodes(in parent: ScratchPath.Parent) -> [(name: String, node: Node)] {
    byScratch.filter { $0.key.parent == parent }.map { ($0.key.name, $0.value) }
  }

  /// All scratch files, links and directories.
  var scratchNodes: [Node] { Array(byScratch.values) }

  /// Adds a scratch file or link.
  mutating func addScratch(
    _ path: ScratchPath, _ content: ScratchFile.Content, mode: UInt32?, now: Moment
  ) -> Node {
    let file = ScratchFile(path, content, mode: mode)
    return add(path, .scratch(file), bytes: file.count, now)
  }

  /// Adds a scratch directory.
  mutating func addScratchDirectory(_ path: ScratchPath, now: Moment) -> Node {
    add(path, nil, bytes: 0, now)
  }

  /// - Parameter kind: nil for a directory, which needs its node's number.
  private mutating func add(
    _ path: ScratchPath, _ content: Node.Content?, bytes: Int, _ now: Moment
  ) -> Node {
    let node = add(inode: inodes.next()) { id in content ?? .directory(ScratchDirectory(path, id)) }
    node.modified = now.time
    byScratch[path] = node
    scratchBytes += bytes + ScratchSpace.overhead
    return node
  }

  /// Changes the text of a scratch file in place, and counts its bytes again.
  mutating func edit(_ file: ScratchFile, _ body: (inout [UInt8]) -> Void) {
    let before = file.count
    file.edit(body)
    scratchBytes += file.count - before
  }

  /// Gives a scratch file, link or directory a new name.
  mutating func rename(_ node: Node, to path: ScratchPath) {
    switch node.content {
    case .scratch(let file):
      byScratch[file.path] = nil
      file.path = path
    case .directory(let directory as ScratchDirectory):
      byScratch[directory.path] = nil
      directory.path = path
    case .directory, .key, .detached: return
    }
    byScratch[path] = node
  }

  /// Makes the file of a key a scratch file with the text. The key's next file is a different one.
  mutating func makeScratch(
    _ node: Node, _ file: KeyFile, _ path: ScratchPath, text: [UInt8], mode: UInt32?
  ) {
    byKey[file.path] = nil
    inodes.renew(file.path)
    let scratch = ScratchFile(path, .file(text), mode: mode)
    node.content = .scratch(scratch)
    byScratch[path] = node
    scratchBytes += scratch.count + ScratchSpace.overhead
  }

  /// Makes the scratch file the key's file. It keeps its inode number.
  @discardableResult
  mutating func makeKey(_ node: Node, _ path: KeyPath) -> KeyFile {
    unname(node)
    let file = KeyFile(id: node.id, path)
    node.content = .key(file)
    byKey[path] = node
    inodes[path] = node.inode
    return file
  }
}

/// The inode numbers of domains and keys (`st_ino`). A number follows from the name, so that it is
/// the same in every mount, except for names that were renamed or made anew in this one.
private struct InodeNumbers {
  /// What is hashed before each name, so that trees of one mount have different numbers; empty for
  /// the tree at the mount point.
  private let prefix: [UInt8]
  /// The number before the first one that does not follow from a name.
  private let base: UInt64
  /// The number of the root.
  let root: UInt64
  private var keys: [KeyPath: UInt64] = [:]
  private var domains: [DomainName: UInt64] = [:]
  private var last: UInt64 = 0

  init(_ position: TreePosition) {
    prefix = position.number == 0 ? [] : Array(position.path.utf8) + [0]
    base = position.number << 40 + 1 << 32
    root = position.rootInode
  }

  /// Returns a number that no file of this mount has had.
  mutating func next() -> UInt64 {
    last += 1
    return base + last
  }

  subscript(path: KeyPath) -> UInt64 {
    get {
      if let known = keys[path] { return known }
      let name = prefix + Array(path.domain.string.utf8) + [0] + Array(path.key.string.utf8)
      return StableHash.of(name) >> 2 | 1 << 61
    }
    set { keys[path] = newValue }
  }

  subscript(domain: DomainName) -> UInt64 {
    domains[domain] ?? StableHash.of(prefix + Array(domain.string.utf8)) | 1 << 62
  }

  mutating func renew(_ path: KeyPath) { keys[path] = next() }

  mutating func rename(_ old: DomainName, to new: DomainName) {
    domains[new] = self[old]
    domains[old] = next()
  }
}
