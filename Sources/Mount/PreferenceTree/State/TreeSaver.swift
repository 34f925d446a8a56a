import PreferenceModel
import SystemCalls

/// Saves what a successor of the driver must know of a tree: as a whole, and then what has changed.
/// `SavedTree` is the other direction.
///
/// Saved are the kernel's numbers, with what they name and how often it was looked up; numbers that
/// follow from no name; names that were answered as missing or inherited; what only the mount has
/// (scratch files and directories, detached files, keys that were moved away to a scratch file);
/// what is known of a key whose creator has its file open; and a mark at files whose text is under
/// way (`Node.lostUntil`). Everything else is made again: values, their texts, listings, editors. A
/// text that is under way is lost, and so is which names were removed in the last second.
///
/// Threads: the tree's alone.
final class TreeSaver {
  private let position: TreePosition
  private let table: NodeTable
  private let removedNames: RemovedNames
  private let kernel: KernelCache
  /// The numbers that were saved last.
  private var savedNumbers: TreeNumbers?
  /// The memory for the bytes of a node, which is used again.
  private var state = ByteWriter()

  init(_ parts: TreeParts, _ kernel: KernelCache) {
    (position, table, removedNames) = (parts.position, parts.table, parts.removedNames)
    self.kernel = kernel
  }

  /// Begins to note changes for `saveChanges`.
  func beginSaving() {
    table.changes.isRecording = true
  }

  /// Appends records of everything that has changed since it was last saved. Cost: a few looks, and
  /// O(what has changed).
  func saveChanges(_ writer: inout ByteWriter) {
    for id in table.changes.removeNodes() { save(id, &writer) }
    saveNumbers(&writer)
    for name in table.changes.removeNames() { save(name, &writer) }
  }

  /// Appends records of everything, with whole texts.
  func saveAll(_ writer: inout ByteWriter) {
    savedNumbers = nil
    saveNumbers(&writer)
    for name in Set(table.inodes.own.keys).union(kernel.answered.all.map { EntryName($0) }) {
      save(name, &writer)
    }
    for node in table.nodes.values {
      node.inMemory?.noteWhole()
      save(node.id, &writer)
    }
  }

  private func save(_ name: EntryName, _ writer: inout ByteWriter) {
    writer.begin(.name, tree: position.number)
    writer.append(name.domain.string)
    writer.append(optional: name.key) { $0.append($1.string) }
    writer.append(optional: table.inodes.own[name]) { $0.append($1) }
    writer.append(name.key.map { kernel.answered[$0].contains(name.domain) } ?? false)
  }

  private func saveNumbers(_ writer: inout ByteWriter) {
    let numbers = TreeNumbers(
      node: table.lastNumber, inode: table.inodes.last)
    guard savedNumbers != numbers else { return }
    savedNumbers = numbers
    writer.begin(.numbers, tree: position.number)
    writer.append(numbers.node)
    writer.append(numbers.inode)
  }

  private func save(_ id: NodeID, _ writer: inout ByteWriter) {
    guard let node = table[id] else { return writer.begin(.gone, id) }
    let file = node.inMemory
    writer.begin(file == nil ? .node : .file, id)
    // How many bytes there are, which stands before them, is known once they are written.
    state.append(
      node, inode: followsName(node) ? nil : node.inode, isNamed: isNamed(node),
      move: removedNames.move(to: id))
    state.withBytes { writer.append(short: $0) }
    state.removeAll()
    guard let file else { return }
    let text = file.content.bytes
    let part = (file.unsaved ?? text.count..<text.count).clamped(to: 0..<text.count)
    writer.append(variable: UInt64(text.count))
    writer.append(variable: UInt64(part.lowerBound))
    writer.append(counted: text[part])
    file.noteSaved()
  }

  /// Whether the node's inode number is the one that follows from its name, and is not kept for it.
  private func followsName(_ node: Node) -> Bool {
    node.keyFile.map { table.inodes.own[EntryName($0.path)] == nil } ?? false
  }

  /// Whether a look-up finds the node by its name, if it is a domain's directory.
  private func isNamed(_ node: Node) -> Bool {
    (node.directory as? DomainDirectory).map { table[$0.domain] === node } ?? true
  }
}
