import PreferenceModel

/// The values that a change removed, as far as they are known; of those of several places the one
/// that precedes the others in the search list.
struct RemovedValues {
  private var values: [KeyPath: (rank: Int, stored: StoredValue)] = [:]
  /// The domains that were removed as a whole, from each place: the first in the search list first.
  private var domains: [DomainName: [(rank: Int, snapshot: LocationSnapshot)]] = [:]

  /// Collects them. Cost: a look at each item.
  init(of changeset: Changeset) {
    for item in changeset.items {
      let domain = item.location.domain
      switch (item.edit, item.before) {
      case (.removeDomain, .domain(let snapshot)):
        domains[domain, default: []].append((Self.rank(item), snapshot))
      case (.remove(let key), .value(let stored)):
        let (path, rank) = (KeyPath(domain: domain, key: key), Self.rank(item))
        if values[path].map({ rank < $0.rank }) ?? true { values[path] = (rank, stored) }
      default: break
      }
    }
    for name in domains.keys { domains[name]?.sort { $0.rank < $1.rank } }
  }

  private static func rank(_ item: Changeset.Item) -> Int {
    SearchList.persistentPlaces.firstIndex(of: item.location.place) ?? .max
  }

  subscript(path: KeyPath) -> StoredValue? {
    if let value = values[path] { return value.stored }
    return domains[path.domain]?.lazy.compactMap { $0.snapshot.entry(path.key) }.first
  }
}
