import PreferenceModel
import PropertyList
import SystemCalls

/// Preferences as a file system, without the file system: nodes, names, attributes and bytes.
///
/// Promises: requests are Swift values; errors are `TreeError`s, each with its errno; what the
/// kernel must be told is in `takeEffects()` after every call, in order. A refused request changes
/// nothing, is logged with domain, key and reason, and the file shows the value as it was. Text
/// that was accepted is in the engine when the call returns, but for text that is held.
///
/// Threads: one, the caller's; there is no lock. `Notice`s of other threads must be handed over to
/// it (`changed`). Time is a parameter, so that tests need none to pass: the caller passes the
/// present moment, and calls `tick` when `nextDeadline` has come.
public final class Tree {
  let engine: any Engine
  let options: TreeOptions
  let log: (String) -> Void
  let author: Author
  var table = NodeTable()
  var effects: [Effect] = []
  var lastHandle: UInt64 = 0
  /// Nodes with an editor, and when one that is settled may be thrown away.
  var edited: [NodeID: Instant] = [:]
  /// Keys removed within the last second.
  var removals: [KeyPath: Removal] = [:]
  /// Which names were answered as missing or inherited, and where.
  var answered = AnsweredNames()
  /// When `tick` must be called next, at the latest; nil: not before the next request.
  public internal(set) var nextDeadline: Instant?
  /// Bytes of all `cachedText`s.
  var cachedBytes = 0

  /// A key that was removed a moment ago.
  struct Removal {
    /// Until when the name is not there, whatever other places hold.
    var until: Instant
    /// What type the key had, for one that is made again.
    var kind: Kind
  }

  /// Milliseconds for which a removed name is not there.
  static let removalTime: Int64 = 1000

  /// A tree over an engine.
  /// - Parameters:
  ///   - author: tells the tree's own changes from those of others.
  ///   - log: gets a line for each refusal.
  public init(
    engine: any Engine, options: TreeOptions = TreeOptions(), author: Author,
    log: @escaping (String) -> Void
  ) {
    self.engine = engine
    self.options = options
    self.author = author
    self.log = log
    table.addRoot().modified = .now
  }

  /// What the kernel must be told because of the calls since the last time.
  public func takeEffects() -> [Effect] {
    defer { effects.removeAll(keepingCapacity: true) }
    return effects
  }

  func node(_ id: NodeID) throws(TreeError) -> Node {
    guard let node = table[id] else { throw .missing }
    return node
  }

  func domain(_ id: NodeID) throws(TreeError) -> DomainName {
    switch try node(id).subject {
    case .domain(let domain): return domain
    case .root: throw .refused("files at the root: keys lie in the directory of their domain")
    case .key, .detached: throw .notDirectory
    }
  }

  /// Logs a refusal and gives it back to be thrown.
  func refused(_ error: TreeError) -> TreeError {
    if let sentence = error.sentence { log(sentence) }
    return error
  }

  // MARK: - Look-up

  /// Finds a name; a found node counts one look-up more.
  public func lookup(
    _ parent: NodeID, _ name: [UInt8], now: Instant
  ) throws(TreeError) -> LookupResult {
    let name = try validated(name)
    switch try node(parent).subject {
    case .root: return try lookupDomain(name)
    case .domain(let domain):
      guard let path = try path(domain, name) else { return .missing(isRemembered: true) }
      return try lookup(path, now: now)
    case .key, .detached: throw .notDirectory
    }
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

  private func lookupDomain(_ name: String) throws(TreeError) -> LookupResult {
    guard let domain = try domain(named: name),
      try asTreeError({ () throws(EngineError) in try engine.hasDomain(domain) })
    else { return .missing(isRemembered: true) }
    return .found(try entry(directory(domain)))
  }

  /// The node of a domain that exists.
  private func directory(_ domain: DomainName) throws(TreeError) -> Node {
    if let node = table[domain] { return node }
    let node = table.node(of: domain)
    let time = try asTreeError { () throws(EngineError) in try engine.modified(domain) }
    node.modified = time ?? table[NodeID.root]?.modified ?? .now
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
    if let removal = removals[path], now < removal.until { return nil }
    return try resolve(path)
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

  // MARK: - Attributes

  /// What stat(2) shows.
  public func attributes(_ id: NodeID) throws(TreeError) -> Attributes {
    try attributes(try node(id))
  }

  func attributes(_ node: Node) throws(TreeError) -> Attributes {
    switch node.subject {
    case .root, .domain:
      return Attributes(
        inode: node.inode, isDirectory: true, mode: 0o700, size: 0, modified: node.modified,
        isSettled: true)
    case .detached(let text):
      return Attributes(
        inode: node.inode, isDirectory: false, mode: 0o600, size: text.count,
        modified: node.modified, isSettled: true)
    case .key(let path):
      guard let resolution = try resolve(path) else { throw .missing }
      let size = node.editor?.text.count ?? text(resolution, of: node).count
      return Attributes(
        inode: node.inode, isDirectory: false, mode: resolution.isReadOnly ? 0o400 : 0o600,
        size: size, modified: resolution.modified, isSettled: true)
    }
  }

  /// chmod(2), chown(2), truncate(2), utimensat(2). Times and modes are accepted and not kept.
  public func setAttributes(
    _ id: NodeID, _ change: AttributeChange, handle: HandleID = .none, now: Instant
  ) throws(TreeError) -> Attributes {
    let node = try node(id)
    if engine.isReadOnly { throw .readOnly }
    if change.changesOwner {
      throw refused(.refused("\(subjectText(node)): a preference belongs to the user of the mount"))
    }
    if let size = change.size { try truncate(node, to: size, handle: handle, now: now) }
    return try attributes(node)
  }

  /// The node for people.
  func subjectText(_ node: Node) -> String {
    switch node.subject {
    case .root: "the root"
    case .domain(let domain): domain.string
    case .key(let path): "\(path.domain) \(path.key)"
    case .detached: "a removed file"
    }
  }
}

/// The names that were answered as missing, or from another domain's list, and in which domains:
/// the kernel may remember those answers, so they are taken back when a value comes or goes.
/// Bounded: past the bound answers are given without a promise.
struct AnsweredNames {
  private var domains: [Key: Set<DomainName>] = [:]
  private var count = 0
  private let largest = 65536

  /// Remembers the answer; false where there is no room.
  mutating func note(_ path: KeyPath) -> Bool {
    if domains[path.key]?.contains(path.domain) == true { return true }
    guard count < largest else { return false }
    domains[path.key, default: []].insert(path.domain)
    count += 1
    return true
  }

  /// The domains in which the key was answered.
  subscript(key: Key) -> Set<DomainName> { domains[key] ?? [] }

  /// The domain is gone; the keys that were answered in it.
  mutating func forget(_ domain: DomainName) -> [Key] {
    let keys = domains.filter { $0.value.contains(domain) }.map(\.key)
    for key in keys { forget(KeyPath(domain: domain, key: key)) }
    return keys
  }

  /// The answer was taken back.
  mutating func forget(_ path: KeyPath) {
    guard domains[path.key]?.remove(path.domain) != nil else { return }
    count -= 1
    if domains[path.key]?.isEmpty == true { domains[path.key] = nil }
  }
}
