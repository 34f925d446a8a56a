import PreferenceModel
import PropertyList
import SystemCalls

/// What a predecessor of the driver has saved of one tree.
struct SavedTree {
  /// The last bytes of each node, which are read once all records are: see `NodeTable.restore`.
  var nodes: [NodeID: ArraySlice<UInt8>] = [:]
  /// The texts of scratch files and detached files.
  var texts: [NodeID: [UInt8]] = [:]
  var names: [EntryName: SavedName] = [:]
  var numbers = TreeNumbers()

  /// Adds a record about a name.
  fileprivate mutating func addName(_ reader: inout ByteReader) throws {
    let (domain, key) = (try reader.domain(), try reader.optional { try $0.key() })
    let inode = try reader.optional { try $0.number(UInt64.self) }
    let known = SavedName(inode: inode, isAnswered: try reader.flag())
    let name = key.map { EntryName(KeyPath(domain: domain, key: $0)) } ?? EntryName(domain)
    names[name] = known == SavedName() ? nil : known
  }

  /// Adds a part of the text of a file.
  fileprivate mutating func addText(of id: NodeID, _ reader: inout ByteReader) throws {
    let (count, offset) = (Int(clamping: try reader.variable()), try reader.variable())
    let bytes = try reader.counted()
    guard count <= ScratchSpace.total, offset <= count, bytes.count <= count - Int(offset) else {
      throw ByteReader.Unknown()
    }
    var text = texts.removeValue(forKey: id) ?? []
    text.resize(to: count)
    text.replaceSubrange(Int(offset)..<Int(offset) + bytes.count, with: bytes)
    texts[id] = text
  }
}

/// What a predecessor of the driver has saved of the trees of a mount.
struct SavedTrees {
  /// Where in the control directory the roots of trees stand, in the order of their numbers.
  private(set) var paths: [[Key]] = []
  /// The nodes of the control directory.
  private(set) var control: [NodeID: (path: [Key], lookups: UInt64)] = [:]
  /// The other trees by their numbers.
  private(set) var trees: [UInt64: SavedTree] = [:]

  /// Reads the records. Throws if they make no sense.
  init(_ records: [[UInt8]]) throws {
    for bytes in records {
      var reader = ByteReader(bytes[...])
      while !reader.isAtEnd { try addRecord(&reader) }
    }
  }

  private mutating func addRecord(_ reader: inout ByteReader) throws {
    switch try reader.recordKind() {
    case .tree: paths.append(try reader.keys())
    case .control:
      let id = try reader.node()
      control[id] = (path: try reader.keys(), lookups: try reader.variable())
    case .node:
      let id = try reader.node()
      trees[id.tree, default: SavedTree()].nodes[id] = try reader.shortBytes()
      trees[id.tree]?.texts[id] = nil
    case .file:
      let id = try reader.node()
      trees[id.tree, default: SavedTree()].nodes[id] = try reader.shortBytes()
      try trees[id.tree]?.addText(of: id, &reader)
    case .gone:
      let id = try reader.node()
      control[id] = nil
      trees[id.tree]?.nodes[id] = nil
      trees[id.tree]?.texts[id] = nil
    case .name:
      let number = UInt64(try reader.number(UInt16.self))
      try trees[number, default: SavedTree()].addName(&reader)
    case .numbers:
      let number = UInt64(try reader.number(UInt16.self))
      trees[number, default: SavedTree()].numbers = TreeNumbers(
        node: try reader.number(), inode: try reader.number())
    }
  }
}

extension Tree {
  /// Makes the tree what a predecessor has saved. Call it on a new tree. Throws if what was saved of
  /// a node makes no sense.
  func restore(_ saved: SavedTree, now: Instant) throws {
    table.lastNumber = max(table.lastNumber, min(saved.numbers.node, NodeTable.mostSaved))
    table.inodes.last = min(saved.numbers.inode, NodeTable.mostSaved)
    for (name, known) in saved.names {
      table.inodes.own[name] = known.inode
      if known.isAnswered, let path = name.path { _ = kernel.answered.note(path) }
    }
    for (id, bytes) in saved.nodes {
      let move = try table.restore(id, bytes, text: saved.texts[id] ?? [], now: now)
      // The time in which nobody served the mount does not count.
      if let move { removedNames.noteMove(move.source, move.former, to: id, at: now) }
      if table[id]?.keyFile?.creation?.awaited != nil { texts.awaitAgain(id, now) }
    }
    for node in table.scratchNodes { scratch.noteUse(node, at: now) }
  }
}
