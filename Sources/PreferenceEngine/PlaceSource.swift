import PreferenceModel
import PreferenceStore
import PropertyList
import Synchronization
import SystemCalls

/// One kind of place, as the search asks it. The loop over the search list knows nothing else.
protocol PlaceSource: Sendable {
  /// The key's value here.
  func find(
    _ key: Key, in domain: DomainName
  ) throws(EngineError) -> StoredValue?

  /// The keys of the domain here.
  func keys(of domain: DomainName) throws(EngineError) -> [Key]
}

/// A place whose domains are property lists.
struct StoredPlace: PlaceSource {
  let place: Place
  let store: Store

  func find(
    _ key: Key, in domain: DomainName
  ) throws(EngineError) -> StoredValue? {
    try store.find(key, at: Location(place, domain))
  }

  func keys(of domain: DomainName) throws(EngineError) -> [Key] {
    try store.snapshot(of: Location(place, domain)).keys
  }
}

/// The arguments of the process: one table for all domains, fixed.
struct ArgumentPlace: PlaceSource {
  let values: [Key: Value]
  let since: Timestamp

  func find(
    _ key: Key, in domain: DomainName
  ) -> StoredValue? {
    values[key].map { StoredValue($0, Metadata(text: nil, modified: since)) }
  }

  func keys(of domain: DomainName) -> [Key] { Array(values.keys) }
}

/// Registered defaults: a table for each domain, gone with the process.
final class RegisteredPlace: PlaceSource {
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

  func find(
    _ key: Key, in domain: DomainName
  ) -> StoredValue? {
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
