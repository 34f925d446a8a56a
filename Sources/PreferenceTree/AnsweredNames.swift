import PreferenceModel
import PropertyList

/// The names that were answered as missing, or from another domain's list, and in which domains:
/// the kernel may remember those answers, so they are taken back when a value comes or goes.
/// Bounded: past the bound answers are given without a promise.
struct AnsweredNames {
  private var domains: [Key: Set<DomainName>] = [:]
  private var count = 0
  private let largest = 65536

  /// Remembers the answer; false where there is no room.
  mutating func note(_ path: KeyPath) -> Bool {
    if domains[path.key]?.contains(path.domain) == true { return true }
    guard count < largest else { return false }
    domains[path.key, default: []].insert(path.domain)
    count += 1
    return true
  }

  /// The domains in which the key was answered.
  subscript(key: Key) -> Set<DomainName> { domains[key] ?? [] }

  /// The domain is gone; the keys that were answered in it.
  mutating func forget(_ domain: DomainName) -> [Key] {
    let keys = domains.filter { $0.value.contains(domain) }.map(\.key)
    for key in keys { forget(KeyPath(domain: domain, key: key)) }
    return keys
  }

  /// The answer was taken back.
  mutating func forget(_ path: KeyPath) {
    guard domains[path.key]?.remove(path.domain) != nil else { return }
    count -= 1
    if domains[path.key]?.isEmpty == true { domains[path.key] = nil }
  }
}
