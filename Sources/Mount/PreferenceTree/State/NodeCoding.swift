import PreferenceModel
import PropertyList
import SystemCalls

// A node as bytes: what a successor of the driver must know of it, except its number, and the texts
// of scratch and detached files, which are saved in parts. Of a key there are its name, what
// requests have said of the text that comes, and a mark while a text is under way. The text itself
// is not saved, nor is anything that the engine has.

/// What a saved node is: see `Node.Content`.
private enum NodeKind: UInt8 {
  /// The root of the tree.
  case root
  case domain
  /// The directory of a domain that no look-up finds.
  case lostDomain
  case scratchDirectory
  case key
  case scratch
  case detached
}

extension Node {
  /// The mark of a file of which a successor must refuse writes that go on with its text, and until
  /// when it has one. It is marked while a text is under way, and where one was lost a moment ago.
  fileprivate var markedUntil: Instant? {
    hasTextUnderWay ? Instant(nanoseconds: .max) : lostUntil
  }

  /// Whether a write that goes on with the file's text would be wrong without what only this
  /// process knows of it: the engine does not have the text, or refused or held what was before it.
  var hasTextUnderWay: Bool {
    guard let file = keyFile else { return (inMemory?.nameless?.memory.droppedEnd ?? 0) > 0 }
    return file.editor?.isCommitted == false || (file.editorMemory.droppedEnd ?? 0) > 0
      || file.appended?.lost.isEmpty == false
  }
}

// MARK: - Writing

extension ByteWriter {
  /// Appends what `NodeTable.restore` reads.
  /// - Parameters:
  ///   - inode: nil if it follows from the name.
  ///   - isNamed: whether a look-up of the domain finds the node, if it is a domain's directory.
  ///   - move: the key that was moved away to the scratch file; nil if there is none.
  mutating func append(_ node: Node, inode: UInt64?, isNamed: Bool, move: RemovedNames.Move?) {
    append(optional: inode) { $0.append($1) }
    append(variable: node.lookups)
    append(optional: node.modified.nanoseconds == 0 ? nil : node.modified) {
      $0.append($1.nanoseconds)
    }
    append(optional: node.changed) { $0.append($1.nanoseconds) }
    switch node.content {
    case .directory(let directory as DomainDirectory):
      append(kind: isNamed ? .domain : .lostDomain)
      append(directory.domain.string)
    case .directory(let directory as ScratchDirectory):
      append(kind: .scratchDirectory)
      append(directory.path)
      append(directory.mode)
    case .directory: append(kind: .root)
    case .key(let path):
      append(kind: .key)
      append(KeyFile(node, path))
    case .scratch(let file):
      append(kind: .scratch)
      append(file, node)
      append(optional: move) { $0.append($1) }
    case .detached(let file):
      append(kind: .detached)
      append(file, node)
    }
  }

  private mutating func append(kind: NodeKind) { append(kind.rawValue) }

  /// Appends the name of a key's file, and nothing else where the file is as a new one.
  private mutating func append(_ file: KeyFile) {
    append(file.path)
    let (creation, wantedKind, mark) = (file.creation, file.wantedKind, file.node.markedUntil)
    let startsEmpty = file.editorMemory.startsEmpty
    if creation == nil, wantedKind == nil, mark == nil, !startsEmpty { return }
    append(optional: creation) { $0.append($1) }
    append(optional: wantedKind) { $0.append($1.rawValue) }
    append(startsEmpty)
    append(optional: mark) { $0.append($1.nanoseconds) }
  }

  private mutating func append(_ creation: KeyFile.Creation) {
    append(creation.handle.rawValue)
    append(optional: creation.preferredKind) { $0.append($1.rawValue) }
    append(optional: creation.awaited) { writer, awaited in
      writer.append(awaited.location)
      writer.append(awaited.since.nanoseconds)
      writer.append(optional: awaited.mode) { $0.append($1) }
      writer.append(awaited.isExclusive)
    }
  }

  private mutating func append(_ file: ScratchFile, _ node: Node) {
    append(file.path)
    append(file.isLink)
    append(optional: file.mode) { $0.append($1) }
    append(file.isOfKey)
    append(file.hasOwnTime)
    append(optional: file.wantedKind) { $0.append($1.rawValue) }
    append(file.mayStay)
    append(optional: file.formerKind) { $0.append($1.rawValue) }
    append(file.isClaimed)
    append(optional: file.nameless) { writer, nameless in
      writer.append(nameless.path)
      writer.append(nameless.creation)
      writer.append(nameless.memory.startsEmpty)
    }
    append(optional: node.markedUntil) { $0.append($1.nanoseconds) }
  }

  private mutating func append(_ path: ScratchPath) {
    switch path.parent {
    case .root: append(0 as UInt8)
    case .domain(let domain):
      append(1 as UInt8)
      append(domain.string)
    case .directory(let id):
      append(2 as UInt8)
      append(id)
    }
    append(path.name)
  }

  private mutating func append(_ move: RemovedNames.Move) {
    append(move.source)
    append(optional: move.former.kind) { $0.append($1.rawValue) }
    append(optional: move.former.mode) { $0.append($1) }
    append(optional: move.former.place) { $0.append($1.rawValue) }
  }
}

// MARK: - Reading

extension NodeTable {
  /// The largest number that is taken over: no mount lives long enough for it, and it can be
  /// counted on.
  static let mostSaved: UInt64 = 1 << 62

