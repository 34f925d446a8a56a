import PreferenceModel
import PropertyList
import SystemCalls

/// What a successor of the driver must know of a node, except the text of scratch files, detached
/// files and drafts, which is saved in parts.
struct NodeRecord: Equatable {
  enum Content: Equatable {
    /// The root of the tree.
    case root
    /// The directory of a domain; `isNamed`: whether a look-up of the domain finds it.
    case domain(DomainName, isNamed: Bool)
    case scratchDirectory(ScratchPath, mode: UInt32)
    case key(KeyRecord)
    case scratch(ScratchRecord)
  }

  var id: NodeID
  /// nil: it follows from the name.
  var inode: UInt64?
  var lookups: UInt64
  var modified: Timestamp
  var changed: Timestamp?
  var content: Content

  /// Whether the text of the node is saved too.
  var hasText: Bool {
    switch content {
    case .root, .domain, .scratchDirectory: false
    case .key(let key): key.draft != nil
    case .scratch: true
    }
  }
}

/// The state of a key's file: see `KeyFile`.
struct KeyRecord: Equatable {
  var path: KeyPath
  var creation: KeyFile.Creation?
  var memory = TextEditor.Memory()
  var wantedKind: Kind?
  var appended: AppendedPart?
  var draft: Draft?

  /// Text that waits for a decision.
  struct Draft: Equatable {
    var phase: TextEditor.Phase
    /// Whether the type of the key follows from the text.
    var isInferred: Bool
    /// The value that the text was computed from.
    var origin: KeyFile.EditedVersion?
    var uncommittedSince: Timestamp?
  }
}

/// The state of a scratch file or link, or of a file whose name is gone: see `ScratchFile`.
struct ScratchRecord: Equatable {
  var path: ScratchPath
  var isLink: Bool
  var mode: UInt32?
  var hasOwnTime: Bool
  var wantedKind: Kind?
  var mayStay: Bool
  var isOfKey: Bool
  /// Whether a look-up of its name finds it.
  var isNamed: Bool
}

// MARK: - Bytes

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
      append(variable: UInt64(key.utf8Count))
      key.withBytes { append(raw: UnsafeRawBufferPointer($0)) }
    }
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

  mutating func append(_ node: NodeRecord) {
    append(variable: node.id.rawValue)
    append(optional: node.inode) { $0.append($1) }
    append(variable: node.lookups)
    append(optional: node.modified.nanoseconds == 0 ? nil : node.modified) {
      $0.append($1.nanoseconds)
    }
    append(optional: node.changed) { $0.append($1.nanoseconds) }
    switch node.content {
    case .root: append(0 as UInt8)
    case .domain(let domain, let isNamed):
      append(1 as UInt8)
      append(domain.string)
      append(isNamed)
    case .scratchDirectory(let path, let mode):
      append(2 as UInt8)
      append(path)
      append(mode)
    case .key(let key):
      append(3 as UInt8)
      append(key)
    case .scratch(let scratch):
      append(4 as UInt8)
      append(scratch)
    }
  }

  private mutating func append(_ key: KeyRecord) {
    append(key.path)
    let isUsual = key == KeyRecord(path: key.path)
    append(isUsual)
    if isUsual { return }
    append(optional: key.creation) { writer, creation in
      writer.append(creation.handle.rawValue)
      writer.append(optional: creation.preferredKind) { $0.append($1.rawValue) }
    }
    append(key.memory.startsEmpty)
    append(optional: key.memory.droppedEnd) { $0.append(Int64($1)) }
    append(optional: key.wantedKind) { $0.append($1.rawValue) }
    append(optional: key.appended) { writer, part in
      writer.append(part.writer)
      writer.append(Int64(part.kernelEnd))
      writer.append(Int64(part.end))
      writer.append(counted: part.tail)
      writer.append(optional: part.held) {
        $0.append(Int64($1.lowerBound))
        $0.append(Int64($1.upperBound))
      }
      writer.append(counted: part.lost)
      writer.append(part.lostUntil.nanoseconds)
    }
    append(optional: key.draft) { $0.append($1) }
  }

  private mutating func append(_ draft: KeyRecord.Draft) {
    switch draft.phase {
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
    append(draft.isInferred)
    append(optional: draft.origin) { writer, origin in
      writer.append(origin.location)
      writer.append(origin.modified.nanoseconds)
    }
    append(optional: draft.uncommittedSince) { $0.append($1.nanoseconds) }
  }

  private mutating func append(_ scratch: ScratchRecord) {
    append(scratch.path)
    append(scratch.isLink)
    append(optional: scratch.mode) { $0.append($1) }
    append(scratch.hasOwnTime)
    append(optional: scratch.wantedKind) { $0.append($1.rawValue) }
    append(scratch.mayStay)
    append(scratch.isOfKey)
    append(scratch.isNamed)
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
    guard let text = String(utf8: try removeNext(Int(clamping: try variable()))) else {
      throw Unknown()
    }
    return text
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

  mutating func nodeRecord() throws -> NodeRecord {
    let id = NodeID(rawValue: try variable())
    let inode = try optional { try $0.number(UInt64.self) }
    let lookups = try variable()
    let modified = try optional { try $0.timestamp() } ?? Timestamp(nanoseconds: 0)
    let changed = try optional { try $0.timestamp() }
    let content: NodeRecord.Content
    switch try number(UInt8.self) {
    case 0: content = .root
    case 1: content = .domain(try domain(), isNamed: try flag())
    case 2: content = .scratchDirectory(try scratchPath(), mode: try number())
    case 3: content = .key(try keyRecord())
    case 4: content = .scratch(try scratchRecord())
    default: throw Unknown()
    }
    return NodeRecord(
      id: id, inode: inode, lookups: lookups, modified: modified, changed: changed,
      content: content)
  }

  private mutating func keyRecord() throws -> KeyRecord {
    var record = KeyRecord(path: try keyPath())
    if try flag() { return record }
    record.creation = try optional { reader in
      KeyFile.Creation(
        handle: HandleID(rawValue: try reader.number()),
        preferredKind: try reader.optional { try $0.kind() })
    }
    record.memory.startsEmpty = try flag()
    record.memory.droppedEnd = try optional { try $0.integer() }
    record.wantedKind = try optional { try $0.kind() }
    record.appended = try optional { try $0.appendedPart() }
    record.draft = try optional { try $0.draft() }
    return record
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

  private mutating func draft() throws -> KeyRecord.Draft {
    let phase: TextEditor.Phase
    switch try number(UInt8.self) {
    case 0: phase = .complete
    case 1: phase = .truncated(until: try instant())
    case 2: phase = .held(until: try instant())
    case 3:
      let until = try instant()
      phase = .overlaid(
        TextEditor.Overlay(
          end: try integer(), until: until, tailCounts: try optional { try $0.flag() },
          headCounts: try flag()))
    default: throw Unknown()
    }
    return KeyRecord.Draft(
      phase: phase, isInferred: try flag(),
      origin: try optional { reader in
        KeyFile.EditedVersion(location: try reader.location(), modified: try reader.timestamp())
      },
      uncommittedSince: try optional { try $0.timestamp() })
  }

  private mutating func scratchRecord() throws -> ScratchRecord {
    ScratchRecord(
      path: try scratchPath(), isLink: try flag(), mode: try optional { try $0.number() },
      hasOwnTime: try flag(), wantedKind: try optional { try $0.kind() },
      mayStay: try flag(), isOfKey: try flag(), isNamed: try flag())
  }
}
