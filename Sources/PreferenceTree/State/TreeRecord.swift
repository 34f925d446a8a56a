import PreferenceModel
import PropertyList
import SystemCalls

/// One record of the saved state of a mount's trees. A later record of the same subject replaces an
/// earlier one. The number is that of the tree in its mount.
enum TreeRecord {
  /// A tree whose root an item of the control directory is; the control directory itself is
  /// `.root`. Trees are saved in the order of their numbers.
  case tree(ControlItem, path: String)
  case node(Int, NodeRecord)
  case gone(Int, NodeID)
  /// A part of a text: how long the whole text is, and the bytes from the offset on.
  case text(Int, NodeID, count: Int, offset: Int, ArraySlice<UInt8>)
  /// `st_ino` of a name where it does not follow from the name.
  case keyInode(Int, KeyPath, UInt64?)
  case domainInode(Int, DomainName, UInt64?)
  case departure(Int, KeyPath, Departures.Departure?)
  /// A name that the kernel may have cached as missing or inherited.
  case answered(Int, KeyPath, Bool)
  case numbers(Int, TreeNumbers)
  /// A node of the control directory.
  case control(NodeID, ControlItem, lookups: UInt64)
  case controlGone(NodeID)
}

/// The last numbers that a tree has given.
struct TreeNumbers: Equatable {
  var node: UInt64
  var inode: UInt64
  var handle: UInt64
}

extension ByteWriter {
  mutating func append(_ record: TreeRecord) {
    switch record {
    case .tree(let item, let path):
      append(0 as UInt8)
      append(item)
      append(path)
    case .node(let tree, let node):
      begin(1, tree)
      append(node)
    case .gone(let tree, let id):
      begin(2, tree)
      append(id)
    case .text(let tree, let id, let count, let offset, let bytes):
      begin(3, tree)
      append(id)
      append(Int64(count))
      append(Int64(offset))
      append(counted: bytes)
    case .keyInode(let tree, let path, let inode):
      begin(4, tree)
      append(path)
      append(optional: inode) { $0.append($1) }
    case .domainInode(let tree, let domain, let inode):
      begin(5, tree)
      append(domain.string)
      append(optional: inode) { $0.append($1) }
    case .departure(let tree, let path, let departure):
      begin(6, tree)
      append(path)
      append(optional: departure) { $0.append($1) }
    case .answered(let tree, let path, let isNoted):
      begin(7, tree)
      append(path)
      append(isNoted)
    case .numbers(let tree, let numbers):
      begin(8, tree)
      append(numbers.node)
      append(numbers.inode)
      append(numbers.handle)
    case .control(let id, let item, let lookups):
      append(9 as UInt8)
      append(id)
      append(item)
      append(lookups)
    case .controlGone(let id):
      append(10 as UInt8)
      append(id)
    }
  }

  private mutating func begin(_ tag: UInt8, _ tree: Int) {
    append(tag)
    append(UInt16(clamping: tree))
  }

  private mutating func append(_ departure: Departures.Departure) {
    append(departure.until.nanoseconds)
    append(departure.former.kind.rawValue)
    append(optional: departure.former.mode) { $0.append($1) }
    append(optional: departure.former.place) { $0.append($1.rawValue) }
    append(optional: departure.holder) { $0.append($1) }
  }

