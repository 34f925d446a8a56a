import PreferenceModel
import PropertyList
import SystemCalls

/// A key of a domain, as a file is named by it.
struct KeyPath: Hashable {
  var domain: DomainName
  var key: Key
}

/// One node: what the kernel holds a number of. It lives from its first look-up to the last
/// `forget`. All of it belongs to the tree's thread.
final class Node {
  /// What the node shows.
  enum Subject {
    case root
    case domain(DomainName)
    case key(KeyPath)
    /// A file whose name is gone or is another file's now: a private copy of its last text.
    case detached([UInt8])
    /// A tool's temporary file; the node holds its contents, and stays while the name does.
    case scratch(ScratchPath)
  }

  /// A value as it was when an editor began, or as the editor last committed it.
  struct Origin {
    var location: Location
    var modified: Timestamp
  }

  /// A new key that its creator has not closed yet.
  struct Creation {
    var handle: HandleID
    /// The type that a name removed a moment ago had.
    var preferred: Kind?
  }

  let id: NodeID
  let inode: UInt64
  var subject: Subject
  /// Look-ups that the kernel has not forgotten (C: nlookup).
  var lookups: UInt64 = 0
  /// Text that is being written, or was a moment ago.
  var editor: TextEditor?
  /// What a scratch node holds.
  var scratch: Scratch?
  var editorMemory = TextEditor.Memory()
  var creation: Creation?
  /// Whether the value that the editor began with was the domain's own, not inherited.
  var editsOwnValue = false
  /// What the editor's text was computed from: which value, and when that last changed.
  var origin: Origin?
  /// Where the last append ended that may go on: see `AppendedPart`.
  var appended: AppendedPart?
  /// The number of the last change that was made through the file.
  var committedVersion: UInt64 = 0
  /// A directory's own modification time.
  var modified = Timestamp(nanoseconds: 0)
  /// When text was written that the engine does not have; nil: it has what the file shows.
  var textChanged: Timestamp?
  /// When chmod(2), chown(2), utimensat(2) or rename(2) last touched the node; nil: nobody has.
  var changed: Timestamp?
  /// A directory's entries in the order of their cookies, until one changes.
  var listing: [ListingItem]?
  /// The value that the kernel was told of last: what a file whose key is removed elsewhere goes on showing.
  var lastShown: StoredValue?
  /// The type that a tool has asked for while there was no text yet: the first text is of that type.
  var wantedKind: Kind?
  /// A value's text, while it is in the cache.
  var cachedText: (modified: Timestamp, location: Location, text: [UInt8])?

  init(id: NodeID, inode: UInt64, subject: Subject) {
    self.id = id
    self.inode = inode
    self.subject = subject
  }

}

/// The nodes by number and by what they show, and the inode numbers.
struct NodeTable {
  private(set) var nodes: [NodeID: Node] = [:]
  private var byDomain: [DomainName: Node] = [:]
  private var byKey: [KeyPath: Node] = [:]
  private var byScratch: [ScratchPath: Node] = [:]
  /// Bytes that all scratch files count for.
  private(set) var scratchBytes = 0
  private var lastNumber = NodeID.root.rawValue
  /// Inode numbers of names that were renamed or made anew; all others follow from the name.
  private var inodes: [KeyPath: UInt64] = [:]
  private var domainInodes: [DomainName: UInt64] = [:]
  private var lastInode: UInt64 = 0

  /// The domains with a node.
  var domains: [DomainName] { Array(byDomain.keys) }

  /// The keys of a domain that have a node.
  func paths(in domain: DomainName) -> [KeyPath] { byKey.keys.filter { $0.domain == domain } }

  subscript(id: NodeID) -> Node? { nodes[id] }
  subscript(domain: DomainName) -> Node? { byDomain[domain] }
  subscript(path: KeyPath) -> Node? { byKey[path] }
  subscript(path: ScratchPath) -> Node? { byScratch[path] }

  /// The root, made once.
  mutating func addRoot() -> Node {
    let node = Node(id: .root, inode: NodeID.root.rawValue, subject: .root)
    nodes[node.id] = node
    return node
  }

  private mutating func add(inode: UInt64, _ subject: Node.Subject) -> Node {
    lastNumber += 1
    let node = Node(id: NodeID(rawValue: lastNumber), inode: inode, subject: subject)
    nodes[node.id] = node
    return node
  }

  /// The node of a domain, made if there is none.
  mutating func node(of domain: DomainName) -> Node {
    if let node = byDomain[domain] { return node }
    let node = add(inode: inode(of: domain), .domain(domain))
    byDomain[domain] = node
    return node
  }

  /// The node of a key, made if there is none.
  mutating func node(of path: KeyPath) -> Node {
    if let node = byKey[path] { return node }
    let node = add(inode: inode(of: path), .key(path))
    byKey[path] = node
    return node
  }

  /// `st_ino` of a domain: the same in every mount.
  func inode(of domain: DomainName) -> UInt64 {
    domainInodes[domain] ?? StableHash.of(domain.string.utf8) | 1 << 62
  }

