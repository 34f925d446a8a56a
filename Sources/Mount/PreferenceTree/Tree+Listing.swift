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
  /// A listing that has become old is made anew for a process that begins to read, not for one that
  /// goes on.
  /// - Parameter version: the version of the entries that is new enough; nil means the present one
  ///   where the cookie is 0, else that of the last listing.
  public func list(
    _ id: NodeID, after cookie: UInt64, since version: UInt64?
  ) throws(TreeError) -> Listing.SubSequence {
    let directory = try directory(id)
    let least = version ?? directory.listing.least(after: cookie)
    let listing: Listing
    if let last = directory.listing.listing(since: least) {
      listing = last
    } else {
      let plan = plan(of: directory)
      do { listing = try plan.make() } catch { throw log.refused(TreeError(error)) }
      directory.listing.put(listing, version: plan.version)
    }
    let rest = listing.after(cookie)
    if rest.isEmpty { directory.listing.dropIfLarge() }
    return rest
  }

  public func attributesGiven(_ id: NodeID, after cookie: UInt64) -> AttributesGiven {
    // A generated text has to be made for its attributes.
    if options.isGenerated, cookie != 0 { return .none }
    return table[id]?.directory?.listing.attributesGiven(after: cookie) ?? .all
  }

  public func noteLookup(in parent: NodeID) { table[parent]?.directory?.listing.noteLookup() }

  private func plan(of directory: any Directory) -> ListingPlan {
    var removed: Set<Key> = []
    if case .keys(let domain) = directory.names { removed = removedNames.keys(of: domain) }
    return ListingPlan(
      version: directory.listing.version, names: directory.names, engine: engine,
      listsInherited: options.listsInherited, inodes: table.inodes, removed: removed,
      scratch: scratchItems(directory.scratchParent))
  }

  /// Returns what a listing is to be made of before `list` is called with the same arguments; nil
  /// where `list` has one, or makes one quickly.
  func listingNeeded(
    _ id: NodeID, after cookie: UInt64, since version: UInt64?
  ) -> ListingPlan? {
    guard let directory = table[id]?.directory else { return nil }
    let least = version ?? directory.listing.least(after: cookie)
    guard directory.listing.listing(since: least) == nil else { return nil }
    let isLarge =
      switch directory.names {
      case .nothing: false
      case .domains: directory.listing.lastCount.map { $0 > manyKeys } ?? true
      case .keys(let domain): engine.hasManyKeys(domain)
      }
    return isLarge ? plan(of: directory) : nil
  }

  /// Takes a listing that was made of what `listingNeeded` has returned.
  func put(_ listing: Listing, of id: NodeID, version: UInt64) {
    table[id]?.directory?.listing.put(listing, version: version)
  }

  /// Returns the scratch files, links and directories in the directory, as items of its listing.
  func scratchItems(_ parent: ScratchPath.Parent) -> [ListingItem] {
    table.scratchNodes(in: parent).map { name, node in
      ListingItem(name, inode: node.inode, node.type)
    }
  }
}
