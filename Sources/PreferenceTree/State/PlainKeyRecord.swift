import PreferenceModel
import PropertyList
import SystemCalls

// The short form of the record of a key's node that has nothing but its name and its look-ups, as
// nearly all: some ten bytes and the name. A mount may have a million of them.

extension NodeRecord {
  /// The path of the key, if the record says nothing else that is not usual; nil: it does.
  var plainPath: KeyPath? {
    guard case .key(let key) = content, key == KeyRecord(path: key.path),
      modified == Timestamp(nanoseconds: 0), changed == nil
    else { return nil }
    return key.path
  }

  /// Creates the record of a key's node that has nothing but its name and its look-ups.
  init(_ id: NodeID, inode: UInt64?, lookups: UInt64, _ path: KeyPath) {
    self.init(
      id: id, inode: inode, lookups: lookups, modified: Timestamp(nanoseconds: 0), changed: nil,
      content: .key(KeyRecord(path: path)))
  }
}

/// What the first byte of the short form says.
private struct PlainKeyMarks: OptionSet {
  let rawValue: UInt8
  /// The domain is that of the last short record before this one, and is left out.
  static let sameDomain = PlainKeyMarks(rawValue: 1)
  /// The inode number does not follow from the name.
  static let ownInode = PlainKeyMarks(rawValue: 2)
}

extension ByteWriter {
  /// - Parameter domain: the domain of the last short record, which this one becomes; nil: none.
  mutating func append(
    plain node: NodeRecord, _ path: KeyPath, after domain: inout DomainName?
  ) {
    var marks: PlainKeyMarks = []
    if domain == path.domain { marks.insert(.sameDomain) }
    if node.inode != nil { marks.insert(.ownInode) }
    append(marks.rawValue)
    append(variable: node.id.rawValue)
    append(variable: node.lookups)
    if let inode = node.inode { append(inode) }
    if domain != path.domain { append(path.domain.string) }
    let key = path.key.string.utf8
    append(variable: UInt64(key.count))
    append(raw: Array(key))
    domain = path.domain
  }
}

extension ByteReader {
  mutating func plainNode(after domain: inout DomainName?) throws -> NodeRecord {
    let marks = PlainKeyMarks(rawValue: try number())
    let (id, lookups) = (NodeID(rawValue: try variable()), try variable())
    let inode = marks.contains(.ownInode) ? try number(UInt64.self) : nil
    if !marks.contains(.sameDomain) { domain = try self.domain() }
    guard let domain, let count = Int(exactly: try variable()),
      let key = String(validating: try removeNext(count), as: UTF8.self)
    else { throw Unknown() }
    return NodeRecord(
      id, inode: inode, lookups: lookups, KeyPath(domain: domain, key: Key(key)))
  }
}
