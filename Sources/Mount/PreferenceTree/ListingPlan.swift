import PreferenceModel
import PropertyList

/// What is needed to list a directory: what the tree knows, and the engine to ask for the names.
///
/// Threads: any. A large listing is made by a thread of its own, because other requests would
/// wait for the loop meanwhile.
public struct ListingPlan: Sendable {
  /// What a directory shows beside scratch files.
  enum Names {
    case nothing
    case domains
    case keys(of: DomainName)
  }

  /// The version of the entries that the listing will show, or a later one.
  public let version: UInt64
  let names: Names
  let engine: any Engine
  let listsInherited: Bool
  let inodes: InodeNumbers
  /// Keys that are hidden, because their names were removed a moment ago.
  let removed: Set<Key>
  let scratch: [ListingItem]

  /// Makes the listing. Waits as long as the engine does. Throws the error of a list that cannot be
  /// read.
  public func make() throws(EngineError) -> Listing {
    var items: [ListingItem] = []
    var shown: Set<Key> = []
    switch names {
    case .nothing: break
    case .domains:
      for domain in try engine.domains() {
        items.append(
          ListingItem(NameCodec.encode(domain.key), inode: inodes[domain], .directory))
      }
    case .keys(let domain):
      let keys = try keys(of: domain)
      items.reserveCapacity(keys.count + scratch.count)
      if !scratch.isEmpty { shown = keys.subtracting(removed) }
      for key in keys where !removed.contains(key) {
        // A key of a text of its own: else each use of the text is a copy of it.
        let path = KeyPath(domain: domain, key: Key(key.string))
        items.append(ListingItem(NameCodec.encode(path.key), inode: inodes[path], .file))
      }
    }
    for item in scratch {
      // A key that came with its list hides a scratch file of its name.
      if case .key(let key) = NameCodec.decode(item.name), shown.contains(key) { continue }
      items.append(item)
    }
    return Listing(items)
  }

  private func keys(of domain: DomainName) throws(EngineError) -> Set<Key> {
    let own = try engine.keys(of: domain)
    return listsInherited ? own.union(try engine.inheritedKeys(of: domain)) : own
  }
}