  /// `st_ino` of a key: follows from its name, but for names that were renamed or made anew.
  func inode(of path: KeyPath) -> UInt64 {
    if let known = inodes[path] { return known }
    let name = Array(path.domain.string.utf8) + [0] + Array(path.key.string.utf8)
    return StableHash.of(name) >> 2 | 1 << 61
  }

  /// The next file of this name is another one.
  mutating func renewInode(of path: KeyPath) {
    lastInode += 1
    inodes[path] = 1 << 32 + lastInode
  }

  /// The node keeps a private copy and its name is free.
  mutating func detach(_ node: Node, text: [UInt8]) {
    if case .key(let path) = node.subject { byKey[path] = nil }
    if case .scratch(let path) = node.subject { byScratch[path] = nil }
    node.subject = .detached(text)
    node.editor = nil
    node.creation = nil
    setScratch(nil, of: node)
  }

  /// The node shows another key from now on, and takes its inode number along.
  mutating func move(_ node: Node, to path: KeyPath) {
    if case .key(let old) = node.subject {
      byKey[old] = nil
      renewInode(of: old)
    }
    node.subject = .key(path)
    byKey[path] = node
    inodes[path] = node.inode
  }

  /// Two nodes change places.
  mutating func exchange(_ first: Node, _ second: Node) {
    guard case .key(let one) = first.subject, case .key(let other) = second.subject else { return }
    first.subject = .key(other)
    second.subject = .key(one)
    (byKey[other], byKey[one]) = (first, second)
    (inodes[other], inodes[one]) = (first.inode, second.inode)
  }

  /// A domain's node, and its keys' nodes, show the domain of the new name.
  mutating func move(_ old: DomainName, to new: DomainName) {
    domainInodes[new] = inode(of: old)
    lastInode += 1
    domainInodes[old] = 1 << 32 + lastInode
    if let node = byDomain.removeValue(forKey: old) {
      node.subject = .domain(new)
      byDomain[new] = node
    }
    for (path, node) in byKey where path.domain == old {
      move(node, to: KeyPath(domain: new, key: path.key))
    }
    for (path, node) in byScratch where path.parent == .domain(old) {
      move(node, to: ScratchPath(parent: .domain(new), name: path.name))
    }
  }

  /// A domain is gone.
  mutating func remove(_ domain: DomainName) { byDomain[domain] = nil }

  /// The kernel forgets so many look-ups; the node goes with the last.
  mutating func forget(_ id: NodeID, _ count: UInt64) -> Bool {
    guard let node = nodes[id], id != .root else { return false }
    node.lookups = node.lookups > count ? node.lookups - count : 0
    guard node.lookups == 0, node.editor?.deadline == nil, node.scratch == nil else {
      return false
    }
    nodes[id] = nil
    switch node.subject {
    case .domain(let domain): if byDomain[domain] === node { byDomain[domain] = nil }
    case .key(let path): if byKey[path] === node { byKey[path] = nil }
    case .root, .detached, .scratch: break
    }
    return true
  }
}

extension NodeTable {
  /// A node without a name.
  mutating func addGhost(isDirectory: Bool) -> Node {
    lastInode += 1
    return add(inode: 1 << 32 + lastInode, isDirectory ? .domain("") : .detached([]))
  }
}

// MARK: - Scratch files

extension NodeTable {
  /// The scratch files of a directory.
  func scratchNodes(in parent: ScratchPath.Parent) -> [(name: String, node: Node)] {
    byScratch.filter { $0.key.parent == parent }.map { ($0.key.name, $0.value) }
  }

  /// All of them.
  var scratchPaths: [ScratchPath] { Array(byScratch.keys) }

  /// A new scratch file.
  mutating func addScratch(_ path: ScratchPath, _ scratch: Scratch) -> Node {
    lastInode += 1
    let node = add(inode: 1 << 32 + lastInode, .scratch(path))
    setScratch(scratch, of: node)
    byScratch[path] = node
    return node
  }

  /// What a scratch node holds is another now.
  mutating func setScratch(_ scratch: Scratch?, of node: Node) {
    scratchBytes += (scratch?.size ?? 0) - (node.scratch?.size ?? 0)
    node.scratch = scratch
  }

  /// The node, a scratch file's or a key's, is a scratch file of that name from now on.
  mutating func move(_ node: Node, to path: ScratchPath) {
    switch node.subject {
    case .scratch(let old): byScratch[old] = nil
    case .key(let old):
      byKey[old] = nil
      renewInode(of: old)
    case .root, .domain, .detached: return
    }
    node.subject = .scratch(path)
    byScratch[path] = node
  }

  /// The scratch file is a key from now on, and keeps its inode number.
  mutating func become(_ node: Node, _ path: KeyPath) {
    if case .scratch(let old) = node.subject { byScratch[old] = nil }
    setScratch(nil, of: node)
    node.subject = .key(path)
    byKey[path] = node
    inodes[path] = node.inode
  }
}
