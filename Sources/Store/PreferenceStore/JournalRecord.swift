import PreferenceModel
import PropertyList
import SystemCalls

enum JournalRecord: Equatable {
  /// A changeset that was acknowledged; the request of a client that it carries out, which asks
  /// again if it got no answer; and who made it (nil if the history has the change already, or it
  /// is not known), for a history that did not get the change before its owner was killed.
  case change(Changeset, from: Origin? = nil, by: ChangeSource? = nil)
  /// The location's list contains every record up to the number. The identity is the state that the
  /// list had then; it is for people who look at a journal, and the replay does not use it.
  case checkpoint(Location, through: UInt64, FileIdentity?)
}

// The payload of a record, version 5; PreferenceStore.docc/JournalFormat.md describes it.

extension JournalRecord {
  func encoded() -> [UInt8] {
    var writer = ByteWriter()
    encode(into: &writer)
    return writer.bytes
  }

  func encode(into writer: inout ByteWriter) {
    switch self {
    case .change(let changeset, let origin, let source):
      if let origin {
        writer.append(4 as UInt8)
        writer.append(origin.client)
        writer.append(origin.serial)
      }
      if let source {
        writer.append(5 as UInt8)
        writer.append(source)
        if !source.because.isEmpty {
          writer.append(6 as UInt8)
          writer.append(counted: source.because.utf8)
        }
      }
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
  fileprivate mutating func record() throws -> JournalRecord {
    var kind = try number(UInt8.self)
    var origin: Origin?
    if kind == 4 {
      origin = Origin(client: try number(), serial: try number())
      kind = try number()
    }
    var source: ChangeSource?
    if kind == 5 {
      source = try changeSource()
      kind = try number()
      if kind == 6 {
        source?.because = String(decoding: try counted(), as: UTF8.self)
        kind = try number()
      }
    }
    switch kind {
    case 1: return .change(try changeset(), from: origin, by: source)
    case 2 where origin == nil && source == nil:
      return .checkpoint(try location(), through: try number(), try identity())
    case 3: return .change(try growth(), from: origin)
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
