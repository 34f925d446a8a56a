import PreferenceModel
import SystemCalls

/// Saves what a successor of the driver must know of a tree: as a whole, and then what has changed.
/// `Tree+Restoring` is the other direction.
///
/// Not saved, because it can be made again: listings, cached texts, editors whose text is complete,
/// and what a file has shown last.
///
/// Threads: the tree's alone.
final class TreeSaver {
  private let position: TreePosition
  private let table: NodeTable
  private let departures: Departures
  private let kernel: KernelCache
  private let keys: KeyFiles
  /// The numbers that were saved last.
  private var savedNumbers: TreeNumbers?

  init(_ parts: TreeParts, _ kernel: KernelCache, _ keys: KeyFiles) {
    (position, table, departures) = (parts.position, parts.table, parts.departures)
    (self.kernel, self.keys) = (kernel, keys)
  }

  /// Begins to note changes for `saveChanges`.
  func beginSaving() {
    table.changes.isRecording = true
    table.inodes.keys.isRecording = true
    table.inodes.domains.isRecording = true
    departures.departures.isRecording = true
    kernel.answered.isRecording = true
  }

  /// The number of the tree in its mount.
  private var number: Int { Int(position.number) }

  private var numbers: TreeNumbers {
    TreeNumbers(node: table.lastNumber, inode: table.inodes.last, handle: keys.lastHandle)
  }

  /// Appends records of everything that has changed since it was last saved. Cost: a few looks, and
  /// O(what has changed).
  func saveChanges(_ writer: inout ByteWriter) {
    for id in table.changes.removeAll() { save(id, &writer) }
    saveNumbers(&writer)
    saveNames(all: false, &writer)
  }

  /// Appends records of the nodes, as far as they are there, with their whole texts.
  func saveNodes(_ ids: some Sequence<NodeID>, _ writer: inout ByteWriter) {
    for id in ids {
      guard let node = table[id] else { continue }
      node.inMemory?.noteWhole()
      node.keyFile?.editor?.noteWhole()
      save(node, &writer)
    }
  }

  /// Appends records of everything but the nodes.
  func saveAllButNodes(_ writer: inout ByteWriter) {
    savedNumbers = nil
    saveNumbers(&writer)
    saveNames(all: true, &writer)
  }

  /// Appends records of what is known of names: of all, or of those of which it has changed.
  private func saveNames(all isAll: Bool, _ writer: inout ByteWriter) {
    for path in table.inodes.keys.removeChanges(all: isAll) {
      writer.append(.keyInode(number, path, table.inodes.keys[path]))
    }
    for domain in table.inodes.domains.removeChanges(all: isAll) {
      writer.append(.domainInode(number, domain, table.inodes.domains[domain]))
    }
    for path in departures.departures.removeChanges(all: isAll) {
      writer.append(.departure(number, path, departures.departures[path]))
    }
    for path in kernel.answered.removeChanges(all: isAll) {
      writer.append(.answered(number, path, kernel.answered[path.key].contains(path.domain)))
    }
  }

  private func saveNumbers(_ writer: inout ByteWriter) {
    guard savedNumbers != numbers else { return }
    savedNumbers = numbers
    writer.append(.numbers(number, numbers))
  }

  private func save(_ id: NodeID, _ writer: inout ByteWriter) {
    if let node = table[id] { save(node, &writer) } else { writer.append(.gone(number, id)) }
  }

  private func save(_ node: Node, _ writer: inout ByteWriter) {
    writer.append(.node(number, record(node)))
    switch node.content {
    case .directory: break
    case .scratch(let file), .detached(let file):
      saveText(node.id, file.content.bytes, file.unsaved ?? file.count..<file.count, &writer)
      file.noteSaved()
    case .key(let path): saveDraft(KeyFile(node, path), &writer)
    }
  }

  private func saveDraft(_ file: KeyFile, _ writer: inout ByteWriter) {
    guard let editor = file.editor else { return }
    // A successor drops the text of a file that has no draft.
    guard editor.deadline != nil else { return editor.noteWhole() }
    let end = editor.text.count
    saveText(file.id, editor.text, editor.unsaved ?? end..<end, &writer)
    editor.noteSaved()
  }

  private func saveText(
    _ id: NodeID, _ text: [UInt8], _ range: Range<Int>, _ writer: inout ByteWriter
  ) {
    let range = range.clamped(to: 0..<text.count)
    writer.append(
      .text(number, id, count: text.count, offset: range.lowerBound, text[range]))
  }

  private func record(_ node: Node) -> NodeRecord {
    let content: NodeRecord.Content
    switch node.content {
    case .directory(let directory as DomainDirectory):
      content = .domain(directory.domain, isNamed: table[directory.domain] === node)
    case .directory(let directory as ScratchDirectory):
      content = .scratchDirectory(directory.path, mode: directory.mode)
    case .directory: content = .root
    case .key(let path): content = .key(record(KeyFile(node, path)))
    case .scratch(let file): content = .scratch(record(file, isNamed: true))
    case .detached(let file): content = .scratch(record(file, isNamed: false))
    }
    let inode = followsName(node) ? nil : node.inode
    return NodeRecord(
      id: node.id, inode: inode, lookups: node.lookups, modified: node.modified,
      changed: node.changed, content: content)
  }

  private func record(_ file: ScratchFile, isNamed: Bool) -> ScratchRecord {
    ScratchRecord(
      path: file.path, isLink: file.isLink, mode: file.mode, hasOwnTime: file.hasOwnTime,
      wantedKind: file.wantedKind, mayStay: file.mayStay, isOfKey: file.isOfKey, isNamed: isNamed)
  }

  /// Whether the node's inode number is the one that follows from its name, and is not kept for it.
  private func followsName(_ node: Node) -> Bool {
    node.keyFile.map { table.inodes.keys[$0.path] == nil } ?? false
  }

  private func record(_ file: KeyFile) -> KeyRecord {
    var draft: KeyRecord.Draft?
    if let editor = file.editor, editor.deadline != nil {
      draft = KeyRecord.Draft(
        phase: editor.phase, isInferred: editor.isInferred, origin: file.origin,
        uncommittedSince: file.uncommittedSince)
    }
    return KeyRecord(
      path: file.path, creation: file.creation, memory: file.editorMemory,
      wantedKind: file.wantedKind, appended: file.appended, draft: draft)
  }
}
