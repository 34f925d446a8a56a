import PreferenceModel
import PropertyList
import SystemCalls

// What a successor of the driver must know of the trees.

extension Forest {
  /// Whether changes are noted for `saveChanges`.
  var isSaving: Bool { setDecisive != nil }

  /// Begins to note changes for `saveChanges`.
  /// - Parameter setDecisive: told before each change whether it is the one that the request asks
  ///   for, by which a successor finds it (`setMade`).
  package func beginSaving(_ setDecisive: @escaping (Bool) -> Void) {
    self.setDecisive = setDecisive
    for mounted in mountedTrees { beginSaving(mounted) }
  }

  func beginSaving(_ mounted: any MountedTree) {
    if let control = mounted as? ControlTree { control.changes.isRecording = true }
    guard let tree = mounted as? Tree else { return }
    tree.saver.beginSaving()
    tree.transactor.setDecisive = setDecisive
  }

  /// Appends records of everything that has changed since the trees were last saved; no bytes where
  /// nothing has. Cost: a look at each tree, and O(what has changed).
  package func saveChanges(_ writer: inout ByteWriter) {
    while savedPaths < paths.count {
      writer.append(RecordKind.tree.rawValue)
      writer.append(paths[savedPaths])
      savedPaths += 1
    }
    for mounted in mountedTrees {
      if let tree = mounted as? Tree { tree.saver.saveChanges(&writer) }
      if let control = mounted as? ControlTree { control.save(all: false, &writer) }
    }
  }

  /// Returns records of everything. Cost: O(nodes), and the bytes of all texts that are saved.
  package func saveAll() -> [UInt8] {
    var writer = ByteWriter()
    savedPaths = 0
    saveChanges(&writer)
    for mounted in mountedTrees {
      if let tree = mounted as? Tree { tree.saver.saveAll(&writer) }
      if let control = mounted as? ControlTree { control.save(all: true, &writer) }
    }
    return writer.bytes
  }

  /// Makes the trees what a predecessor has saved. Call it on a new forest with the same options.
  /// Throws if the records make no sense: the predecessor was of a different version.
  /// - Parameter records: what `saveAll` returned, and all that `saveChanges` has appended since.
  package func restore(_ records: [[UInt8]]) throws {
    let saved = try SavedTrees(records)
    for path in saved.paths { try makeTree(at: path) }
    for (id, node) in saved.control { try control?.restore(id, node.path, lookups: node.lookups) }
    for (number, tree) in saved.trees where number < mountedTrees.count {
      try (mountedTrees[Int(number)] as? Tree)?.restore(tree, now: .now)
    }
  }

  private func makeTree(at path: [Key]) throws {
    let control = controlDirectory()
    if path.isEmpty { return }
    guard case .tree(let root)? = control.entry(at: path)?.content else {
      throw ByteReader.Unknown()
    }
    try mountedTree(at: path, root)
  }

  /// The path of a file whose text is under way, from the mount point: the engine does not have it,
  /// and a successor would not get it; nil if there is none.
  package var textUnderWay: String? {
    mountedTrees.lazy.compactMap { ($0 as? Tree)?.files(of: { !$0.isCommitted }).first }.first
  }

  /// The domains that somebody has looked up at the mount point, with the keys that somebody has
  /// looked up in them.
  package var knownKeys: [DomainName: Set<Key>] {
    guard let main else { return [:] }
    var known: [DomainName: Set<Key>] = [:]
    for domain in main.table.domains { known[domain] = [] }
    for path in main.table.paths() { known[path.domain]?.insert(path.key) }
    return known
  }

  /// Claims the names again that the predecessor had claimed for files which it made exclusively.
  package func claimAgain() {
    let names = mountedTrees.compactMap { $0 as? Tree }.flatMap { $0.scratch.claimed }
    if !names.isEmpty { claims?.claimAgain(names, by: author) }
  }

  /// Has everything dropped that the kernel has cached.
  package func invalidateAll() {
    for mounted in mountedTrees { (mounted as? Tree)?.kernel.invalidateAll() }
  }

  // MARK: - Requests that a predecessor has carried out

  /// Has the next request follow the change that it asks for, because a predecessor has made it.
  /// - Parameter made: nil if requests are carried out again.
  package func setMade(_ made: Changeset?) {
    for mounted in mountedTrees { (mounted as? Tree)?.transactor.made = made }
  }

  /// Notes that a predecessor has carried a write out: the engine has the text.
  package func noteWritten(_ id: NodeID) {
    guard let tree = self[id] as? Tree, let node = tree.table[id] else { return }
    tree.texts.noteWritten(node)
  }

  /// Whether the text of a file was under way when a predecessor ended, and is lost.
  package func hasLostText(_ id: NodeID) -> Bool {
    (self[id] as? Tree)?.table[id]?.lostUntil != nil
  }
}
