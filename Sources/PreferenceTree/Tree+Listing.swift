import PreferenceModel
import PropertyList
import SystemCalls

// Listings. A cookie follows from the name alone, so that a listing goes on at the right place
// although entries come and go meanwhile: nothing that stays is shown twice or left out.

extension Tree {
  /// Whether the kernel may keep the listing and give it to others: only while the entries have
  /// been the same for two seconds. It looks for the place where a listing goes on by the last
  /// name that was read; when that name is gone from a listing that was kept meanwhile, it leaves
  /// the rest out.
  public func mayKeepListing(_ id: NodeID) throws(TreeError) -> Bool {
    Timestamp.now.nanoseconds(after: try node(id).modified) > 2_000_000_000
  }

  /// The entries of a directory behind the cookie (0: from the start), without `.` and `..`.
  public func list(_ id: NodeID, after cookie: UInt64) throws(TreeError) -> ArraySlice<ListingItem>
  {
    let node = try node(id)
    let items: [ListingItem]
    if let listing = node.listing { items = listing } else { items = try makeListing(node) }
    node.listing = items
    var (low, high) = (0, items.count)
    while low < high {
      let middle = (low + high) / 2
      if items[middle].cookie <= cookie { low = middle + 1 } else { high = middle }
    }
    return items[low...]
  }

  private func makeListing(_ node: Node) throws(TreeError) -> [ListingItem] {
    switch node.subject {
    case .root:
      let domains = try asTreeError { () throws(EngineError) in try engine.domains() }
      return sorted(
        domains.map { domain in
          item(NameCodec.encode(domain.key), inode: table.inode(of: domain), type: .directory)
        } + scratchItems(.root))
    case .domain(let domain):
      return sorted(
        try listedKeys(domain).map { key in
          let path = KeyPath(domain: domain, key: key)
          return item(NameCodec.encode(key), inode: table.inode(of: path), type: .file)
        } + scratchItems(.domain(domain)))
    case .scratch: return sorted(scratchItems(try scratchParent(node.id)))
    case .key, .detached: throw .notDirectory
    }
  }

  private func scratchItems(_ parent: ScratchPath.Parent) -> [ListingItem] {
    table.scratchNodes(in: parent).map { name, node in
      item(name, inode: node.inode, type: node.type)
    }
  }

  private func listedKeys(_ domain: DomainName) throws(TreeError) -> [Key] {
    do throws(EngineError) {
      var keys = try engine.keys(of: domain)
      if options.listsInherited {
        for key in try engine.inheritedKeys() { keys.insert(key) }
      }
      return keys.filter { removals[KeyPath(domain: domain, key: $0)] == nil }
    } catch {
      throw refused(TreeError(error))
    }
  }

  private func item(_ name: String, inode: UInt64, type: FileType) -> ListingItem {
    // 1 and 2 are the cookies of "." and ".."; the kernel's offsets are signed.
    let cookie = max(3, StableHash.of(name.utf8) >> 1)
    return ListingItem(name: name, inode: inode, type: type, cookie: cookie)
  }

  private func sorted(_ items: [ListingItem]) -> [ListingItem] {
    items.sorted { $0.cookie < $1.cookie }
  }
}
