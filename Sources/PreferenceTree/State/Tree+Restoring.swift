import PreferenceModel
import PropertyList
import SystemCalls

/// What a predecessor of the driver has saved of one tree.
struct SavedTree {
  var nodes: [NodeID: NodeRecord] = [:]
  /// The texts of scratch files, detached files and drafts.
  var texts: [NodeID: [UInt8]] = [:]
  var keyInodes: [KeyPath: UInt64] = [:]
  var domainInodes: [DomainName: UInt64] = [:]
  var departures: [KeyPath: Departures.Departure] = [:]
  var answered: Set<KeyPath> = []
  var numbers = TreeNumbers(node: 0, inode: 0, handle: 0)

  /// Adds a record. Throws `ByteReader.Unknown` if it makes no sense.
  mutating func add(_ record: TreeRecord) throws {
    switch record {
    case .node(_, let node):
      nodes[node.id] = node
      if !node.hasText { texts[node.id] = nil }
    case .gone(_, let id): (nodes[id], texts[id]) = (nil, nil)
    case .text(_, let id, let count, let offset, let bytes):
      try addText(id, count, offset, bytes)
    case .keyInode(_, let path, let inode): keyInodes[path] = inode
    case .domainInode(_, let domain, let inode): domainInodes[domain] = inode
    case .departure(_, let path, let departure): departures[path] = departure
    case .answered(_, let path, true): answered.insert(path)
    case .answered(_, let path, false): answered.remove(path)
    case .numbers(_, let numbers): self.numbers = numbers
    case .tree, .control, .controlGone: throw ByteReader.Unknown()
    }
  }

  private mutating func addText(
    _ id: NodeID, _ count: Int, _ offset: Int, _ bytes: ArraySlice<UInt8>
  ) throws {
    guard (0...ScratchSpace.total).contains(count), (0...count).contains(offset),
      bytes.count <= count - offset
    else { throw ByteReader.Unknown() }
    var text = texts.removeValue(forKey: id) ?? []
    if text.count > count { text.removeLast(text.count - count) }
    if text.count < count { text += repeatElement(0, count: count - text.count) }
    text.replaceSubrange(offset..<offset + bytes.count, with: bytes)
    texts[id] = text
  }
}

extension Tree {
  /// Makes the tree what a predecessor has saved. Call it on a new tree. A draft whose value cannot
  /// be read is dropped, and logged.
  func restore(_ saved: SavedTree, now: Instant) {
    table.restore(saved)
    keys.lastHandle = min(saved.numbers.handle, NodeTable.mostSaved)
    for (path, departure) in saved.departures {
      var departure = departure
      // The time in which nobody served the mount does not count.
      departure.until = max(departure.until, now.advanced(milliseconds: 1000))
      departures.restore(path, departure)
    }
    for path in saved.answered { _ = kernel.answered.note(path) }
    for case (let id, .key(let key)) in saved.nodes.mapValues(\.content) {
      if let draft = key.draft { texts.restore(draft, of: id, saved.texts[id] ?? [], now) }
    }
    for node in table.scratchNodes { scratch.noteUse(node, at: now) }
  }
}

extension NodeTable {
  /// The largest number that is taken over: no mount lives long enough for it, and it can be
  /// counted on.
  static let mostSaved: UInt64 = 1 << 62

  fileprivate func restore(_ saved: SavedTree) {
    lastNumber = max(lastNumber, min(saved.numbers.node, Self.mostSaved))
    inodes.last = min(saved.numbers.inode, Self.mostSaved)
    for (path, inode) in saved.keyInodes { inodes.keys.restore(path, inode) }
    for (domain, inode) in saved.domainInodes { inodes.domains.restore(domain, inode) }
    for record in saved.nodes.values { restore(record, text: saved.texts[record.id] ?? []) }
  }

  private func restore(_ record: NodeRecord, text: [UInt8]) {
    if record.id == root.id {
      (root.lookups, root.modified, root.changed) =
        (min(record.lookups, Self.mostSaved), record.modified, record.changed)
      return
    }
    let content = content(record, text)
    let node = Node(
      id: record.id, inode: record.inode ?? inode(record), content, modified: record.modified,
      changes: changes)
    (node.lookups, node.changed) = (min(record.lookups, Self.mostSaved), record.changed)
    if case .key(let key) = record.content, let file = node.keyFile {
      (file.creation, file.editorMemory) = (key.creation, key.memory)
      (file.wantedKind, file.appended) = (key.wantedKind, key.appended)
    }
    add(restored: node, isNamed: record.content.isNamed)
  }

  /// The inode number that follows from the name; 0 where none does, and the record makes no sense.
  private func inode(_ record: NodeRecord) -> UInt64 {
    if case .key(let key) = record.content { inodes.ofName(key.path) } else { 0 }
  }

  private func content(_ record: NodeRecord, _ text: [UInt8]) -> Node.Content {
    switch record.content {
    case .root: return .directory(RootDirectory())
    case .domain(let domain, _): return .directory(DomainDirectory(domain))
    case .scratchDirectory(let path, let mode):
      let directory = ScratchDirectory(path, record.id, changes: changes)
      directory.mode = mode
      return .directory(directory)
    case .key(let key): return .key(stored(key.path))
    case .scratch(let scratch):
      let file = ScratchFile(
        scratch.path, scratch.isLink ? .link(target: text) : .file(text), mode: scratch.mode,
        isOfKey: scratch.isOfKey, id: record.id, changes: changes)
      (file.hasOwnTime, file.wantedKind) = (scratch.hasOwnTime, scratch.wantedKind)
      file.mayStay = scratch.mayStay
      return scratch.isNamed ? .scratch(file) : .detached(file)
    }
  }
}

extension NodeRecord.Content {
  /// Whether a look-up of the node's name finds it. Only a domain's directory may have no name.
  fileprivate var isNamed: Bool {
    if case .domain(_, let isNamed) = self { isNamed } else { true }
  }
}
