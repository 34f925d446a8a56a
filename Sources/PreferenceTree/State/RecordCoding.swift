import PreferenceModel
import PropertyList
import SystemCalls

/// What a record of the saved state of a mount's trees has: its first byte. A later record of the
/// same subject replaces an earlier one. From `node` on, the number of the tree in its mount comes
/// next.
enum RecordKind: UInt8 {
  /// A tree whose root an item of the control directory is, and its path; the control directory
  /// itself is `.root`. Trees are saved in the order of their numbers.
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

  mutating func append(_ item: ControlItem) {
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
      .declaredPlaces, .descriptions, .schemas, .histories, .moments, .apply:
      break
    }
  }
}

extension ControlItem {
  /// The items that are made of nothing. They are saved as their places here, the others by numbers
  /// from 64 on.
  fileprivate static let simple: [ControlItem] = [
    .root, .places, .users, .searches, .explanations, .status, .documents, .suites,
    .declaredPlaces, .descriptions, .schemas, .histories, .moments, .apply,
  ]
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

  mutating func controlItem() throws -> ControlItem {
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
