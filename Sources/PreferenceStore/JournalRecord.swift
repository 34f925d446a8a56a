import PreferenceModel
import PropertyList
import SystemCalls

/// One record of the journal.
indirect enum JournalRecord: Equatable {
  /// A changeset that was acknowledged.
  case change(Changeset)
  /// The location's list contains every record up to the number. The identity is the state that the
  /// list had then; it is for people who look at a journal, and the replay does not use it.
  case checkpoint(Location, through: UInt64, FileIdentity?)
  /// A changeset that a client asked for. The client asks again if it got no answer.
  case from(Origin, JournalRecord)
}

// The payload of a record, version 4; PreferenceStore.docc/JournalFormat.md describes it.

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
      writer.append(changeset)
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
    case .from(let origin, let record):
      writer.append(4 as UInt8)
      writer.append(origin.client)
      writer.append(origin.serial)
      record.encode(into: &writer)
    }
  }

  /// Decodes a payload of any version that can be read; nil where the bytes are not exactly one
  /// record.
  init?(decoding payload: ArraySlice<UInt8>) {
    var reader = ByteReader(payload)
    guard let record = try? reader.record(), reader.isAtEnd else { return nil }
    self = record
  }
}

extension ByteReader {
  /// Reads a record. The record inside of a request's (`from`) is none of a request.
  fileprivate mutating func record() throws -> JournalRecord {
    let kind = try number(UInt8.self)
    guard kind == 4 else { return try plainRecord(kind) }
    let origin = Origin(client: try number(), serial: try number())
    return .from(origin, try plainRecord(try number(UInt8.self)))
  }

  private mutating func plainRecord(_ kind: UInt8) throws -> JournalRecord {
    switch kind {
    case 1: return .change(try changeset())
    case 2: return .checkpoint(try location(), through: try number(), try identity())
    case 3: return .change(try growth())
    default: throw Unknown()
    }
  }

  /// Reads a splice at the end of a value as versions 1 to 3 have it.
  private mutating func growth() throws -> Changeset {
    let time = try timestamp()
    let (location, key) = (try location(), try key())
    let base = Int(try number(UInt32.self))
    let isBare = try number(UInt8.self) == 1
    let suffix = Array(try counted())
    guard
      let splice = Splice(
        base: base, offset: base, bytes: suffix, count: base + suffix.count, isBare: isBare)
    else { throw Unknown() }
    return Changeset([.init(location, .splice(key, splice))], time: time)
  }

  private mutating func identity() throws -> FileIdentity? {
    guard try number(UInt8.self) == 1 else { return nil }
    return FileIdentity(size: try number(), modified: try timestamp(), inode: try number())
  }
}
