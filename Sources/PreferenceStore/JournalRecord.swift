import PreferenceModel
import PropertyList
import SystemCalls

/// One record of the journal.
enum JournalRecord: Equatable {
  /// A changeset that was acknowledged.
  case change(Changeset)
  /// A changeset of one item, which made a string or data longer.
  case growth(Growth)
  /// The location's list contains every record up to the number.
  case checkpoint(Location, through: UInt64, FileIdentity?)
}

// The payload of a record, version 2, as PreferenceStore.docc/JournalFormat.md has it.

extension JournalRecord {
  func encoded() -> [UInt8] {
    var writer = ByteWriter()
    encode(into: &writer)
    return writer.bytes
  }

  func encode(into writer: inout ByteWriter) {
    switch self {
    case .change(let changeset):
      writer.append(1 as UInt8)
      writer.append(changeset.time.nanoseconds)
      writer.append(UInt32(changeset.items.count))
      for item in changeset.items {
        writer.append(item.location)
        writer.append(item.edit)
      }
    case .growth(let growth):
      writer.append(3 as UInt8)
      writer.append(growth.time.nanoseconds)
      writer.append(growth.location)
      writer.append(counted: growth.key.string.utf8)
      writer.append(UInt32(growth.base))
      writer.append(growth.isBare ? 1 : 0 as UInt8)
      writer.append(counted: growth.suffix)
    case .checkpoint(let location, let through, let identity):
      writer.append(2 as UInt8)
      writer.append(location)
      writer.append(through)
      writer.append(identity == nil ? 0 : 1 as UInt8)
      if let identity {
        writer.append(identity.size)
        writer.append(identity.modified.nanoseconds)
        writer.append(identity.inode)
      }
    }
  }

  /// nil where the payload is none of this version.
  init?(decoding payload: ArraySlice<UInt8>) {
    var reader = ByteReader(payload)
    guard let record = try? reader.record(), reader.isAtEnd else { return nil }
    self = record
  }
}

extension ByteWriter {
  fileprivate mutating func append(_ location: Location) {
    append(counted: location.place.rawValue.utf8)
    append(counted: location.domain.string.utf8)
  }

  fileprivate mutating func append(_ edit: Edit) {
    switch edit {
    case .set(let key, let value, let written):
      append(1 as UInt8)
      append(counted: key.string.utf8)
      if case .exact(let text) = written {
        append(1 as UInt8)
        append(counted: text)
      } else {
        append(0 as UInt8)
      }
      append(counted: Document.binary(value))
    case .remove(let key):
      append(2 as UInt8)
      append(counted: key.string.utf8)
    case .describe(let key, let description):
      append(5 as UInt8)
      append(counted: key.string.utf8)
      append((description.mode == nil ? 0 : 1) | (description.modified == nil ? 0 : 2) as UInt8)
      append(description.mode ?? 0)
      append(description.modified?.nanoseconds ?? 0)
    case .createDomain: append(3 as UInt8)
    case .removeDomain: append(4 as UInt8)
    }
  }
}

extension ByteReader {
  private struct Unknown: Error {}

  fileprivate mutating func record() throws -> JournalRecord {
    switch try number(UInt8.self) {
    case 1:
      let time = Timestamp(nanoseconds: try number())
      let count = try number(UInt32.self)
      var items: [Changeset.Item] = []
      for _ in 0..<count { items.append(Changeset.Item(try location(), try edit())) }
      return .change(Changeset(items, time: time))
    case 2: return .checkpoint(try location(), through: try number(), try identity())
    case 3:
      let time = Timestamp(nanoseconds: try number())
      let (location, key) = (try location(), Key(try string()))
      let base = Int(try number(UInt32.self))
      let isBare = try number(UInt8.self) == 1
      let suffix = Array(try counted())
      return .growth(
        Growth(location, key, time: time, base: base, suffix: suffix, isBare: isBare))
    default: throw Unknown()
    }
  }

  private mutating func string() throws -> String {
    guard let text = String(validating: try counted(), as: UTF8.self) else { throw Unknown() }
    return text
  }

  private mutating func location() throws -> Location {
    guard let place = Place(rawValue: try string()) else { throw Unknown() }
    return Location(place, DomainName(try string()))
  }

  private mutating func edit() throws -> Edit {
    switch try number(UInt8.self) {
    case 1:
      let key = Key(try string())
      let text: WrittenText =
        try number(UInt8.self) == 0 ? .canonical : .exact(Array(try counted()))
      return .set(key, try Document.read(Array(try counted())).value, text)
    case 2: return .remove(Key(try string()))
    case 3: return .createDomain
    case 4: return .removeDomain
    case 5:
      let key = Key(try string())
      let (has, mode, modified) = (
        try number(UInt8.self), try number(UInt32.self), Timestamp(nanoseconds: try number())
      )
      return .describe(
        key,
        Description(mode: has & 1 == 0 ? nil : mode, modified: has & 2 == 0 ? nil : modified))
    default: throw Unknown()
    }
  }

  private mutating func identity() throws -> FileIdentity? {
    guard try number(UInt8.self) == 1 else { return nil }
    return FileIdentity(
      size: try number(), modified: Timestamp(nanoseconds: try number()), inode: try number())
  }
}
