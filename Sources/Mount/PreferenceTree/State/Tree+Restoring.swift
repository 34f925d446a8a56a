import PreferenceModel
import PropertyList
import SystemCalls

/// What a predecessor of the driver has saved of one tree.
struct SavedTree {
  /// The last bytes of each node, which are read once all records are: see `NodeTable.restore`.
  var nodes: [NodeID: ArraySlice<UInt8>] = [:]
  /// The texts of scratch files, detached files and drafts.
  var texts: [NodeID: [UInt8]] = [:]
  var keyInodes: [KeyPath: UInt64] = [:]
  var domainInodes: [DomainName: UInt64] = [:]
  var departures: [KeyPath: Departures.Departure] = [:]
  var answered: Set<KeyPath> = []
  var numbers = TreeNumbers(node: 0, inode: 0, handle: 0)

  /// Adds a record of the kind, and removes its bytes from the reader. Throws if it makes no sense.
  mutating func add(_ kind: RecordKind, _ reader: inout ByteReader) throws {
    switch kind {
    case .node:
      let id = NodeID(rawValue: try reader.variable())
      nodes[id] = try reader.shortBytes()
    case .gone:
      let id = try reader.node()
      (nodes[id], texts[id]) = (nil, nil)
    case .text: try addText(&reader)
    case .keyInode:
      let path = try reader.keyPath()
      keyInodes[path] = try reader.optional { try $0.number(UInt64.self) }
    case .domainInode:
      let domain = try reader.domain()
      domainInodes[domain] = try reader.optional { try $0.number(UInt64.self) }
    case .departure:
      let path = try reader.keyPath()
      departures[path] = try reader.optional { try $0.departure() }
    case .answered:
      let path = try reader.keyPath()
      if try reader.flag() { answered.insert(path) } else { answered.remove(path) }
    case .numbers:
      numbers = TreeNumbers(
        node: try reader.number(), inode: try reader.number(), handle: try reader.number())
    case .tree, .control, .controlGone: throw ByteReader.Unknown()
    }
  }

  private mutating func addText(_ reader: inout ByteReader) throws {
    let (id, count) = (try reader.node(), try reader.integer())
    let (offset, bytes) = (try reader.integer(), try reader.counted())
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
  /// be read is dropped, and logged. Throws if what was saved of a node makes no sense.
  func restore(_ saved: SavedTree, now: Instant) throws {
    let drafts = try table.restore(saved)
    keys.lastHandle = min(saved.numbers.handle, NodeTable.mostSaved)
    for (path, departure) in saved.departures {
      var departure = departure
      // The time in which nobody served the mount does not count.
      departure.until = max(departure.until, now.advanced(milliseconds: 1000))
      departures.restore(path, departure)
    }
    for path in saved.answered { _ = kernel.answered.note(path) }
    // Their editors ask the engine for values, under names that all nodes have by now.
    for (id, draft) in drafts { texts.restore(draft, of: id, saved.texts[id] ?? [], now) }
    for node in table.scratchNodes { scratch.noteUse(node, at: now) }
  }
}

extension NodeTable {
  /// Adds the nodes.
  /// - Returns: the drafts of keys' files.
  fileprivate func restore(_ saved: SavedTree) throws -> [NodeID: SavedDraft] {
    lastNumber = max(lastNumber, min(saved.numbers.node, Self.mostSaved))
    inodes.last = min(saved.numbers.inode, Self.mostSaved)
    for (path, inode) in saved.keyInodes { inodes.keys.restore(path, inode) }
    for (domain, inode) in saved.domainInodes { inodes.domains.restore(domain, inode) }
    var drafts: [NodeID: SavedDraft] = [:]
    for (id, bytes) in saved.nodes {
      drafts[id] = try restore(id, bytes, text: saved.texts[id] ?? [])
    }
    return drafts
  }
}
