import PreferenceModel
import PropertyList
import SystemCalls

// A node as bytes: what a successor of the driver must know of it, except its number, and the texts
// of scratch files, detached files and drafts, which are saved in parts.

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

/// Text of a key that waits for a decision, without its bytes.
struct SavedDraft {
  var phase: TextEditor.Phase
  /// Whether the type of the key follows from the text.
  var isInferred: Bool
  /// The value that the text was computed from.
  var origin: KeyFile.EditedVersion?
  var uncommittedSince: Timestamp?
}

// MARK: - Nodes

extension ByteWriter {
  /// Appends what `NodeTable.restore` reads.
  /// - Parameters:
  ///   - inode: nil: it follows from the name.
  ///   - isNamed: whether a look-up of the domain finds the node, if it is a domain's directory.
  mutating func append(_ node: Node, inode: UInt64?, isNamed: Bool) {
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
      append(file)
    case .detached(let file):
      append(kind: .detached)
      append(file)
    }
  }

  private mutating func append(kind: NodeKind) { append(kind.rawValue) }

  /// Appends the name of a key's file, and nothing else where the file is as a new one.
  private mutating func append(_ file: KeyFile) {
    append(file.path)
    let editor = file.editor
    let draft = editor?.deadline == nil ? nil : editor
    let (creation, memory) = (file.creation, file.editorMemory)
    let (wantedKind, appended) = (file.wantedKind, file.appended)
    if creation == nil, memory.isUsual, wantedKind == nil, appended == nil, draft == nil { return }
    append(optional: creation) { $0.append($1) }
    append(memory)
    append(optional: wantedKind) { $0.append($1.rawValue) }
    append(optional: appended) { $0.append($1) }
    append(optional: draft) { $0.append($1, file) }
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

  private mutating func append(_ memory: TextEditor.Memory) {
    append(memory.startsEmpty)
    append(optional: memory.droppedEnd) { $0.append(Int64($1)) }
  }

  private mutating func append(_ part: AppendedPart) {
    append(part.writer)
    append(Int64(part.kernelEnd))
    append(Int64(part.end))
    append(counted: part.tail)
    append(optional: part.held) {
      $0.append(Int64($1.lowerBound))
      $0.append(Int64($1.upperBound))
    }
    append(counted: part.lost)
    append(part.lostUntil.nanoseconds)
  }

  /// Appends what is known of the editor's text, which waits for a decision.
  private mutating func append(_ editor: TextEditor, _ file: KeyFile) {
    switch editor.phase {
    case .complete: append(0 as UInt8)
    case .truncated(let until):
      append(1 as UInt8)
      append(until.nanoseconds)
    case .held(let until):
      append(2 as UInt8)
      append(until.nanoseconds)
    case .overlaid(let overlay):
      append(3 as UInt8)
      append(overlay.until.nanoseconds)
      append(Int64(overlay.end))
      append(optional: overlay.tailCounts) { $0.append($1) }
      append(overlay.headCounts)
    }
    append(editor.isInferred)
    append(optional: file.origin) { writer, origin in
      writer.append(origin.location)
      writer.append(origin.modified.nanoseconds)
    }
    append(optional: file.uncommittedSince) { $0.append($1.nanoseconds) }
  }

  private mutating func append(_ file: ScratchFile) {
    append(file.path)
    append(file.isLink)
    append(optional: file.mode) { $0.append($1) }
    append(file.isOfKey)
    append(file.hasOwnTime)
    append(optional: file.wantedKind) { $0.append($1.rawValue) }
    append(file.mayStay)
    append(optional: file.formerKind) { $0.append($1.rawValue) }
    append(optional: file.nameless) { writer, nameless in
      writer.append(nameless.path)
      writer.append(nameless.creation)
      writer.append(nameless.memory)
    }
    append(file.isClaimed)
  }
}

extension NodeTable {
  /// The largest number that is taken over: no mount lives long enough for it, and it can be
  /// counted on.
  static let mostSaved: UInt64 = 1 << 62

  /// Adds a node that a predecessor of this process has saved; the root is there. Throws if the
  /// bytes make no sense.
  /// - Parameters:
  ///   - bytes: what `ByteWriter.append(_:inode:isNamed:)` wrote.
  ///   - text: the text of a scratch or detached file.
  /// - Returns: the draft of a key's file; nil: there is none.
  func restore(_ id: NodeID, _ bytes: ArraySlice<UInt8>, text: [UInt8]) throws -> SavedDraft? {
    var reader = ByteReader(bytes)
    let inode = try reader.optional { try $0.number(UInt64.self) }
    let lookups = min(try reader.variable(), Self.mostSaved)
    let modified = try reader.optional { try $0.timestamp() } ?? Timestamp(nanoseconds: 0)
    let changed = try reader.optional { try $0.timestamp() }
    let kind = try reader.nodeKind()
    let content = try self.content(kind, id, text, &reader)
    var draft: SavedDraft?
    if id == root.id {
      (root.lookups, root.modified, root.changed) = (lookups, modified, changed)
    } else {
      let node = Node(
        id: id, inode: inode ?? self.inode(of: content), content, modified: modified,
        changes: changes)
      (node.lookups, node.changed) = (lookups, changed)
      add(restored: node, isNamed: kind != .lostDomain)
      if let file = node.keyFile, !reader.isAtEnd { draft = try reader.restore(file) }
    }
    guard reader.isAtEnd else { throw ByteReader.Unknown() }
    return draft
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
    file.nameless = try reader.optional { reader in
      KeyFile.Nameless(
        path: try reader.keyPath(), creation: try reader.creation(), memory: try reader.memory())
    }
    file.isClaimed = try reader.flag()
    return file
  }
}

