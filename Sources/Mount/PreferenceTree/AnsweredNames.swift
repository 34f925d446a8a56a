import PreferenceModel
import PropertyList

/// The cached look-ups whose answer a change outside the domain can make wrong: names that were
/// missing, and names whose value can be shadowed by the global domain, or comes from it.
///
/// The kernel caches such an answer only if it is noted here, so that the tree can invalidate it
/// when a value comes or goes. The number of notes is bounded; past the bound the tree answers
/// without permission to cache.
struct AnsweredNames {
  private var domains: [Key: Set<DomainName>] = [:]
  private var count = 0
  private let largest = 65536
  private let changes: TreeChanges

  /// - Parameter changes: told of names that are noted or forgotten.
  init(_ changes: TreeChanges) { self.changes = changes }

  /// Notes that the name was answered.
  /// - Returns: whether the kernel may cache the answer; false if there is no room for the note.
  mutating func note(_ path: KeyPath) -> Bool {
    guard count < largest else { return domains[path.key]?.contains(path.domain) == true }
    guard domains[path.key, default: []].insert(path.domain).inserted else { return true }
    count += 1
    changes.note(EntryName(path))
    return true
  }

  /// Every noted name.
  var all: [KeyPath] {
    domains.flatMap { key, domains in domains.map { KeyPath(domain: $0, key: key) } }
  }

  /// The domains in which the key was answered and not forgotten since.
  subscript(key: Key) -> Set<DomainName> { domains[key] ?? [] }

  /// Forgets every answer in the domains.
  /// - Returns: their names.
  mutating func forget(_ those: Set<DomainName>) -> [KeyPath] {
    let paths = domains.flatMap { key, domains in
      domains.intersection(those).map { KeyPath(domain: $0, key: key) }
    }
    for path in paths { forget(path) }
    return paths
  }

  /// Forgets an answer that the kernel no longer caches.
  mutating func forget(_ path: KeyPath) {
    guard domains[path.key]?.remove(path.domain) != nil else { return }
    count -= 1
    changes.note(EntryName(path))
    if domains[path.key]?.isEmpty == true { domains[path.key] = nil }
  }
}
