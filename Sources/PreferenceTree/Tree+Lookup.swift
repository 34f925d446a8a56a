import PreferenceModel
import PropertyList
import SystemCalls

// Names become nodes.

extension Tree {
  /// Finds a name; a found node counts one look-up more.
  public func lookup(
    _ parent: NodeID, _ name: [UInt8], now: Instant
  ) throws(TreeError) -> LookupResult {
    let name = try validated(name)
    switch try node(parent).subject {
    case .root: return try lookupDomain(name)
    case .domain(let domain):
      let path = try path(domain, name)
      let found = try path.map { path throws(TreeError) in try lookup(path, now: now) }
      if case .found? = found { return found ?? .missing(isRemembered: true) }
      return try lookupScratch(ScratchPath(parent: .domain(domain), name: name))
        ?? found ?? .missing(isRemembered: true)
    case .scratch:
      let path = ScratchPath(parent: try scratchParent(parent), name: name)
      return try lookupScratch(path) ?? .missing(isRemembered: true)
    case .key, .detached: throw .notDirectory
    }
  }

  private func lookupScratch(_ path: ScratchPath) throws(TreeError) -> LookupResult? {
    try table[path].map { node throws(TreeError) in .found(try entry(node)) }
  }

  func validated(_ name: [UInt8]) throws(TreeError) -> String {
    guard name.count <= NameCodec.longest else { throw .nameTooLong }
    guard let text = String(validating: name, as: UTF8.self) else { throw .notUTF8 }
    return text
  }

  /// The domain that a name at the root means; nil where it means none.
  func domain(named name: String) throws(TreeError) -> DomainName? {
    switch NameCodec.decode(name) {
    case .key(let key): return DomainName(key.string)
    case .shortened:
      return try asTreeError { () throws(EngineError) in try engine.domains() }
        .first { NameCodec.encode($0.key) == name }
    case .none, .scratch: return nil
    }
  }

  /// The key that a name in a domain means; nil where it means none.
  func path(_ domain: DomainName, _ name: String) throws(TreeError) -> KeyPath? {
    switch NameCodec.decode(name) {
    case .key(let key): return KeyPath(domain: domain, key: key)
    case .shortened:
      let keys = try asTreeError { () throws(EngineError) in try engine.keys(of: domain) }
      return keys.first { NameCodec.encode($0) == name }.map { KeyPath(domain: domain, key: $0) }
    case .none, .scratch: return nil
    }
  }

  /// The domain whose lists a request needs that is about the node, or the name in it; nil: it needs none.
  public func domain(at id: NodeID, _ name: [UInt8]? = nil) -> DomainName? {
    switch table[id]?.subject {
    case .root:
      guard let name, let text = String(validating: name, as: UTF8.self) else { return nil }
      return (try? domain(named: text)) ?? nil
    case .domain(let domain): return domain
    case .key(let path): return path.domain
    case .detached, .scratch, nil: return nil
    }
  }

  private func lookupDomain(_ name: String) throws(TreeError) -> LookupResult {
    guard let domain = try domain(named: name),
      try asTreeError({ () throws(EngineError) in try engine.hasDomain(domain) })
    else {
      return try lookupScratch(ScratchPath(parent: .root, name: name))
        ?? .missing(isRemembered: true)
    }
    return .found(try entry(directory(domain)))
  }

  /// The node of a domain that exists.
  private func directory(_ domain: DomainName) throws(TreeError) -> Node {
    if let node = table[domain] { return node }
    let node = table.node(of: domain)
    let time = try asTreeError { () throws(EngineError) in try engine.modified(domain) }
    node.modified = time ?? table[NodeID.root]?.modified ?? .now
    // Who watches the directory hears of its keys although nobody has read one: what somebody else
    // changes in a list is known only of lists that were read. One that cannot be is an error of
    // those who read it.
    _ = try? engine.keys(of: domain)
    return node
  }

  private func lookup(_ path: KeyPath, now: Instant) throws(TreeError) -> LookupResult {
    guard let resolution = try resolve(path, now: now) else {
      return .missing(isRemembered: answered.note(path))
    }
    let node = table.node(of: path)
    var entry = try entry(node)
    if !standsBeforeGlobal(resolution, path), !answered.note(path) {
      entry.isRemembered = false
      entry.attributes.isSettled = false
    }
    return .found(entry)
  }

  /// Whether nothing that happens in the global domain can change the answer.
  private func standsBeforeGlobal(_ resolution: Resolution, _ path: KeyPath) -> Bool {
    resolution.location.domain == path.domain
      && [.managed, .host, .user].contains(resolution.location.place)
  }

  /// Whether the value is the domain's own, not inherited: what listings show.
  func isOwn(_ resolution: Resolution, _ path: KeyPath) -> Bool {
    resolution.location.domain == path.domain && resolution.location.place != .arguments
  }

  /// The key's value, unless its name was removed a moment ago.
  func resolve(_ path: KeyPath, now: Instant) throws(TreeError) -> Resolution? {
    if let removal = removals[path], removal.holder != nil || now < removal.until { return nil }
    return try resolve(path)
  }

  /// The key that a rename to the name sets: one that was moved away is still there.
  func target(_ path: KeyPath, now: Instant) throws(TreeError) -> Resolution? {
    removals[path]?.holder == nil ? try resolve(path, now: now) : try resolve(path)
  }

  /// Refuses what the search list gives from a place that no write reaches.
  func requireWritable(
    _ resolution: Resolution, _ subject: @autoclosure () -> String
  ) throws(TreeError) {
    guard resolution.isReadOnly else { return }
    let why =
      resolution.isForced ? "the administrator has set it" : "an argument of the mount sets it"
    throw refused(.refused("\(subject()): \(why)"))
  }

  func resolve(_ path: KeyPath) throws(TreeError) -> Resolution? {
    do {
      return try engine.resolve(path.key, in: path.domain)
    } catch {
      throw refused(TreeError(error))
    }
  }

  /// An entry, with its look-up counted.
  func entry(_ node: Node) throws(TreeError) -> Entry {
    let attributes = try attributes(node)
    node.lookups += 1
    return Entry(node: node.id, attributes: attributes)
  }

  /// The kernel forgets so many look-ups of a node (FUSE_FORGET).
  public func forget(_ id: NodeID, _ count: UInt64) {
    guard let node = table[id] else { return }
    if table.forget(id, count) { dropCache(node) }
  }
}
