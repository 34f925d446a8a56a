import PreferenceModel
import PropertyList
import SystemCalls

// Finds the nodes of names.

extension Tree {
  /// Returns the node of a domain that exists, and makes it if there is none.
  func directoryNode(of domain: DomainName, now: Moment) throws(TreeError) -> Node {
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
  func lookup(_ path: KeyPath, now: Moment) throws(TreeError) -> LookupResult {
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
