import PreferenceModel
import PropertyList
import SystemCalls

// Names become entries, and keys their values.

extension Tree {
  /// The node of a domain that exists.
  func directoryNode(of domain: DomainName, now: Moment) throws(TreeError) -> Node {
    if let node = table[domain] { return node }
    let node = table.node(of: domain)
    let time = try asTreeError { () throws(EngineError) in try engine.modified(domain) }
    node.modified = time ?? table.root.modified
    // A watcher of the directory must hear of its keys although nobody has read one: what somebody
    // else changes in a list is noticed only if the list was read. A list that cannot be read is an
    // error of the requests that need it.
    _ = try? engine.keys(of: domain)
    return node
  }

  /// Finds a key, and counts the look-up.
  func lookup(_ path: KeyPath, now: Moment) throws(TreeError) -> LookupResult {
    guard let resolution = try resolve(path, now: now) else {
      return .missing(isCacheable: answered.note(path))
    }
    var entry = try entry(table.file(of: path).node)
    if !standsBeforeGlobal(resolution, path), !answered.note(path) {
      entry.isCacheable = false
      entry.attributes.isCacheable = false
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

  /// The key's value; nil if no place holds the key, or its name departed a moment ago.
  func resolve(_ path: KeyPath, now: Moment) throws(TreeError) -> Resolution? {
    departures.hides(path, at: now.instant) ? nil : try resolve(path)
  }

  /// The value that a rename to the name replaces. A key that was moved away still has its value.
  func target(_ path: KeyPath, now: Moment) throws(TreeError) -> Resolution? {
    departures.isMovedAway(path) ? try resolve(path) : try resolve(path, now: now)
  }

  /// The key's value, whether or not its name departed.
  func resolve(_ path: KeyPath) throws(TreeError) -> Resolution? {
    do {
      return try engine.resolve(path.key, in: path.domain)
    } catch {
      throw refused(TreeError(error))
    }
  }

  /// The value of a key that must be there; throws ENOENT.
  func requireValue(_ path: KeyPath) throws(TreeError) -> Resolution {
    guard let resolution = try resolve(path) else { throw .missing }
    return resolution
  }

  /// Throws EPERM for a value from a place that writes do not reach.
  func requireWritable(_ resolution: Resolution, _ path: KeyPath) throws(TreeError) {
    guard resolution.isReadOnly else { return }
    let why =
      resolution.isForced ? "the administrator has set it" : "an argument of the mount sets it"
    throw refused(.refused("\(path): \(why)"))
  }

  /// The node as an entry, with its look-up counted.
  func entry(_ node: Node) throws(TreeError) -> Entry {
    let attributes = try attributes(node)
    node.lookups += 1
    return Entry(node: node.id, attributes: attributes)
  }
}