  private mutating func append(_ item: ControlItem) {
    if let place = ControlItem.simple.firstIndex(of: item) { return append(UInt8(place)) }
    switch item {
    case .explained(let domain):
      append(64 as UInt8)
      append(domain.string)
    case .search(let domain):
      append(65 as UInt8)
      append(domain.string)
    case .explanation(let domain, let key):
      append(66 as UInt8)
      append(KeyPath(domain: domain, key: key))
    case .place(let place):
      append(67 as UInt8)
      append(place.rawValue)
    case .declarations(let place):
      append(68 as UInt8)
      append(place?.rawValue ?? "")
    case .described(let domain):
      append(69 as UInt8)
      append(domain.string)
    case .description(let domain, let key):
      append(70 as UInt8)
      append(KeyPath(domain: domain, key: key))
    case .schema(let domain, let isJSON):
      append(71 as UInt8)
      append(domain.string)
      append(isJSON ? 1 : 0 as UInt8)
    case .changed(let domain):
      append(72 as UInt8)
      append(domain.string)
    case .changes(let domain, let key):
      append(73 as UInt8)
      append(KeyPath(domain: domain, key: key))
    case .moment(let number):
      append(74 as UInt8)
      append(number)
    case .pastDomain(let number, let domain):
      append(75 as UInt8)
      append(number)
      append(domain.string)
    case .pastKey(let number, let domain, let key):
      append(76 as UInt8)
      append(number)
      append(KeyPath(domain: domain, key: key))
    // These are in `simple`.
    case .root, .places, .users, .searches, .explanations, .status, .documents, .suites,
      .declaredPlaces, .descriptions, .schemas, .histories, .moments:
      break
    }
  }
}

extension ControlItem {
  /// The items that are made of nothing. They are saved as their places here, the others by numbers
  /// from 64 on.
  fileprivate static let simple: [ControlItem] = [
    .root, .places, .users, .searches, .explanations, .status, .documents, .suites,
    .declaredPlaces, .descriptions, .schemas, .histories, .moments,
  ]
}

extension ByteReader {
  mutating func treeRecord() throws -> TreeRecord {
    let tag = try number(UInt8.self)
    switch tag {
    case 0: return .tree(try controlItem(), path: try string())
    case 9: return .control(try node(), try controlItem(), lookups: try number())
    case 10: return .controlGone(try node())
    default: return try record(tag, Int(try number(UInt16.self)))
    }
  }

  private mutating func record(_ tag: UInt8, _ tree: Int) throws -> TreeRecord {
    switch tag {
    case 1: return .node(tree, try nodeRecord())
    case 2: return .gone(tree, try node())
    case 3:
      return .text(
        tree, try node(), count: try integer(), offset: try integer(), try counted())
    case 4: return .keyInode(tree, try keyPath(), try optional { try $0.number() })
    case 5: return .domainInode(tree, try domain(), try optional { try $0.number() })
    case 6: return .departure(tree, try keyPath(), try optional { try $0.departure() })
    case 7: return .answered(tree, try keyPath(), try flag())
    case 8:
      return .numbers(
        tree, TreeNumbers(node: try number(), inode: try number(), handle: try number()))
    default: throw Unknown()
    }
  }

  private mutating func departure() throws -> Departures.Departure {
    Departures.Departure(
      until: try instant(),
      former: Departures.Former(
        kind: try kind(), mode: try optional { try $0.number() },
        place: try optional { Place(rawValue: try $0.string()) }.flatMap { $0 }),
      holder: try optional { try $0.node() })
  }

  private mutating func controlItem() throws -> ControlItem {
    let tag = try number(UInt8.self)
    if let item = ControlItem.simple[safe: Int(tag)] { return item }
    switch tag {
    case 64: return .explained(try domain())
    case 65: return .search(try domain())
    case 66:
      let path = try keyPath()
      return .explanation(path.domain, path.key)
    case 67:
      guard let place = Place(rawValue: try string()) else { throw Unknown() }
      return .place(place)
    case 68:
      let name = try string()
      return .declarations(name.isEmpty ? nil : Place(rawValue: name))
    case 69: return .described(try domain())
    case 70:
      let path = try keyPath()
      return .description(path.domain, path.key)
    case 71: return .schema(try domain(), isJSON: try number(UInt8.self) == 1)
    case 72: return .changed(try domain())
    case 73:
      let path = try keyPath()
      return .changes(path.domain, path.key)
    case 74: return .moment(try number())
    case 75: return .pastDomain(try number(), try domain())
    case 76:
      let (number, path) = (try number(UInt64.self), try keyPath())
      return .pastKey(number, path.domain, path.key)
    default: throw Unknown()
    }
  }
}
