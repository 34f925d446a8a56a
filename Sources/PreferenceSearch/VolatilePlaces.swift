import PreferenceModel
import PropertyList
import Synchronization
import SystemCalls

/// A place that is gone with the process: arguments, or registered defaults. It has a table for
/// each domain.
///
/// Threads: any. One lock, held briefly.
final class VolatilePlace: Sendable {
  let place: Place
  private let tables = Mutex<[DomainName: [Key: StoredValue]]>([:])

  init(_ place: Place) { self.place = place }

  /// Sets the keys of the domain to these values.
  /// - Parameter replacing: whether the domain's other keys are removed.
  /// - Returns: the edits that changed something.
  func set(
    _ values: ValueDictionary, for domain: DomainName, replacing: Bool = false
  ) -> Changeset {
    let (now, location) = (Timestamp.now, Location(place, domain))
    return tables.withLock { tables in
      let old = tables[domain] ?? [:]
      let gone = replacing ? old.keys.filter { values[$0] == nil } : []
      let changed = values.filter { old[$0.key]?.value != $0.value }
      for key in gone { tables[domain]?[key] = nil }
      for (key, value) in changed {
        tables[domain, default: [:]][key] = StoredValue(value, Metadata(text: nil, modified: now))
      }
      let edits = gone.map(Edit.remove) + changed.map { Edit.set($0.key, $0.value, .unknown) }
      return Changeset(edits.map { Changeset.Item(location, $0) }, time: now)
    }
  }

  func find(_ key: Key, in domain: DomainName) -> StoredValue? {
    tables.withLock { $0[domain]?[key] }
  }

  func values(of domain: DomainName) -> ValueDictionary {
    tables.withLock { ValueDictionary($0[domain] ?? [:]) }
  }

  func keys(of domain: DomainName) -> [Key] {
    tables.withLock { $0[domain].map { Array($0.keys) } ?? [] }
  }
}
