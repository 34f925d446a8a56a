import Glibc
import PreferenceModel
import PropertyList
import SystemCalls

/// What is kept about the keys of one list beside the list: the exact bytes last written, the
/// modification times, the modes, and when time or mode were set; when the domain was made, if that
/// was without keys; and this owner's changes that other owners may not have seen (`ListOwners`). It
/// is a binary list in the state directory, replaced as a whole.
///
/// It never decides what a value is: a text is used only if reading it gives the value that the
/// list holds. So a lost or stale file costs spelling, times and modes, and that the domain stays
/// when its last key goes; on several machines, also changes that another owner has overwritten
/// without having seen them; nothing else.
struct MetadataFile {
  let path: String

  struct Contents {
    /// The state of the list that this file was written for; nil if there was no list.
    var identity: FileIdentity?
    /// The modification time of keys that have none of their own.
    var modified: Timestamp
    var keys: [Key: Metadata]
    /// `LocationSnapshot.made`.
    var made: Timestamp?
    /// `ListOwners`; nil if there is nothing to keep.
    var owners: Value?
  }

  /// Reads the file; nil where there is none, or it cannot be read.
  func read() -> Contents? {
    guard let bytes = try? Files.contents(path, limit: 1 << 30),
      case .dictionary(let root)? = try? Document.read(bytes).value,
      let modified = root["modified"]?.timestamp, case .array(let keys)? = root["keys"],
      case .data(let times)? = root["times"], case .dictionary(let texts)? = root["texts"],
      times.count == keys.count * 8
    else { return nil }
    guard let table = Self.table(keys, times) else { return nil }
    var contents = Contents(
      identity: root["identity"].flatMap { FileIdentity($0) }, modified: modified, keys: table,
      made: root["made"]?.timestamp, owners: root["owners"])
    for case (let key, .data(let text)) in texts { contents.keys[key]?.text = text }
    if case .dictionary(let modes)? = root["modes"] {
      for case (let key, .integer(let mode)) in modes {
        contents.keys[key]?.mode = mode.unsigned.map { UInt32(truncatingIfNeeded: $0) }
      }
    }
    if case .dictionary(let changes)? = root["changes"] {
      for (key, time) in changes { contents.keys[key]?.changed = time.timestamp }
    }
    return contents
  }

  /// Returns the keys with their times; nil where the file is damaged.
  private static func table(_ keys: [Value], _ times: [UInt8]) -> [Key: Metadata]? {
    var reader = ByteReader(times[...])
    var table = [Key: Metadata](minimumCapacity: keys.count)
    for key in keys {
      guard case .string(let name) = key, let time = try? reader.number(Int64.self) else {
        return nil
      }
      table[Key(name)] = Metadata(text: nil, modified: Timestamp(nanoseconds: time))
    }
    return table.count == keys.count ? table : nil
  }

  /// Replaces the file. It holds the keys, their times in the same order as 64-bit numbers, the
  /// texts and modes of the keys that have one, and when a key was last changed, if that is not its
  /// time.
  func write(_ contents: Contents) throws(SystemError) {
    var times = ByteWriter()
    var keys: [Value] = []
    var texts: ValueDictionary = [:]
    var modes: ValueDictionary = [:]
    var changes: ValueDictionary = [:]
    for (key, metadata) in contents.keys {
      keys.append(.string(key.string))
      times.append(metadata.modified.nanoseconds)
      if let text = metadata.text { texts[key] = .data(text) }
      if let mode = metadata.mode { modes[key] = .integer(WideInteger(UInt64(mode))) }
      if let changed = metadata.changed { changes[key] = changed.value }
    }
    var root: ValueDictionary = [
      "modified": contents.modified.value, "keys": .array(keys), "times": .data(times.bytes),
      "texts": .dictionary(texts), "modes": .dictionary(modes),
    ]
    root["identity"] = contents.identity?.value
    // Most lists have none of these. Versions that do not know them ignore them.
    root["made"] = contents.made?.value
    root["owners"] = contents.owners
    if !changes.isEmpty { root["changes"] = .dictionary(changes) }
    try Files.makeDirectories(Files.parent(of: path), mode: 0o700)
    let bytes = Document.binary(.dictionary(root))
    _ = try ListFile(path: path).replace(with: bytes, mode: 0o600) { _ in }
  }

  /// Removes the file, if there is one.
  func remove() throws(SystemError) { try Files.remove(path) }
}

extension Timestamp {
  var value: Value { .integer(WideInteger(nanoseconds)) }
}

extension Value {
  var timestamp: Timestamp? { signed.map { Timestamp(nanoseconds: $0) } }
}

extension FileIdentity {
  var value: Value {
    .array([
      .integer(WideInteger(size)), modified.value, .integer(WideInteger(inode)),
    ])
  }

  init?(_ value: Value) {
    guard case .array(let items) = value, items.count == 3, let size = items[0].signed,
      let modified = items[1].timestamp, case .integer(let inode) = items[2],
      let number = inode.unsigned
    else { return nil }
    self.init(size: size, modified: modified, inode: number)
  }
}
