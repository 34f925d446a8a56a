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
  /// The value; nil if the key was removed. Such a record is kept for 30 days, so that a host that
  /// was away learns of the removal.
  public let value: Value?
  /// When the key was set or removed, and by which host.
  public let stamp: Stamp
  /// The stamp of the record that it replaced; nil if there was none.
  public let replaced: Stamp?
  /// The stamps of the records that it was made with knowledge of, the latest of each host, the
  /// last one first; nil means the server compares revisions, which proves the same.
  public let ancestors: [Stamp]?

  /// How many hosts they are of. A record of an earlier one counts as one that was not known.
  static let mostAncestors = 16

  /// Creates a record.
  public init(value: Value?, stamp: Stamp, replaced: Stamp?, ancestors: [Stamp]? = nil) {
    (self.value, self.stamp, self.replaced) = (value, stamp, replaced)
    self.ancestors = ancestors
  }

  /// The ancestors of a record that replaces this one.
  var nextAncestors: [Stamp] {
    let others = (ancestors ?? []).filter { $0.host != stamp.host }
    return [stamp] + others.prefix(Self.mostAncestors - 1)
  }

  /// Whether the record was made with knowledge of the one with that stamp, as far as it says.
  func knows(_ stamp: Stamp) -> Bool {
    if replaced == stamp { return true }
    return ancestors?.contains { $0.host == stamp.host && $0 >= stamp } ?? false
  }

  /// Whether it wins over a record that it does not know of, where no server has compared them.
  func overtakes(_ other: CloudRecord) -> Bool {
    ancestors != nil && other.stamp <= stamp && other.value != value && !knows(other.stamp)
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
    var root = frame
    root["value"] = value
    return Document.binary(.dictionary(root))
  }

  /// The record with its value sealed; nil where that fails.
  /// - Parameter name: the name that the server has for the key. The value cannot be opened under
  ///   another name, or with another stamp.
  func bytes(sealedBy sealer: any ValueSealer, name: [UInt8]) -> [UInt8]? {
    var root = frame
    if let value {
      let context = Self.context(name, stamp)
      guard let sealed = sealer.seal(Document.binary(value), context: context) else { return nil }
      root["sealed"] = .data(sealed)
    }
    return Document.binary(.dictionary(root))
  }

  /// What a sealed value belongs to.
  private static func context(_ name: [UInt8], _ stamp: Stamp) -> [UInt8] {
    Array("\(stamp.milliseconds) \(stamp.counter) \(stamp.host) ".utf8) + name
  }

  /// Everything but the value.
  private var frame: ValueDictionary {
    var root: ValueDictionary = [
      "version": .integer(WideInteger(Self.version)), "stamp": stamp.value,
    ]
    root["replaced"] = replaced?.value
    root["ancestors"] = ancestors.map { .array($0.map(\.value)) }
    return root
  }

  /// Reads a record. Returns nil for bytes that are none, of a later version, or sealed with
  /// another key or for another name. With a sealer, values that are not sealed are read too: they
  /// are from the time before there was a key.
  public init?(_ bytes: [UInt8], _ seal: (sealer: any ValueSealer, name: [UInt8])? = nil) {
    guard bytes.count <= Self.largest,
      case .dictionary(let root)? = try? Document.read(bytes).value,
      case .integer(let version)? = root["version"], version.signed == Self.version,
      let stamp = root["stamp"].flatMap({ Stamp($0) })
    else { return nil }
    var value = root["value"]
    if let sealed = root["sealed"] {
      guard case .data(let bytes) = sealed, let seal,
        let opened = seal.sealer.open(bytes, context: Self.context(seal.name, stamp)),
        let found = try? Document.read(opened).value
      else { return nil }
      value = found
    }
    var ancestors: [Stamp]?
    if case .array(let stamps)? = root["ancestors"] {
      ancestors = stamps.prefix(Self.mostAncestors).compactMap { Stamp($0) }
    }
    self.init(
      value: value, stamp: stamp, replaced: root["replaced"].flatMap { Stamp($0) },
      ancestors: ancestors)
  }
}

/// Seals values, so that the server cannot read them.
public protocol ValueSealer: Sendable {
  /// The sealed bytes, which can be opened with the same context alone; nil where there is no
  /// memory.
  func seal(_ bytes: [UInt8], context: [UInt8]) -> [UInt8]?

  /// The bytes that were sealed; nil where they were sealed with another key or context, or have
  /// been changed.
  func open(_ bytes: [UInt8], context: [UInt8]) -> [UInt8]?
}

extension Stamp {
  /// The stamp as a property list: milliseconds, counter, host.
  package var value: Value {
    .array([
      .integer(WideInteger(milliseconds)), .integer(WideInteger(UInt64(counter))), .string(host),
    ])
  }

  /// Reads a stamp; nil for anything else.
  package init?(_ value: Value) {
    guard case .array(let parts) = value, parts.count == 3, case .integer(let time) = parts[0],
      case .integer(let count) = parts[1], case .string(let host) = parts[2],
      let milliseconds = time.signed, let number = count.unsigned,
      let counter = UInt32(exactly: number)
    else { return nil }
    self.init(milliseconds: milliseconds, counter: counter, host: host)
  }
}
