import PreferenceModel
import PropertyList
import SystemCalls

// Listings: see `ListingItem` for their cookies.

extension Tree {
  /// Whether the kernel may keep the listing and give it to others: only if the entries have been
  /// the same for two seconds. The kernel looks for the place where a listing goes on by the last
  /// name that was read; if that name is gone from a listing that was kept meanwhile, the kernel
  /// leaves out the rest.
  public func mayKeepListing(_ id: NodeID, now: Moment) throws(TreeError) -> Bool {
    now.time.nanoseconds(after: try node(id).modified) > 2_000_000_000
  }

  /// The entries of a directory behind the cookie (0: from the start), without `.` and `..`.
  public func list(_ id: NodeID, after cookie: UInt64) throws(TreeError) -> ArraySlice<ListingItem>
  {
    let directory = try directory(id)
    let items: [ListingItem]
    if let listing = directory.listing {
      items = listing
    } else {
      items = try directory.entries(self).sorted { $0.cookie < $1.cookie }
      directory.listing = items
    }
    var (low, high) = (0, items.count)
    while low < high {
      let middle = (low + high) / 2
      if items[middle].cookie <= cookie { low = middle + 1 } else { high = middle }
    }
    return items[low...]
  }

  /// The scratch files and directories that lie in the directory.
  func scratchItems(_ parent: ScratchPath.Parent) -> [ListingItem] {
    table.scratchNodes(in: parent).map { name, node in
      ListingItem(name, inode: node.inode, node.type)
    }
  }

  // MARK: - Entries come and go

  /// The entries of a domain's directory changed.
  func entriesChanged(_ domain: DomainName, at time: Timestamp) {
    if let node = table[domain] { entriesChanged(node, at: time) }
  }

  /// The domains at the root changed.
  func rootChanged(at time: Timestamp) { entriesChanged(table.root, at: time) }

  /// The entries of a directory that scratch files lie in changed.
  func entriesChanged(_ parent: ScratchPath.Parent, at time: Timestamp) {
    switch parent {
    case .root: rootChanged(at: time)
    case .domain(let domain): entriesChanged(domain, at: time)
    case .directory(let id): if let node = table[id] { entriesChanged(node, at: time) }
    }
  }

  private func entriesChanged(_ node: Node, at time: Timestamp) {
    node.directory?.listing = nil
    node.modified = max(time, node.modified.next)
    effects.append(.invalidateAttributes(node.id))
  }
}
