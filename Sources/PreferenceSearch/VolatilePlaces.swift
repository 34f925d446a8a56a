import PreferenceModel
import PropertyList
import Synchronization
import SystemCalls

/// The arguments of the process: one table for all domains, fixed.
struct ArgumentPlace: Sendable {
  let values: [Key: Value]
  let since: Timestamp

  func find(_ key: Key) -> StoredValue? {
    values[key].map { StoredValue($0, Metadata(text: nil, modified: since)) }
  }
}

/// Registered defaults: a table for each domain, gone with the process.
final class RegisteredPlace: Sendable {
  private struct Entry {
    var value: Value
    var modified: Timestamp
  }

  private let tables = Mutex<[DomainName: [Key: Entry]]>([:])

  /// Merges; of a key registered twice the last value counts.
  /// - Returns: the keys whose value changed.
  func register(_ defaults: [Key: Value], for domain: DomainName) -> [Key] {
    let now = Timestamp.now
    return tables.withLock { tables in
      let changed = defaults.filter { tables[domain]?[$0.key]?.value != $0.value }
      for (key, value) in changed {
        tables[domain, default: [:]][key] = Entry(value: value, modified: now)
      }
      return Array(changed.keys)
    }
  }

  func find(_ key: Key, in domain: DomainName) -> StoredValue? {
    tables.withLock { tables in
      tables[domain]?[key].map {
        StoredValue($0.value, Metadata(text: nil, modified: $0.modified))
      }
    }
  }

  func keys(of domain: DomainName) -> [Key] {
    tables.withLock { $0[domain].map { Array($0.keys) } ?? [] }
  }
}