  /// Adds a node that a predecessor of this process has saved; the root is there. Throws if the
  /// bytes make no sense.
  /// - Parameters:
  ///   - bytes: what `ByteWriter.append(_:inode:isNamed:move:)` wrote.
  ///   - text: the text of a scratch or detached file.
  /// - Returns: the key that was moved away to a scratch file; nil if there is none.
  func restore(
    _ id: NodeID, _ bytes: ArraySlice<UInt8>, text: [UInt8], now: Instant
  ) throws -> RemovedNames.Move? {
    var reader = ByteReader(bytes)
    let inode = try reader.optional { try $0.number(UInt64.self) }
    let lookups = min(try reader.variable(), Self.mostSaved)
    let modified = try reader.optional { try $0.timestamp() } ?? Timestamp(nanoseconds: 0)
    let changed = try reader.optional { try $0.timestamp() }
    guard let kind = NodeKind(rawValue: try reader.number()) else { throw ByteReader.Unknown() }
    let content = try self.content(kind, id, text, &reader)
    var move: RemovedNames.Move?
    if id == root.id {
      (root.lookups, root.modified, root.changed) = (lookups, modified, changed)
    } else {
      let node = Node(
        id: id, inode: inode ?? self.inode(of: content), content, modified: modified,
        changes: changes)
      (node.lookups, node.changed) = (lookups, changed)
      add(restored: node, isNamed: kind != .lostDomain)
      if let file = node.keyFile, !reader.isAtEnd { try reader.restore(file, now) }
      if node.inMemory != nil { try reader.restoreMark(of: node, now) }
      if kind == .scratch { move = try reader.optional { try $0.move() } }
    }
    guard reader.isAtEnd else { throw ByteReader.Unknown() }
    return move
  }

  /// The inode number that follows from the name; 0 where none does, and the bytes make no sense.
  private func inode(of content: Node.Content) -> UInt64 {
    if case .key(let path) = content { inodes.ofName(path) } else { 0 }
  }

  private func content(
    _ kind: NodeKind, _ id: NodeID, _ text: [UInt8], _ reader: inout ByteReader
  ) throws -> Node.Content {
    switch kind {
    case .root: return .directory(RootDirectory())
    case .domain, .lostDomain: return .directory(DomainDirectory(try reader.domain()))
    case .scratchDirectory:
      let directory = ScratchDirectory(try reader.scratchPath(), id, changes: changes)
      directory.mode = try reader.number()
      return .directory(directory)
    case .key: return .key(stored(try reader.keyPath()))
    case .scratch: return .scratch(try scratchFile(id, text, &reader))
    case .detached: return .detached(try scratchFile(id, text, &reader))
    }
  }

  private func scratchFile(
    _ id: NodeID, _ text: [UInt8], _ reader: inout ByteReader
  ) throws -> ScratchFile {
    let (path, isLink) = (try reader.scratchPath(), try reader.flag())
    let mode = try reader.optional { try $0.number(UInt32.self) }
    let file = ScratchFile(
      path, isLink ? .link(target: text) : .file(text), mode: mode, isOfKey: try reader.flag(),
      id: id, changes: changes)
    file.hasOwnTime = try reader.flag()
    file.wantedKind = try reader.optional { try $0.kind() }
    file.mayStay = try reader.flag()
    file.formerKind = try reader.optional { try $0.kind() }
    file.isClaimed = try reader.flag()
    file.nameless = try reader.optional { reader in
      KeyFile.Nameless(
        path: try reader.keyPath(), creation: try reader.creation(),
        memory: TextEditor.Memory(startsEmpty: try reader.flag()))
    }
    return file
  }
}

extension ByteReader {
  /// Reads what is saved of a key's file that is not as a new one.
  fileprivate mutating func restore(_ file: KeyFile, _ now: Instant) throws {
    let (creation, wantedKind) = (
      try optional { try $0.creation() }, try optional { try $0.kind() }
    )
    let startsEmpty = try flag()
    (file.creation, file.wantedKind) = (creation, wantedKind)
    file.editorMemory = TextEditor.Memory(startsEmpty: startsEmpty)
    try restoreMark(of: file.node, now)
  }

  fileprivate mutating func restoreMark(of node: Node, _ now: Instant) throws {
    let mark = try optional { Instant(nanoseconds: try $0.number()) }
    guard let mark, mark > now else { return }
    node.lostUntil = now.advanced(milliseconds: TextEditor.holding)
  }

  fileprivate mutating func creation() throws -> KeyFile.Creation {
    KeyFile.Creation(
      handle: HandleID(rawValue: try number()), preferredKind: try optional { try $0.kind() },
      awaited: try optional { reader in
        KeyFile.Awaited(
          location: try reader.location(), since: try reader.timestamp(),
          mode: try reader.optional { try $0.number(UInt32.self) },
          isExclusive: try reader.flag())
      })
  }

  fileprivate mutating func scratchPath() throws -> ScratchPath {
    let parent: ScratchPath.Parent
    switch try number(UInt8.self) {
    case 0: parent = .root
    case 1: parent = .domain(try domain())
    case 2: parent = .directory(try node())
    default: throw Unknown()
    }
    return ScratchPath(parent: parent, name: try string())
  }

  fileprivate mutating func move() throws -> RemovedNames.Move {
    RemovedNames.Move(
      source: try keyPath(),
      former: RemovedNames.Former(
        kind: try optional { try $0.kind() }, mode: try optional { try $0.number() },
        place: try optional { Place(rawValue: try $0.string()) }.flatMap { $0 }))
  }
}
