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
  /// Creates a tree that goes on for another one, whose state was saved in these records.
  package convenience init(successorOf tree: Tree, _ records: [[UInt8]], now: Moment) throws {
    self.init(
      engine: tree.engine, options: tree.options, position: tree.position, author: tree.author,
      now: now, log: tree.log)
    var saved = SavedTree()
    for bytes in records {
      var reader = ByteReader(bytes[...])
      while !reader.isAtEnd { try saved.add(try reader.treeRecord()) }
    }
    restore(saved, now: now.instant)
  }

  /// Makes the tree what a predecessor has saved. Call it on a new tree. A draft whose value cannot
  /// be read is dropped, and logged.
  func restore(_ saved: SavedTree, now: Instant) {
    table.restore(saved)
    lastHandle = min(saved.numbers.handle, NodeTable.mostSaved)
    for (path, departure) in saved.departures {
      var departure = departure
      // The time in which nobody served the mount does not count.
      departure.until = max(departure.until, now.advanced(milliseconds: 1000))
      departures.restore(path, departure)
    }
    for path in saved.answered { _ = answered.note(path) }
    for case (let id, .key(let key)) in saved.nodes.mapValues(\.content) {
      if let draft = key.draft { restore(draft, of: id, saved.texts[id] ?? [], now) }
    }
    for node in table.scratchNodes { noteUse(node, at: now) }
    if let deadline = departures.deadline { wake(at: deadline) }
  }

  private func restore(
    _ draft: KeyRecord.Draft, of id: NodeID, _ text: [UInt8], _ now: Instant
  ) {
    guard let file = table[id]?.keyFile else { return }
    do throws(TreeError) {
      let handle = draft.isInferred ? file.creation?.handle ?? .none : .none
      let basis = try editor(of: file, handle: handle)
      // The request that decides it may have been carried out, and comes again in a moment.
      let phase = draft.phase.lasting(until: now.advanced(milliseconds: TextEditor.patience))
      let editor = TextEditor(
        text: text, basis: basis, memory: file.editorMemory, phase: phase)
      (file.editor, file.isInherited) = (editor, true)
      (file.origin, file.uncommittedSince) = (draft.origin, draft.uncommittedSince)
      if let end = editor.deadline {
        edited[id] = end
        wake(at: end)
      }
    } catch {
      log("\(file.path): text that was not complete is lost: \(error.sentence ?? "\(error)")")
    }
  }

  /// Has everything dropped that the kernel has cached of the tree: something may have changed
  /// while no driver was there to hear of it.
  func invalidateAll() {
    for node in table.nodes.values {
      effects.append(.invalidateAttributes(node.id))
      // The kernel may have kept a listing.
      if case .directory = node.content { effects.append(.invalidateContents(node.id)) }
    }
    for path in table.paths() {
      guard let id = table[path]?.id else { continue }
      invalidateFile(id)
      if let parent = table[path.domain] { invalidateEntry(parent.id, path.key) }
    }
    for path in answered.all {
      if let parent = table[path.domain] { invalidateEntry(parent.id, path.key) }
    }
    guard case .domains = position.root, let domains = try? engine.domains() else { return }
    for domain in domains where table[domain] == nil { invalidateEntry(table.root.id, domain.key) }
  }
}

extension TextEditor.Phase {
  /// The same phase, which lasts at least until then.
  fileprivate func lasting(until least: Instant) -> TextEditor.Phase {
    switch self {
    case .complete: return .complete
    case .truncated(let until): return .truncated(until: max(until, least))
    case .held(let until): return .held(until: max(until, least))
    case .overlaid(var overlay):
      overlay.until = max(overlay.until, least)
      return .overlaid(overlay)
    }
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
    if case .detached(let mode) = record.content { node.detachedMode = mode }
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
    case .key(let key):
      let file = KeyFile(id: record.id, stored(key.path), changes: changes)
      (file.creation, file.editorMemory) = (key.creation, key.memory)
      (file.wantedKind, file.appended) = (key.wantedKind, key.appended)
      return .key(file)
    case .scratch(let scratch):
      let file = ScratchFile(
        scratch.path, scratch.isLink ? .link(target: text) : .file(text), mode: scratch.mode,
        id: record.id, changes: changes)
      (file.hasOwnTime, file.wantedKind) = (scratch.hasOwnTime, scratch.wantedKind)
      file.mayStay = scratch.mayStay
      return .scratch(file)
    case .detached: return .detached(text)
    }
  }
}

extension NodeRecord.Content {
  /// Whether a look-up of the node's name finds it. Only a domain's directory may have no name.
  fileprivate var isNamed: Bool {
    if case .domain(_, let isNamed) = self { isNamed } else { true }
  }
}
