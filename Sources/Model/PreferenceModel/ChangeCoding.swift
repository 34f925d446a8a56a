import PropertyList
import SystemCalls

// Changes as bytes: the journal keeps them, and processes send them to each other. JournalFormat.md
// describes the layout of locations and edits.

extension ByteWriter {
  package mutating func append(_ text: String) { append(counted: text.utf8) }

  package mutating func append(_ location: Location) {
    append(location.place.rawValue)
    append(location.domain.string)
  }

  package mutating func append(_ edit: Edit) {
    switch edit {
    case .set(let key, let value, let written):
      append(1 as UInt8)
      append(key.string)
      append(written)
      append(counted: Document.binary(value))
    case .remove(let key):
      append(2 as UInt8)
      append(key.string)
    case .describe(let key, let description):
      append(5 as UInt8)
      append(key.string)
      append(description)
    case .splice(let key, let splice):
      append(6 as UInt8)
      append(key.string)
      append(splice)
    case .createDomain: append(3 as UInt8)
    case .removeDomain: append(4 as UInt8)
    }
  }

  package mutating func append(_ written: WrittenText) {
    switch written {
    case .canonical: append(0 as UInt8)
    case .exact(let text):
      append(1 as UInt8)
      append(counted: text)
    case .unknown: append(2 as UInt8)
    }
  }

  package mutating func append(_ splice: Splice) {
    append(UInt32(splice.base))
    append(UInt32(splice.offset))
    append(UInt32(splice.count))
    append(splice.isBare ? 1 : 0 as UInt8)
    append(counted: splice.bytes)
  }

  package mutating func append(_ description: Description) {
    append((description.mode == nil ? 0 : 1) | (description.modified == nil ? 0 : 2) as UInt8)
    append(description.mode ?? 0)
    append(description.modified?.nanoseconds ?? 0)
  }

  /// Appends the time, the number of items and the items. Version and invalidated locations are
  /// left out.
  package mutating func append(_ changeset: Changeset) {
    append(changeset.time.nanoseconds)
    append(UInt32(changeset.items.count))
    for item in changeset.items {
      append(item.location)
      append(item.edit)
    }
  }
}

extension ByteReader {
  /// The bytes are not a valid encoding of what is read.
  package struct Unknown: Error {
    package init() {}
  }

  package mutating func string() throws -> String {
    guard let text = String(utf8: try counted()) else { throw Unknown() }
    return text
  }

  package mutating func key() throws -> Key { Key(try string()) }

  package mutating func domain() throws -> DomainName { DomainName(try string()) }

  package mutating func location() throws -> Location {
    guard let place = Place(rawValue: try string()) else { throw Unknown() }
    return Location(place, try domain())
  }

  package mutating func timestamp() throws -> Timestamp {
    Timestamp(nanoseconds: try number())
  }

  package mutating func value(limits: Limits = .standard) throws -> Value {
    try Document.read(Array(try counted()), limits: limits).value
  }

  package mutating func writtenText() throws -> WrittenText {
    switch try number(UInt8.self) {
    case 0: return .canonical
    case 1: return .exact(Array(try counted()))
    case 2: return .unknown
    default: throw Unknown()
    }
  }

  package mutating func splice() throws -> Splice {
    let (base, offset) = (Int(try number(UInt32.self)), Int(try number(UInt32.self)))
    let (count, isBare) = (Int(try number(UInt32.self)), try number(UInt8.self) == 1)
    let bytes = Array(try counted())
    guard
      let splice = Splice(base: base, offset: offset, bytes: bytes, count: count, isBare: isBare)
    else { throw Unknown() }
    return splice
  }

  package mutating func description() throws -> Description {
    let (has, mode) = (try number(UInt8.self), try number(UInt32.self))
    let modified = try timestamp()
    return Description(mode: has & 1 == 0 ? nil : mode, modified: has & 2 == 0 ? nil : modified)
  }

  package mutating func edit(limits: Limits = .standard) throws -> Edit {
    switch try number(UInt8.self) {
    case 1:
      let (key, text) = (try key(), try writtenText())
      return .set(key, try value(limits: limits), text)
    case 2: return .remove(try key())
    case 3: return .createDomain
    case 4: return .removeDomain
    case 5: return .describe(try key(), try description())
    case 6: return .splice(try key(), try splice())
    default: throw Unknown()
    }
  }

  package mutating func changeset() throws -> Changeset {
    let time = try timestamp()
    let count = try number(UInt32.self)
    var items: [Changeset.Item] = []
    for _ in 0..<count { items.append(Changeset.Item(try location(), try edit())) }
    return Changeset(items, time: time)
  }
}
