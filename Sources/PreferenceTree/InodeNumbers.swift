import PreferenceModel
import PropertyList
import SystemCalls

/// The inode numbers of domains and keys (`st_ino`). A number follows from the name, so that it is
/// the same in every mount, except for names that were renamed or made anew in this one.
struct InodeNumbers: Sendable {
  /// The hash of what comes before each name, so that trees of one mount have different numbers;
  /// nothing does in the tree at the mount point.
  private let prefix: UInt64
  /// The number before the first one that does not follow from a name.
  private let base: UInt64
  /// The number of the root.
  let root: UInt64
  /// The numbers that do not follow from the names.
  var keys = TrackedDictionary<KeyPath, UInt64>()
  var domains = TrackedDictionary<DomainName, UInt64>()
  /// How many numbers that follow from no name were given.
  var last: UInt64 = 0

  init(_ position: TreePosition) {
    prefix = StableHash.of(position.number == 0 ? [] : Array(position.path.utf8) + [0])
    base = position.number << 40 + 1 << 32
    root = position.rootInode
  }

  /// Whether numbers have changed that do not follow from names.
  var hasChanges: Bool { keys.hasChanges || domains.hasChanges }

  /// Returns a number that no file of this mount has had.
  mutating func next() -> UInt64 {
    last += 1
    return base + last
  }

  subscript(path: KeyPath) -> UInt64 {
    get { keys[path] ?? ofName(path) }
    set { keys[path] = newValue }
  }

  /// The number that follows from the name of a key.
  func ofName(_ path: KeyPath) -> UInt64 {
    let domain = StableHash.of(path.domain.string.utf8, after: prefix)
    let separated = StableHash.of(CollectionOfOne(0), after: domain)
    return StableHash.of(path.key.string.utf8, after: separated) >> 2 | 1 << 61
  }

  subscript(domain: DomainName) -> UInt64 {
    domains[domain] ?? StableHash.of(domain.string.utf8, after: prefix) | 1 << 62
  }

  mutating func renew(_ path: KeyPath) { keys[path] = next() }

  mutating func rename(_ old: DomainName, to new: DomainName) {
    domains[new] = self[old]
    domains[old] = next()
  }
}
