import PreferenceModel
import PropertyList
import SystemCalls

// What a successor of the driver must know of the trees.

extension Forest {
  /// Whether changes are noted for `saveChanges`.
  var isSaving: Bool { remember != nil }

  /// Begins to note changes for `saveChanges`.
  /// - Parameter remember: saves the values of keys before a request changes them, which
  ///   `beginRepetition` takes.
  package func beginSaving(remember: @escaping ([UInt8]) -> Void) {
    self.remember = remember
    for branch in branches { beginSaving(branch) }
  }

  func beginSaving(_ branch: any Branch) {
    if let control = branch as? ControlTree { control.changes.isRecording = true }
    guard let tree = branch as? Tree else { return }
    tree.saver.beginSaving()
    let number = tree.position.number
    tree.transactor.remember = { [unowned self] values in
      var writer = ByteWriter()
      writer.append(number)
      writer.append(UInt32(clamping: values.count))
      for (path, value) in values {
        writer.append(path)
        writer.append(optional: value) { $0.append($1) }
      }
      remember?(writer.bytes)
    }
  }

  /// Appends records of everything that has changed since the trees were last saved; no bytes where
  /// nothing has. Cost: a look at each tree, and O(what has changed).
  package func saveChanges(_ writer: inout ByteWriter) {
    while savedItems < items.count {
      save(items[savedItems], &writer)
      savedItems += 1
    }
    for branch in branches {
      if let tree = branch as? Tree { tree.saver.saveChanges(&writer) }
      if let control = branch as? ControlTree { control.save(all: false, &writer) }
    }
  }

  private func save(_ tree: (item: ControlItem, path: String), _ writer: inout ByteWriter) {
    writer.begin(.tree)
    writer.append(tree.item)
    writer.append(tree.path)
  }

  /// Returns records of everything.
  package func saveAll() -> [UInt8] {
    var writer = ByteWriter()
    saveChanges(&writer)
    beginParts()
    while let part = savePart() { writer.append(raw: part) }
    return writer.bytes
  }

  /// Begins to return records of everything in parts (`savePart`). Call it after `saveChanges`.
  package func beginParts() {
    var writer = ByteWriter()
    for item in items { save(item, &writer) }
    parts = []
    for branch in branches {
      if let tree = branch as? Tree {
        tree.saver.saveAllButNodes(&writer)
        parts.append((tree, Array(tree.table.nodes.keys)[...]))
      }
      if let control = branch as? ControlTree { control.save(all: true, &writer) }
    }
    firstPart = writer.bytes
  }

  /// Returns the next records of everything; nil after the last ones. A successor needs those of
  /// all parts, and of `saveChanges` meanwhile, in the order of the calls. Cost: O(`nodesInPart`).
  package func savePart() -> [UInt8]? {
    if let first = firstPart {
      firstPart = nil
      return first
    }
    guard let (tree, nodes) = parts.last else { return nil }
    var writer = ByteWriter()
    tree.saver.saveNodes(nodes.prefix(Self.nodesInPart), &writer)
    let rest = nodes.dropFirst(Self.nodesInPart)
    parts[parts.count - 1].nodes = rest
    if rest.isEmpty { parts.removeLast() }
    return writer.bytes
  }

  /// How many nodes a part has.
  private static let nodesInPart = 128

  /// Makes the trees what a predecessor has saved. Call it on a new forest with the same options.
  /// Throws if the records make no sense: the predecessor was of a different version.
  /// - Parameter records: what `saveAll` returned, and all that `saveChanges` has appended since.
  package func restore(_ records: [[UInt8]]) throws {
    var saved: [Int: SavedTree] = [:]
    var control: [NodeID: (item: ControlItem, lookups: UInt64)] = [:]
    var made: Set<ControlItem> = []
    for bytes in records {
      var reader = ByteReader(bytes[...])
      while !reader.isAtEnd {
        switch try reader.recordKind() {
        case .tree: try makeTree(&reader, &made)
        case .control:
          let id = try reader.node()
          control[id] = (item: try reader.controlItem(), lookups: try reader.number(UInt64.self))
        case .controlGone:
          let id = try reader.node()
          control[id] = nil
        case let kind:
          let number = Int(try reader.number(UInt16.self))
          try saved[number, default: SavedTree()].add(kind, &reader)
        }
      }
    }
    for (id, node) in control { self.control?.restore(id, node.item, lookups: node.lookups) }
    for (number, tree) in saved { try (branches[safe: number] as? Tree)?.restore(tree, now: .now) }
  }

  private func makeTree(_ reader: inout ByteReader, _ made: inout Set<ControlItem>) throws {
    let (item, path) = (try reader.controlItem(), try reader.string())
    guard made.insert(item).inserted else { return }
    if item == .root {
      _ = controlDirectory()
    } else {
      try branch(of: item, at: path)
    }
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

  /// Has everything dropped that the kernel has cached.
  package func invalidateAll() {
    for branch in branches { (branch as? Tree)?.kernel.invalidateAll() }
  }

  // MARK: - Requests that a predecessor has carried out

  /// Has the next request see the values that `remember` was given, until it changes them: a
  /// predecessor has carried it out, and it is repeated so that the trees follow.
  package func beginRepetition(_ values: [UInt8]) throws {
    var reader = ByteReader(values[...])
    let number = Int(clamping: try reader.number(UInt64.self))
    let count = try reader.number(UInt32.self)
    guard let tree = branches[safe: number] as? Tree else { throw ByteReader.Unknown() }
    var past: [KeyPath: Resolution?] = [:]
    for _ in 0..<count {
      let path = try reader.keyPath()
      past[path] = .some(try reader.optional { try $0.resolution() })
    }
    tree.values.past = past
  }

  /// Ends a repetition, also of a request that was refused.
  package func endRepetition() {
    for branch in branches { (branch as? Tree)?.values.past = [:] }
  }

  /// Notes that a predecessor has carried a write out: the engine has the text.
  package func noteWritten(_ id: NodeID) {
    guard let tree = self[id] as? Tree, let file = tree.table[id]?.keyFile else { return }
    tree.texts.noteWritten(file)
  }
}

extension Array {
  /// The element at the index; nil if there is none.
  subscript(safe index: Int) -> Element? { indices.contains(index) ? self[index] : nil }
}

// MARK: - Resolutions as bytes

extension ByteWriter {
  mutating func append(_ resolution: Resolution) {
    append(resolution.location)
    append(resolution.isReadOnly)
    append(counted: Document.binary(resolution.value))
    append(optional: resolution.text) { $0.append(counted: $1) }
    append(resolution.modified.nanoseconds)
    append(optional: resolution.mode) { $0.append($1) }
  }
}

extension ByteReader {
  fileprivate mutating func resolution() throws -> Resolution {
    let (location, isReadOnly, value) = (try location(), try flag(), try value())
    let metadata = Metadata(
      text: try optional { Array(try $0.counted()) }, modified: try timestamp(),
      mode: try optional { try $0.number() })
    return Resolution(
      StoredValue(value, metadata), location: location, isReadOnly: isReadOnly)
  }
}
