import PreferenceModel
import PropertyList
import SystemCalls

/// The directory of a domain: it has a file for each key of the domain, and scratch files.
final class DomainDirectory: FileDirectory {
  let domain: DomainName
  var listing: [ListingItem]?

  init(_ domain: DomainName) { self.domain = domain }

  var subject: String { domain.string }
  var filesParent: ScratchPath.Parent { .domain(domain) }
  var mode: UInt32 {
    get { 0o700 }
    set {}
  }

  func listsNeeded(for name: String?, _ tree: Tree) -> (domain: DomainName, key: Key?)? {
    // Only a generated text needs the lists of other domains than its directory's.
    guard tree.options.isGenerated, let name, case .key(let key) = NameCodec.decode(name) else {
      return (domain, nil)
    }
    return (domain, key)
  }

  func entries(_ tree: Tree) throws(TreeError) -> [ListingItem] {
    try keys(tree).map { key in
      // A key of a text of its own: else each use of the text is a copy of it.
      let path = KeyPath(domain: domain, key: Key(key.string))
      return ListingItem(NameCodec.encode(path.key), inode: tree.table.inode(of: path), .file)
    } + tree.scratchItems(.domain(domain))
  }

  private func keys(_ tree: Tree) throws(TreeError) -> [Key] {
    do throws(EngineError) {
      var keys = try tree.engine.keys(of: domain)
      if tree.options.listsInherited { keys.formUnion(try tree.engine.inheritedKeys(of: domain)) }
      return keys.filter { !tree.departures.contains(KeyPath(domain: domain, key: $0)) }
    } catch {
      throw tree.refused(TreeError(error))
    }
  }

  func keyPath(_ name: String, _ tree: Tree) throws(TreeError) -> KeyPath? {
    switch NameCodec.decode(name) {
    case .key(let key): return KeyPath(domain: domain, key: key)
    case .shortened:
      let keys = try asTreeError { () throws(EngineError) in try tree.engine.keys(of: domain) }
      return keys.first { NameCodec.encode($0) == name }.map { KeyPath(domain: domain, key: $0) }
    case .none, .scratch: return nil
    }
  }

  func lookup(_ name: String, _ tree: Tree, _ now: Moment) throws(TreeError) -> LookupResult {
    let path = try keyPath(name, tree)
    let found = try path.map { path throws(TreeError) in try tree.lookup(path, now: now) }
    if case .found? = found { return found ?? .missing(isCacheable: true) }
    return try tree.lookupScratch(ScratchPath(parent: filesParent, name: name))
      ?? found ?? .missing(isCacheable: true)
  }
}
