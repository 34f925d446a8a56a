import PreferenceModel
import PropertyList
import SystemCalls

/// What a record of the saved state of a mount's trees has: its first byte. A later record of the
/// same subject replaces an earlier one. The number of a node says which tree it belongs to; in a
/// record of a name, or of numbers, that of the tree comes next.
enum RecordKind: UInt8 {
  /// The path in the control directory of a tree's root; that of the control directory itself is
  /// empty. Trees are saved in the order of their numbers.
  case tree
  /// A node of the control directory.
  case control
  /// A node of another tree.
  case node
  /// A node with a text that only the mount has: a scratch file or link, a detached file. What is
  /// known of it, how long the whole text is, and the bytes from an offset on.
  case file
  case gone
  /// What is known of a name: `SavedName`.
  case name
  case numbers
}

/// What is known of a name beside its node.
struct SavedName: Equatable {
  /// `st_ino`, where it does not follow from the name.
  var inode: UInt64?
  /// Whether the kernel may have cached the name as missing or inherited.
  var isAnswered = false
}

/// The last numbers that a tree has given.
struct TreeNumbers: Equatable {
  var node: UInt64 = 0
  var inode: UInt64 = 0
}

extension ByteWriter {
  /// Begins a record about a name.
  mutating func begin(_ kind: RecordKind, tree: UInt64) {
    append(kind.rawValue)
    append(UInt16(clamping: tree))
  }

  /// Begins a record about a node.
  mutating func begin(_ kind: RecordKind, _ id: NodeID) {
    append(kind.rawValue)
    append(id)
  }

  /// Appends a path in the control directory.
  mutating func append(_ path: [Key]) {
    append(variable: UInt64(path.count))
    for key in path { append(key.string) }
  }

  mutating func append(_ flag: Bool) { append(flag ? 1 : 0 as UInt8) }

  mutating func append<Item>(optional item: Item?, _ body: (inout ByteWriter, Item) -> Void) {
    append(item != nil)
    if let item { body(&self, item) }
  }

  mutating func append(_ id: NodeID) { append(variable: id.rawValue) }

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
}

extension ByteReader {
  mutating func recordKind() throws -> RecordKind {
    guard let kind = RecordKind(rawValue: try number()) else { throw Unknown() }
    return kind
  }

  mutating func keys() throws -> [Key] {
    var keys: [Key] = []
    for _ in 0..<(try variable()) { keys.append(Key(try string())) }
    return keys
  }

  mutating func flag() throws -> Bool { try number(UInt8.self) != 0 }

  mutating func optional<Item>(_ body: (inout ByteReader) throws -> Item) throws -> Item? {
    try flag() ? try body(&self) : nil
  }

  mutating func node() throws -> NodeID { NodeID(rawValue: try variable()) }

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
}
