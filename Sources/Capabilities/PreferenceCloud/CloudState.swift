import PreferenceModel
import PropertyList

/// What one host knows of the cloud, and what it has not sent yet. It is saved whenever it changes
/// (`SavedCloud`), so that a host that ends at any moment goes on where it was.
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
    /// The value; nil if the key was removed.
    public var value: Value?
    /// When it was set.
    public var stamp: Stamp
    /// The changes with the same number are pushed as one transaction.
    public var batch: UInt64
    /// The stamps with which this set, and those of this host that it replaced, were pushed, oldest
    /// first. The server may have a record of each. They are the proof that a record is of this
    /// host: a copy of its state can have made one under its name.
    public var sent: [Stamp] = []

    /// How many of them are kept: one is added by each connection that ends without an answer.
    static let mostSent = 16
  }

  /// A value that lost a conflict: two hosts had set the key without knowledge of each other, and
  /// the stamp of this value was the earlier one. Also a set that an earlier account never got.
  public struct ReplacedValue: Equatable, Sendable {
    /// The number of the replaced value. Each host counts its own from 1 on.
    public var number: UInt64
    /// The key.
    public var key: CloudKey
    /// The value; nil if a removal lost.
    public var value: Value?
    /// When it was set, and by which host.
    public var stamp: Stamp
    /// The stamp of the value that won; after a change of account, one of this host.
    public var winner: Stamp

    /// Bytes that the value has, as a property list.
    var byteCount: Int { value.map { Document.binary($0).count } ?? 0 }
  }

  /// What the server has, as far as this host has heard.
  public internal(set) var known: [CloudKey: Known] = [:]
  /// What the server does not have yet.
  public internal(set) var pending: [CloudKey: Pending] = [:]
  /// The revision up to which this host has heard; 0 if it has never listed.
  public internal(set) var revision: Int64 = 0
  /// The values that lost here, oldest first.
  public internal(set) var replacedValues: [ReplacedValue] = []
  /// The number of the last replaced value.
  public internal(set) var lastReplacedValue: UInt64 = 0
  /// Whose values these are: the user's name at the server, the prefix, and what identifies the
  /// values under it; empty before the first list.
  public internal(set) var account = ""
  /// Bytes that the replaced values have, as property lists.
  private var replacedBytes = 0
  /// The server's clock when this host last heard of its records, in milliseconds since 1970; 0 if
  /// never.
  public internal(set) var heardAt: Int64 = 0
  /// The clock.
  public internal(set) var clock: HybridClock
  /// The number of the last batch.
  public internal(set) var lastBatch: UInt64 = 0

  /// How many replaced values are kept, and how many bytes their values may have together.
  static let mostReplacedValues = 10_000
  static let mostReplacedBytes = 32 << 20

  /// Creates the state of a host that has never heard of the cloud.
  public init(host: String) { clock = HybridClock(host: host) }

  /// Adds a replaced value, and drops the oldest ones if there are too many.
  mutating func add(_ replaced: ReplacedValue) {
    replacedValues.append(replaced)
    replacedBytes += replaced.byteCount
    while replacedValues.count > Self.mostReplacedValues || replacedBytes > Self.mostReplacedBytes,
      replacedValues.count > 1
    {
      replacedBytes -= replacedValues.removeFirst().byteCount
    }
  }

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
