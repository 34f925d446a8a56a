import PreferenceModel
import PropertyList

/// What one host knows of the cloud, and what it has not sent yet. It is saved whenever it changes,
/// so that a host that ends at any moment goes on where it was.
public struct CloudState: Equatable, Sendable {
  /// A record as the server has it, and the revision of its last change.
  public struct Known: Equatable, Sendable {
    /// The record.
    public var record: CloudRecord
    /// etcd's mod_revision: a push is compared with it.
    public var revision: Int64

    /// Creates what is known of a key.
    public init(_ record: CloudRecord, revision: Int64) {
      (self.record, self.revision) = (record, revision)
    }
  }

  /// A set or removal of this host that the server does not have yet.
  public struct Pending: Equatable, Sendable {
    /// The value; nil: the key was removed.
    public var value: Value?
    /// When it was set.
    public var stamp: Stamp
    /// The changes with the same number are pushed as one transaction.
    public var batch: UInt64
  }

  /// A value that lost: another host had set the key without knowledge of it, or it.
  public struct Loser: Equatable, Sendable {
    /// The key.
    public var key: CloudKey
    /// The value; nil: a removal lost.
    public var value: Value?
    /// Who had set it, and when.
    public var stamp: Stamp
    /// Who won.
    public var winner: Stamp
  }

  /// What the server has, as far as this host has heard.
  public internal(set) var known: [CloudKey: Known] = [:]
  /// What the server does not have yet.
  public internal(set) var pending: [CloudKey: Pending] = [:]
  /// The revision up to which this host has heard; 0: it has never listed.
  public internal(set) var revision: Int64 = 0
  /// The values that lost here, oldest first.
  public internal(set) var losers: [Loser] = []
  /// The clock.
  public internal(set) var clock: HybridClock
  /// The number of the last batch.
  var lastBatch: UInt64 = 0

  /// How many losers are kept.
  static let mostLosers = 10_000

  /// Creates the state of a host that has never heard of the cloud.
  public init(host: String) { clock = HybridClock(host: host) }

  /// The value that the key has on this host; nil if it has none.
  public func value(_ key: CloudKey) -> Value? {
    if let pending = pending[key] { return pending.value }
    return known[key]?.record.value
  }

  /// The keys that have a value on this host.
  public var keys: [CloudKey] {
    Set(known.keys).union(pending.keys).filter { value($0) != nil }
  }
}

// MARK: - Coding

extension CloudState {
  /// The state as a binary property list.
  public var bytes: [UInt8] {
    let root: ValueDictionary = [
      "host": .string(clock.host), "revision": .integer(WideInteger(revision)),
      "clock": Stamp(milliseconds: clock.milliseconds, counter: clock.counter, host: clock.host)
        .value,
      "batch": .integer(WideInteger(lastBatch)),
      "known": .array(
        known.map { key, known in
          [
            .string(key.domain.string), .string(key.key.string),
            .integer(WideInteger(known.revision)), .data(known.record.bytes),
          ]
        }),
      "pending": .array(
        pending.map { key, pending in
          let record = CloudRecord(value: pending.value, stamp: pending.stamp, replaced: nil)
          return [
            .string(key.domain.string), .string(key.key.string),
            .integer(WideInteger(pending.batch)), .data(record.bytes),
          ]
        }),
      "losers": .array(
        losers.map { loser in
          let record = CloudRecord(value: loser.value, stamp: loser.stamp, replaced: loser.winner)
          return [
            .string(loser.key.domain.string), .string(loser.key.key.string), .data(record.bytes),
          ]
        }),
    ]
    return Document.binary(.dictionary(root))
  }

  /// Reads a state; nil for bytes that are none.
  public init?(_ bytes: [UInt8]) {
    guard case .dictionary(let root)? = try? Document.read(bytes).value,
      case .string(let host)? = root["host"], let clock = root["clock"].flatMap({ Stamp($0) }),
      let revision = root["revision"]?.signed, let batch = root["batch"]?.unsigned,
      case .array(let known)? = root["known"], case .array(let pending)? = root["pending"],
      case .array(let losers)? = root["losers"]
    else { return nil }
    self.init(host: host)
    self.clock = HybridClock(host: host, after: clock)
    (self.revision, lastBatch) = (revision, batch)
    for entry in known {
      guard let (key, parts) = entry.entry(4), let revision = parts[2].signed,
        let record = parts[3].record
      else { return nil }
      self.known[key] = Known(record, revision: revision)
    }
    for entry in pending {
      guard let (key, parts) = entry.entry(4), let batch = parts[2].unsigned,
        let record = parts[3].record
      else { return nil }
      self.pending[key] = Pending(value: record.value, stamp: record.stamp, batch: batch)
    }
    for entry in losers {
      guard let (key, parts) = entry.entry(3), let record = parts[2].record,
        let winner = record.replaced
      else { return nil }
      self.losers.append(
        Loser(key: key, value: record.value, stamp: record.stamp, winner: winner))
    }
  }
}

extension Value {
  fileprivate var signed: Int64? {
    if case .integer(let number) = self { number.signed } else { nil }
  }

  fileprivate var unsigned: UInt64? {
    if case .integer(let number) = self { number.unsigned } else { nil }
  }

  fileprivate var record: CloudRecord? {
    if case .data(let bytes) = self { CloudRecord(bytes) } else { nil }
  }

  /// The key and all parts of an entry of `CloudState.bytes`.
  fileprivate func entry(_ count: Int) -> (key: CloudKey, parts: [Value])? {
    guard case .array(let parts) = self, parts.count == count, case .string(let domain) = parts[0],
      case .string(let key) = parts[1]
    else { return nil }
    return (CloudKey(DomainName(domain), Key(key)), parts)
  }
}
