import PreferenceModel
import PropertyList
import Synchronization
import SystemCalls

/// The inode numbers of domains and keys (`st_ino`). A number follows from the name, so that it is
/// the same in every mount, except for names that were renamed or made anew in this one. In the
/// tree at the mount point it is below 2^32 while such numbers last, because stat(2) and readdir(3)
/// of 32-bit programs without large-file support fail with EOVERFLOW for larger ones.
struct InodeNumbers: Sendable {
  /// The hash of what comes before each name, so that trees of one mount have different numbers;
  /// nothing does in the tree at the mount point.
  private let prefix: UInt64
  /// The numbers below 2^32 that follow from names; nil if there are none.
  private let small: SmallNumbers?
  /// The number before the first large one that does not follow from a name.
  private let base: UInt64
  let root: UInt64
  /// The numbers that do not follow from the names.
  var own: [EntryName: UInt64] = [:]
  /// How many numbers that follow from no name were given.
  var last: UInt64 = 0

  init(_ position: TreePosition) {
    small = position.number == 0 ? SmallNumbers() : nil
    prefix = StableHash.of(position.number == 0 ? [] : Array(position.path.utf8) + [0])
    base = position.number << 40 + 1 << 32
    root = position.rootInode
  }

  /// Returns a number that no file of this mount has had.
  mutating func next() -> UInt64 {
    last += 1
    // Those of names begin at 2^31, and the root has 1.
    return small != nil && last < 1 << 31 - 1 ? last + 1 : base + last
  }

  subscript(path: KeyPath) -> UInt64 { own[EntryName(path)] ?? ofName(path) }

  /// The number that follows from the name of a key.
  func ofName(_ path: KeyPath) -> UInt64 {
    let domain = StableHash.of(path.domain.string.utf8, after: prefix)
    let separated = StableHash.of(CollectionOfOne(0), after: domain)
    let hash = StableHash.of(path.key.string.utf8, after: separated)
    return small?.number(of: hash) ?? hash >> 2 | 1 << 61
  }

  subscript(domain: DomainName) -> UInt64 { own[EntryName(domain)] ?? ofName(domain) }

  private func ofName(_ domain: DomainName) -> UInt64 {
    let hash = StableHash.of(domain.string.utf8, after: prefix)
    return small?.number(of: hash) ?? hash | 1 << 62
  }
}

/// Numbers from 2^31 to 2^32 - 1 for the hashes of names: 31 bits of the hash, which belong to the
/// first name that has them. Of 100,000 names about two have the bits of another one.
///
/// Threads: any, because large listings are made by a thread of their own. Locks: one, for a look.
final class SmallNumbers: Sendable {
  /// The other half of the hash that has the number.
  private let taken = Mutex<[UInt32: UInt32]>([:])
  /// The most names that get such a number: 12 bytes are kept for each.
  private static let most = 1 << 18

  /// Returns the number of a name; nil if another name has it, or too many names have one.
  func number(of hash: UInt64) -> UInt64? {
    let number = UInt32(truncatingIfNeeded: hash) | 1 << 31
    let rest = UInt32(truncatingIfNeeded: hash >> 32)
    return taken.withLock { taken in
      if let known = taken[number] { return known == rest ? UInt64(number) : nil }
      guard taken.count < Self.most else { return nil }
      taken[number] = rest
      return UInt64(number)
    }
  }
}