extension ByteReader {
  fileprivate mutating func nodeKind() throws -> NodeKind {
    guard let kind = NodeKind(rawValue: try number()) else { throw Unknown() }
    return kind
  }

  /// Reads what is saved of a key's file that is not as a new one.
  fileprivate mutating func restore(_ file: KeyFile) throws -> SavedDraft? {
    let creation = try optional { try $0.creation() }
    let memory = try memory()
    (file.creation, file.editorMemory) = (creation, memory)
    let wantedKind = try optional { try $0.kind() }
    let appended = try optional { try $0.appendedPart() }
    (file.wantedKind, file.appended) = (wantedKind, appended)
    return try optional { try $0.draft() }
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

  fileprivate mutating func memory() throws -> TextEditor.Memory {
    TextEditor.Memory(startsEmpty: try flag(), droppedEnd: try optional { try $0.integer() })
  }

  private mutating func appendedPart() throws -> AppendedPart {
    AppendedPart(
      writer: try number(), kernelEnd: try offset(), end: try offset(), tail: Array(try counted()),
      held: try optional { reader in
        let (start, end) = (try reader.offset(), try reader.offset())
        return min(start, end)..<max(start, end)
      },
      lost: Array(try counted()), lostUntil: try instant())
  }

  /// An offset in a text.
  private mutating func offset() throws -> Int {
    min(max(0, try integer()), TextEditor.largest)
  }

  private mutating func draft() throws -> SavedDraft {
    let phase: TextEditor.Phase
    switch try number(UInt8.self) {
    case 0: phase = .complete
    case 1: phase = .truncated(until: try instant())
    case 2: phase = .held(until: try instant())
    case 3:
      let until = try instant()
      phase = .overlaid(
        TextEditor.Overlay(
          end: try offset(), until: until, tailCounts: try optional { try $0.flag() },
          headCounts: try flag()))
    default: throw Unknown()
    }
    return SavedDraft(
      phase: phase, isInferred: try flag(),
      origin: try optional { reader in
        KeyFile.EditedVersion(location: try reader.location(), modified: try reader.timestamp())
      },
      uncommittedSince: try optional { try $0.timestamp() })
  }
}

// MARK: - What records are made of

extension ByteWriter {
  mutating func append(_ flag: Bool) { append(flag ? 1 : 0 as UInt8) }

  mutating func append<Item>(optional item: Item?, _ body: (inout ByteWriter, Item) -> Void) {
    append(item != nil)
    if let item { body(&self, item) }
  }

  mutating func append(_ id: NodeID) { append(id.rawValue) }

  mutating func append(_ path: KeyPath) {
    // Each node has one: the lengths take a byte each, and no string is made.
    for key in [path.domain.key, path.key] {
      key.withBytes { append(short: UnsafeRawBufferPointer($0)) }
    }
  }

  /// Appends the number of the bytes, in as few bytes as it takes, and then the bytes.
  mutating func append(short content: UnsafeRawBufferPointer) {
    append(variable: UInt64(content.count))
    append(raw: content)
  }

  mutating func append(_ path: ScratchPath) {
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
}

extension ByteReader {
  mutating func flag() throws -> Bool { try number(UInt8.self) != 0 }

  mutating func optional<Item>(_ body: (inout ByteReader) throws -> Item) throws -> Item? {
    try flag() ? try body(&self) : nil
  }

  mutating func integer() throws -> Int { Int(clamping: try number(Int64.self)) }

  mutating func instant() throws -> Instant { Instant(nanoseconds: try number()) }

  mutating func node() throws -> NodeID { NodeID(rawValue: try number()) }

  mutating func keyPath() throws -> KeyPath {
    KeyPath(domain: DomainName(try shortString()), key: Key(try shortString()))
  }

  private mutating func shortString() throws -> String {
    guard let text = String(utf8: try shortBytes()) else { throw Unknown() }
    return text
  }

  /// Returns the bytes that `append(short:)` wrote.
  mutating func shortBytes() throws -> ArraySlice<UInt8> {
    try removeNext(Int(clamping: try variable()))
  }

  mutating func kind() throws -> Kind {
    guard let kind = Kind(rawValue: try string()) else { throw Unknown() }
    return kind
  }

  mutating func scratchPath() throws -> ScratchPath {
    let parent: ScratchPath.Parent
    switch try number(UInt8.self) {
    case 0: parent = .root
    case 1: parent = .domain(try domain())
    case 2: parent = .directory(try node())
    default: throw Unknown()
    }
    return ScratchPath(parent: parent, name: try string())
  }
}
