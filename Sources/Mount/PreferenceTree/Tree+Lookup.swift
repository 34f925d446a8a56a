import PreferenceModel
import PropertyList
import SystemCalls

// Finds the nodes of names.

extension Tree {
  /// Carries out FUSE_LOOKUP: finds a name. The look-up counts until `forget`.
  public func lookup(
    _ parent: NodeID, _ name: [UInt8], now: Moment
  ) throws(TreeError) -> LookupResult {
    let name = try NameCodec.validated(name)
    let directory = try directory(parent)
    if let directory = directory as? DomainDirectory {
      return try lookup(name, in: directory, now)
    }
    if directory is RootDirectory, let domain = try engine.domain(named: name),
      try asTreeError({ () throws(EngineError) in try engine.hasDomain(domain) })
    {
      return .found(try entry(directoryNode(of: domain)))
    }
    return try lookupScratch(name, in: directory) ?? .missing(isCacheable: true)
  }

  /// Finds a name in the directory of a domain.
  private func lookup(
    _ name: String, in directory: DomainDirectory, _ now: Moment
  ) throws(TreeError) -> LookupResult {
    let path = try directory.keyPath(name, engine)
    let found = try path.map { path throws(TreeError) in try lookup(path, now: now) }
    let meaning = NameCodec.decode(name)
    // Only the name that listings show is invalidated whenever the key comes or goes.
    let isOtherName = (meaning == .none || meaning == .scratch) && path != nil
    if case .found(var entry)? = found {
      if isOtherName { entry.isCacheable = false }
      return .found(entry)
    }
    if let scratch = try lookupScratch(name, in: directory) { return scratch }
    // Nobody notes which shortened names of other domains' keys were asked for.
    if isOtherName { return .missing(isCacheable: false) }
    return found ?? .missing(isCacheable: meaning != .shortened)
  }

  /// Finds a scratch file, link or directory, and counts the look-up; nil if there is none.
  private func lookupScratch(
    _ name: String, in directory: any Directory
  ) throws(TreeError) -> LookupResult? {
    let path = ScratchPath(parent: directory.scratchParent, name: name)
    return try table[path].map { node throws(TreeError) in .found(try entry(node)) }
  }

  /// Returns the node of a domain that exists, and makes it if there is none.
  func directoryNode(of domain: DomainName) throws(TreeError) -> Node {
    if let node = table[domain] { return node }
    let node = table.node(of: domain)
    let time = try asTreeError { () throws(EngineError) in try engine.modified(domain) }
    node.modified = time ?? table.root.modified
    // A watcher of the directory must get events although no key was read. Changes that are made
    // directly in a list are noticed only if the list was read, so read it here. If it cannot be
    // read, that is an error of the requests that need it, not of this one.
    engine.load(domain)
    return node
  }

  /// Finds the file of a key, and counts the look-up.
  private func lookup(_ path: KeyPath, now: Moment) throws(TreeError) -> LookupResult {
    guard let resolution = try values.resolve(path, now: now) else {
      return .missing(isCacheable: kernel.answered.note(path))
    }
    var entry = try entry(table.node(of: path))
    if !standsBeforeGlobal(resolution, path), !kernel.answered.note(path) {
      entry.isCacheable = false
      entry.attributes.isCacheable = false
    }
    return .found(entry)
  }

  /// Whether the place of the value precedes every place of the global domain that can change, so
  /// that no change of the global domain can change the answer.
  private func standsBeforeGlobal(_ resolution: Resolution, _ path: KeyPath) -> Bool {
    resolution.location.domain == path.domain
      && (resolution.isForced || resolution.location.place.isOwn)
  }

  /// Returns the node as an entry, and counts the look-up.
  func entry(_ node: Node) throws(TreeError) -> Entry {
    let attributes = try attributes(node)
    node.lookups += 1
    return Entry(node: node.id, attributes: attributes)
  }
}
