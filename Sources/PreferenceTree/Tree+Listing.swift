import PreferenceModel
import PropertyList
import SystemCalls

// Listings of directories. `ListingItem` explains their cookies.

extension Tree {
  /// Whether the kernel may cache the listing and give it to other processes: only if the entries
  /// have not changed for 2 s. The kernel finds the place at which a process continues to read a
  /// listing by the last name that the process has read. If a listing that was cached meanwhile
  /// does not have that name, the kernel leaves out the rest.
  public func mayKeepListing(_ id: NodeID, now: Moment) throws(TreeError) -> Bool {
    now.time.nanoseconds(after: try node(id).modified) > 2_000_000_000
  }

  /// Returns the entries of a directory that follow the cookie (0: all), without `.` and `..`.
  public func list(_ id: NodeID, after cookie: UInt64) throws(TreeError) -> ArraySlice<ListingItem>
  {
    let directory = try directory(id)
    let items: [ListingItem]
    if let listing = directory.listing {
      items = listing
    } else {
      items = Self.sorted(try directory.entries(self))
      directory.listing = items
    }
    var (low, high) = (0, items.count)
    while low < high {
      let middle = (low + high) / 2
      if items[middle].cookie <= cookie { low = middle + 1 } else { high = middle }
    }
    // The kernel keeps what it has read; kept here too, a large listing takes 200 bytes a name.
    if low == items.count, items.count > Self.mostKept { directory.listing = nil }
    return items[low...]
  }

  /// The items in the order of their cookies. It sorts numbers: sorting items would count the
  /// references of their names, which takes three times as long.
  private static func sorted(_ items: [ListingItem]) -> [ListingItem] {
    let order = items.indices.map { (cookie: items[$0].cookie, position: $0) }
    return order.sorted { $0.cookie < $1.cookie }.map { items[$0.position] }
  }

  /// The most names of a listing that is kept after it was read to its end.
  static let mostKept = 1000

  /// Returns the scratch files, links and directories in the directory, as items of its listing.
  func scratchItems(_ parent: ScratchPath.Parent) -> [ListingItem] {
    table.scratchNodes(in: parent).map { name, node in
      ListingItem(name, inode: node.inode, node.type)
    }
  }

  // MARK: - Changes of entries

  /// Notes that the entries of a domain's directory changed: makes its listing anew when it is next
  /// asked for, and invalidates its attributes.
  func entriesChanged(_ domain: DomainName, at time: Timestamp) {
    if let node = table[domain] { entriesChanged(node, at: time) }
  }

  /// Notes that the entries of the root changed.
  func rootChanged(at time: Timestamp) { entriesChanged(table.root, at: time) }

  /// Notes that the entries of a directory in which scratch files lie changed.
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
