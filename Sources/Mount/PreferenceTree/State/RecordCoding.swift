import PreferenceModel
import PropertyList
import SystemCalls

/// What a record of the saved state of a mount's trees has: its first byte. A later record of the
/// same subject replaces an earlier one. From `node` on, the number of the tree in its mount comes
/// next.
enum RecordKind: UInt8 {
  /// The path in the control directory of a tree's root; that of the control directory itself is
  /// empty. Trees are saved in the order of their numbers.
  case tree
  /// A node of the control directory.
  case control
  case controlGone
  case node
  case gone
  /// A part of a text: how long the whole text is, and the bytes from an offset on.
  case text
  /// `st_ino` of a name where it does not follow from the name.
  case keyInode
  case domainInode
  case departure
  /// Whether the kernel may have cached a name as missing or inherited.
  case answered
  case numbers
}

/// The last numbers that a tree has given.
struct TreeNumbers: Equatable {
  var node: UInt64
  var inode: UInt64
  var handle: UInt64
}

extension ByteWriter {
  /// Begins a record.
  /// - Parameter tree: the number of the tree; nil: the record is one of the mount.
  mutating func begin(_ kind: RecordKind, tree: UInt64? = nil) {
    append(kind.rawValue)
    if let tree { append(UInt16(clamping: tree)) }
  }

  mutating func append(_ departure: Departures.Departure) {
    append(departure.until.nanoseconds)
    append(optional: departure.former.kind) { $0.append($1.rawValue) }
    append(optional: departure.former.mode) { $0.append($1) }
    append(optional: departure.former.place) { $0.append($1.rawValue) }
    append(optional: departure.holder) { $0.append($1) }
  }

  /// Appends a path in the control directory.
  mutating func append(_ path: [Key]) {
    append(variable: UInt64(path.count))
    for key in path { append(key.string) }
  }
}

extension ByteReader {
  mutating func recordKind() throws -> RecordKind {
    guard let kind = RecordKind(rawValue: try number()) else { throw Unknown() }
    return kind
  }

  mutating func departure() throws -> Departures.Departure {
    Departures.Departure(
      until: try instant(),
      former: Departures.Former(
        kind: try optional { try $0.kind() }, mode: try optional { try $0.number() },
        place: try optional { Place(rawValue: try $0.string()) }.flatMap { $0 }),
      holder: try optional { try $0.node() })
  }

  mutating func keys() throws -> [Key] {
    var keys: [Key] = []
    for _ in 0..<(try variable()) { keys.append(Key(try string())) }
    return keys
  }
}
