import PreferenceModel
import PropertyList
import SystemCalls

// Finds the nodes of names, and the values of keys.

/// What a look-up of the engine found, and the engine's generation before it.
struct LastLookup {
  let path: KeyPath
  let generation: Generation
  let resolution: Resolution?
}

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

  /// Whether the file must keep what it shows, because a notice of a removal would lack it.
  func keepsShown(_ resolution: Resolution, _ path: KeyPath) -> Bool {
    options.isGenerated || !isOwn(resolution, path)
  }

  /// Whether the place of the value precedes every place of the global domain that can change, so
  /// that no change of the global domain can change the answer.
  private func standsBeforeGlobal(_ resolution: Resolution, _ path: KeyPath) -> Bool {
    resolution.location.domain == path.domain
      && (resolution.isForced || resolution.location.place.isOwn)
  }

  /// Whether the value is the domain's own and not inherited. Listings show only keys with such
  /// values.
  func isOwn(_ resolution: Resolution, _ path: KeyPath) -> Bool {
    let place = resolution.location.place
    if resolution.formerName != nil { return false }
    return resolution.location.domain == path.domain && place != .arguments && place != .schema
  }

  /// Returns the key's value; nil if no place has the key, or its name departed a moment ago.
  func resolve(_ path: KeyPath, now: Moment) throws(TreeError) -> Resolution? {
    departures.hides(path, at: now.instant) ? nil : try resolve(path)
  }

  /// Returns the value that a rename to the name replaces. A key that was moved away still has its
  /// value.
  func target(_ path: KeyPath, now: Moment) throws(TreeError) -> Resolution? {
    departures.isMovedAway(path) ? try resolve(path) : try resolve(path, now: now)
  }

  /// Returns the key's value, whether or not its name departed; nil if no place has the key. Cost:
  /// a few loads, if the key is that of the last call, and nothing has changed since.
  func resolve(_ path: KeyPath) throws(TreeError) -> Resolution? {
    if !past.isEmpty, let before = past[path] { return before }
    let generation = engine.generation
    if let lastFound, lastFound.generation == generation, lastFound.path == path {
      return lastFound.resolution
    }
    do {
      let found = try engine.resolve(path.key, in: path.domain)
      lastFound = generation.map { LastLookup(path: path, generation: $0, resolution: found) }
      return found
    } catch {
      throw refused(TreeError(error))
    }
  }

  /// Returns the key's value; throws ENOENT if no place has the key.
  func requireValue(_ path: KeyPath) throws(TreeError) -> Resolution {
    guard let resolution = try resolve(path) else { throw .missing }
    return resolution
  }

  /// Throws EPERM for a value that a write cannot replace: a forced one, or an argument.
  func requireWritable(_ resolution: Resolution, _ path: KeyPath) throws(TreeError) {
    guard resolution.isReadOnly else { return }
    let why =
      resolution.isForced ? "the administrator has set it" : "an argument of the mount has set it"
    throw refused(.refused("\(path): \(why)"))
  }

  /// Returns the node as an entry, and counts the look-up.
  func entry(_ node: Node) throws(TreeError) -> Entry {
    let attributes = try attributes(node)
    node.lookups += 1
    return Entry(node: node.id, attributes: attributes)
  }
}
