import PreferenceModel
import PropertyList

/// A key of a domain in the cloud.
public struct CloudKey: Hashable, Sendable {
  /// The domain.
  public let domain: DomainName
  /// The key.
  public let key: Key

  /// Creates the key of a domain.
  public init(_ domain: DomainName, _ key: Key) { (self.domain, self.key) = (domain, key) }
}

extension CloudKey: CustomStringConvertible {
  /// For log lines, e.g. "com.example.editor TabWidth".
  public var description: String { "\(domain) \(key)" }
}

/// What the server keeps for a key: its value, or that it was removed, and who set it when.
public struct CloudRecord: Equatable, Sendable {
  /// The value; nil: the key was removed. Such a record is kept for 30 days, so that a host that was
  /// away learns of the removal.
  public let value: Value?
  /// When the key was set or removed, and by which host.
  public let stamp: Stamp
  /// The stamp of the record that it replaced; nil: there was none.
  public let replaced: Stamp?

  /// Creates a record.
  public init(value: Value?, stamp: Stamp, replaced: Stamp?) {
    (self.value, self.stamp, self.replaced) = (value, stamp, replaced)
  }

  /// Bytes that a record may have: a value of 1 MB, and what is kept with it.
  public static let largest = 1_100_000
}

// MARK: - Coding

extension CloudRecord {
  /// The version of the coding. A record of a later version is left alone.
  private static let version: Int64 = 1

  /// The record as a binary property list.
  public var bytes: [UInt8] {
    var root: ValueDictionary = [
      "version": .integer(WideInteger(Self.version)), "stamp": stamp.value,
    ]
    root["value"] = value
    root["replaced"] = replaced?.value
    return Document.binary(.dictionary(root))
  }

  /// Reads a record. Returns nil for bytes that are none, or of a later version.
  public init?(_ bytes: [UInt8]) {
    guard bytes.count <= Self.largest,
      case .dictionary(let root)? = try? Document.read(bytes).value,
      case .integer(let version)? = root["version"], version.signed == Self.version,
      let stamp = root["stamp"].flatMap({ Stamp($0) })
    else { return nil }
    self.init(
      value: root["value"], stamp: stamp, replaced: root["replaced"].flatMap { Stamp($0) })
  }
}

extension Stamp {
  /// The stamp as a property list: milliseconds, counter, host.
  var value: Value {
    .array([
      .integer(WideInteger(milliseconds)), .integer(WideInteger(UInt64(counter))), .string(host),
    ])
  }

  /// Reads a stamp; nil for anything else.
  init?(_ value: Value) {
    guard case .array(let parts) = value, parts.count == 3, case .integer(let time) = parts[0],
      case .integer(let count) = parts[1], case .string(let host) = parts[2],
      let milliseconds = time.signed, let number = count.unsigned,
      let counter = UInt32(exactly: number)
    else { return nil }
    self.init(milliseconds: milliseconds, counter: counter, host: host)
  }
}
