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
  /// The memory for the bytes of a node, which is used again.
  private var state = ByteWriter()

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
  private var number: UInt64 { position.number }

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

  /// Appends records of everything, with whole texts.
  func saveAll(_ writer: inout ByteWriter) {
    savedNumbers = nil
    saveNumbers(&writer)
    saveNames(all: true, &writer)
    for node in table.nodes.values {
      node.inMemory?.noteWhole()
      node.keyFile?.editor?.noteWhole()
      save(node, &writer)
    }
  }

  /// Appends records of what is known of names: of all, or of those of which it has changed.
  private func saveNames(all isAll: Bool, _ writer: inout ByteWriter) {
    for path in table.inodes.keys.removeChanges(all: isAll) {
      writer.begin(.keyInode, tree: number)
      writer.append(path)
      writer.append(optional: table.inodes.keys[path]) { $0.append($1) }
    }
    for domain in table.inodes.domains.removeChanges(all: isAll) {
      writer.begin(.domainInode, tree: number)
      writer.append(domain.string)
      writer.append(optional: table.inodes.domains[domain]) { $0.append($1) }
    }
    for path in departures.departures.removeChanges(all: isAll) {
      writer.begin(.departure, tree: number)
      writer.append(path)
      writer.append(optional: departures.departures[path]) { $0.append($1) }
    }
    for path in kernel.answered.removeChanges(all: isAll) {
      writer.begin(.answered, tree: number)
      writer.append(path)
      writer.append(kernel.answered[path.key].contains(path.domain))
    }
  }

  private func saveNumbers(_ writer: inout ByteWriter) {
    let numbers = self.numbers
    guard savedNumbers != numbers else { return }
    savedNumbers = numbers
    writer.begin(.numbers, tree: number)
    writer.append(numbers.node)
    writer.append(numbers.inode)
    writer.append(numbers.handle)
  }

  private func save(_ id: NodeID, _ writer: inout ByteWriter) {
    if let node = table[id] { return save(node, &writer) }
    writer.begin(.gone, tree: number)
    writer.append(id)
  }

  private func save(_ node: Node, _ writer: inout ByteWriter) {
    writer.begin(.node, tree: number)
    writer.append(variable: node.id.rawValue)
    // How many bytes there are, which stands before them, is known once they are written.
    state.append(node, inode: followsName(node) ? nil : node.inode, isNamed: isNamed(node))
    state.withBytes { writer.append(short: $0) }
    state.removeAll()
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
    writer.begin(.text, tree: number)
    writer.append(id)
    writer.append(Int64(text.count))
    writer.append(Int64(range.lowerBound))
    writer.append(counted: text[range])
  }

  /// Whether the node's inode number is the one that follows from its name, and is not kept for it.
  private func followsName(_ node: Node) -> Bool {
    node.keyFile.map { table.inodes.keys[$0.path] == nil } ?? false
  }

  /// Whether a look-up finds the node by its name, if it is a domain's directory.
  private func isNamed(_ node: Node) -> Bool {
    (node.directory as? DomainDirectory).map { table[$0.domain] === node } ?? true
  }
}
