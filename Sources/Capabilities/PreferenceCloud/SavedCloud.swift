import PreferenceModel
import PropertyList

/// A `CloudState` as it is saved: property lists, one for each key that the host knows, one for
/// each replaced value, and one for the rest. So a change of one key is saved without the others.
public struct SavedCloud: Equatable, Sendable {
  /// What does not belong to one key; nil if nothing was ever saved.
  public var header: Value?
  /// What is known of each key.
  public var entries: [CloudKey: Value] = [:]
  /// The replaced values, by their numbers.
  public var replacedValues: [UInt64: Value] = [:]

  /// Creates an empty state.
  public init() {}

  /// What is saved after a change of the state.
  public struct Change: Equatable, Sendable {
    /// The header.
    public let header: Value
    /// Entries that are written, or deleted (nil).
    public let entries: [CloudKey: Value?]
    /// Replaced values that are written, or deleted (nil).
    public let replacedValues: [UInt64: Value?]
  }

  /// Applies a change, for a host that keeps the state in memory.
  public mutating func apply(_ change: Change) {
    header = change.header
    for (key, value) in change.entries { entries[key] = value }
    for (number, value) in change.replacedValues { replacedValues[number] = value }
  }
}

// MARK: - Writing

extension CloudState {
  /// What is saved beside entries and replaced values.
  var header: Value {
    [
      "host": .string(clock.host), "revision": .integer(WideInteger(revision)),
      "clock": clock.latest.value,
      "batch": .integer(WideInteger(lastBatch)), "losers": .integer(WideInteger(lastReplacedValue)),
      "account": .string(account), "heard": .integer(WideInteger(heardAt)),
      "pending": .integer(WideInteger(UInt64(pending.count))),
    ]
  }

  /// What is saved of a key; nil means nothing.
  func entry(_ key: CloudKey) -> Value? {
    var entry: ValueDictionary = [:]
    if let known = known[key] {
      entry["known"] = .data(known.record.bytes)
      entry["revision"] = .integer(WideInteger(known.revision))
    }
    if let pending = pending[key] {
      let record = CloudRecord(value: pending.value, stamp: pending.stamp, replaced: nil)
      entry["pending"] = .data(record.bytes)
      entry["batch"] = .integer(WideInteger(pending.batch))
      if !pending.sent.isEmpty { entry["sent"] = .array(pending.sent.map(\.value)) }
    }
    return entry.isEmpty ? nil : .dictionary(entry)
  }
}

extension CloudState.ReplacedValue {
  /// The replaced value as it is saved.
  var saved: Value {
    let record = CloudRecord(value: value, stamp: stamp, replaced: winner)
    return [
      "domain": .string(key.domain.string), "key": .string(key.key.string),
      "record": .data(record.bytes),
    ]
  }

  /// Reads a replaced value; nil for anything else.
  public init?(_ number: UInt64, _ saved: Value) {
    guard case .dictionary(let entry) = saved, case .string(let domain)? = entry["domain"],
      case .string(let key)? = entry["key"], let record = entry["record"]?.record,
      let winner = record.replaced
    else { return nil }
    self.init(
      number: number, key: CloudKey(DomainName(domain), Key(key)), value: record.value,
      stamp: record.stamp, winner: winner)
  }
}

// MARK: - Reading

extension CloudState {
  /// Reads a state. What cannot be read is left out: it is heard of again from the server, and the
  /// values of the host are compared with what is there.
  /// - Parameter host: the name of this host. Where a different host has saved the state, because
  ///   the directory was copied, that host's stamps stay.
  public init(_ saved: SavedCloud, host: String) {
    self.init(host: host)
    guard case .dictionary(let header)? = saved.header,
      let clock = header["clock"].flatMap({ Stamp($0) }), let revision = header["revision"]?.signed,
      let batch = header["batch"]?.unsigned, let replacedValues = header["losers"]?.unsigned,
      case .string(let account)? = header["account"]
    else { return }
    self.clock = HybridClock(host: host, after: clock)
    (self.revision, lastBatch, lastReplacedValue, self.account) = (
      revision, batch, replacedValues, account
    )
    for case (let key, .dictionary(let entry)) in saved.entries {
      if let record = entry["known"]?.record, let revision = entry["revision"]?.signed {
        known[key] = Known(record, revision: revision)
      }
      if let record = entry["pending"]?.record, let batch = entry["batch"]?.unsigned {
        pending[key] = Pending(
          value: record.value, stamp: record.stamp, batch: batch, sent: entry["sent"].stamps)
      }
    }
    heardAt = header["heard"]?.signed ?? 0
    for replaced in saved.replacedValues.compactMap({ ReplacedValue($0, $1) }).sorted(by: {
      $0.number < $1.number
    }) {
      add(replaced)
    }
  }
}

extension Value? {
  /// The stamps of an array; none for anything else.
  fileprivate var stamps: [Stamp] {
    guard case .array(let items)? = self else { return [] }
    return items.suffix(CloudState.Pending.mostSent).compactMap { Stamp($0) }
  }
}

extension Value {
  fileprivate var unsigned: UInt64? {
    if case .integer(let number) = self { number.unsigned } else { nil }
  }

  fileprivate var record: CloudRecord? {
    if case .data(let bytes) = self { CloudRecord(bytes) } else { nil }
  }
}
