import PreferenceModel
import PropertyList
import Synchronization
import SystemCalls

/// A place that ends with the process: arguments, or registered defaults. It has a table for each
/// domain.
///
/// Threads: any. One lock, held briefly.
final class VolatilePlace: Sendable {
  let place: Place
  /// How often anything has changed.
  let changes = Atomic<UInt64>(0)
  private let tables = Mutex<[DomainName: LocationSnapshot]>([:])

  init(_ place: Place) { self.place = place }

  /// Sets the keys of the domain to these values.
  /// - Parameter replacing: whether the domain's other keys are removed.
  /// - Returns: the edits that changed something.
  func set(
    _ values: ValueDictionary, for domain: DomainName, replacing: Bool = false
  ) -> Changeset {
    let gone = replacing ? keys(of: domain).filter { values[$0] == nil } : []
    return apply(
      gone.map(Edit.remove) + values.map { .set($0.key, $0.value, .unknown) }, to: domain)
  }

  /// Applies the edits to the domain, in one step for readers. A domain whose last edit removes it
  /// has no table.
  /// - Returns: the edits that changed something.
  func apply(_ edits: [Edit], to domain: DomainName) -> Changeset {
    let (now, location) = (Timestamp.now, Location(place, domain))
    return tables.withLock { tables in
      var changeset = Changeset(time: now)
      for edit in edits {
        var table = tables[domain] ?? LocationSnapshot()
        guard let item = Changeset.Item(edit, on: table, location) else { continue }
        table.apply(item.edit, time: now)
        tables[domain] = table
        changeset.items.append(item)
      }
      if tables[domain]?.exists == false { tables[domain] = nil }
      if !changeset.isEmpty { changes.add(1, ordering: .releasing) }
      return changeset
    }
  }

  /// The edits that make these tables from empty ones.
  var items: [Changeset.Item] {
    tables.withLock { tables in
      tables.flatMap { domain, table in
        LocationSnapshot().edits(to: table).map { Changeset.Item(Location(place, domain), $0) }
      }
    }
  }

  /// The value of a key; nil if the domain's table does not have it.
  func find(_ key: Key, in domain: DomainName) -> StoredValue? {
    tables.withLock { $0[domain]?.entry(key) }
  }

  /// The keys and values of a domain.
  func values(of domain: DomainName) -> ValueDictionary {
    tables.withLock { $0[domain]?.values ?? [:] }
  }

  /// The keys of a domain, in no order.
  func keys(of domain: DomainName) -> [Key] { tables.withLock { $0[domain]?.keys ?? [] } }

  /// The domains that have a table.
  var domains: Set<DomainName> { tables.withLock { Set($0.keys) } }

  /// When the domain last changed; nil if it has no table.
  func modified(_ domain: DomainName) -> Timestamp? {
    tables.withLock { $0[domain]?.lastModified }
  }
}
