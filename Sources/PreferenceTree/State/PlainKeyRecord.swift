import PreferenceModel
import PropertyList
import SystemCalls

// The short form of the record of a plain node: two bytes and the name, where the rest follows from
// the short record before. A mount may have a million of them.

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

/// The last short record in the same bytes. The next one leaves out what follows from it.
struct LastPlainRecord {
  var tree: Int
  var domain: DomainName
  var id: NodeID
}

/// What the first byte of the short form says. Other records begin with a smaller byte.
struct PlainKeyMarks: OptionSet {
  let rawValue: UInt8
  /// Set in each short form.
  static let isPlain = PlainKeyMarks(rawValue: 0x40)
  /// The inode number does not follow from the name.
  static let ownInode = PlainKeyMarks(rawValue: 1)
  /// Tree and domain are those of the short record before.
  static let sameDomain = PlainKeyMarks(rawValue: 2)
  /// The number of the node follows that of the short record before.
  static let nextNumber = PlainKeyMarks(rawValue: 4)
  /// The kernel has looked the node up once.
  static let oneLookup = PlainKeyMarks(rawValue: 8)
}

extension ByteWriter {
  /// Appends the short record of a node.
  /// - Parameters:
  ///   - inode: its inode number, if it does not follow from the name.
  ///   - last: the last short record in these bytes, which this one becomes; nil: none.
  mutating func append(
    _ id: NodeID, inode: UInt64?, _ node: PlainNodes.Node, in tree: Int,
    after last: inout LastPlainRecord?
  ) {
    let domain = node.path.domain
    var marks: PlainKeyMarks = [.isPlain]
    if let last, last.tree == tree, last.domain == domain { marks.insert(.sameDomain) }
    if id == last?.id.next { marks.insert(.nextNumber) }
    if inode != nil { marks.insert(.ownInode) }
    if node.lookups == 1 { marks.insert(.oneLookup) }
    append(marks.rawValue)
    if !marks.contains(.sameDomain) {
      append(UInt16(clamping: tree))
      append(domain.string)
    }
    if !marks.contains(.nextNumber) { append(variable: id.rawValue) }
    if !marks.contains(.oneLookup) { append(variable: node.lookups) }
    if let inode { append(inode) }
    append(variable: UInt64(node.path.key.utf8Count))
    node.path.key.withBytes { append(raw: UnsafeRawBufferPointer($0)) }
    last = LastPlainRecord(tree: tree, domain: domain, id: id)
  }
}

extension ByteReader {
  /// Reads the rest of a short record.
  mutating func plainNode(
    _ marks: PlainKeyMarks, after last: inout LastPlainRecord?
  ) throws -> TreeRecord {
    let (tree, domain): (Int, DomainName)
    if marks.contains(.sameDomain) {
      guard let last else { throw Unknown() }
      (tree, domain) = (last.tree, last.domain)
    } else {
      (tree, domain) = (Int(try number(UInt16.self)), try self.domain())
    }
    let id =
      marks.contains(.nextNumber) ? last?.id.next : NodeID(rawValue: try variable())
    let lookups = marks.contains(.oneLookup) ? 1 : try variable()
    let inode = marks.contains(.ownInode) ? try number(UInt64.self) : nil
    guard let id, let count = Int(exactly: try variable()),
      let key = String(validating: try removeNext(count), as: UTF8.self)
    else { throw Unknown() }
    last = LastPlainRecord(tree: tree, domain: domain, id: id)
    return .node(
      tree, NodeRecord(id, inode: inode, lookups: lookups, KeyPath(domain: domain, key: Key(key))))
  }
}

extension NodeID {
  /// The number that follows.
  fileprivate var next: NodeID { NodeID(rawValue: rawValue &+ 1) }
}
