import PreferenceModel
import PropertyList
import SystemCalls

// Making and removing keys and domains.

extension Tree {
  /// open(2) with O_CREAT of a name that is not there: a key with an empty string, whose type
  /// follows from what its creator writes until he closes it.
  public func create(
    _ parent: NodeID, _ name: [UInt8], exclusively: Bool, truncating: Bool = false, now: Instant
  ) throws(TreeError) -> (entry: Entry, handle: HandleID) {
    let path = try newPath(parent, name)
    if try resolve(path, now: now) != nil {
      // It came between the look-up and now; no truncation follows a CREATE.
      if exclusively { throw .exists }
      let node = table.node(of: path)
      if truncating { try truncate(node, to: 0, handle: .none, now: now) }
      return (try entry(node), .none)
    }
    let preferred = removals[path]?.kind
    let empty: [UInt8] = []
    let changeset = try apply([.set(path.key, path.domain, .string(""), .exact(empty))])
    removals[path] = nil
    table.renewInode(of: path)
    let node = table.node(of: path)
    lastHandle += 1
    node.creation = Node.Creation(handle: HandleID(rawValue: lastHandle), preferred: preferred)
    propagate(changeset, known: [path], addsEntries: true)
    return (try entry(node), HandleID(rawValue: lastHandle))
  }

  /// The creator has closed the file: its type is what it is now.
  public func release(_ id: NodeID, _ handle: HandleID) {
    guard let node = table[id], node.creation?.handle == handle else { return }
    node.creation = nil
    if node.editor?.isInferred == true { node.editor = nil }
  }

  /// A key's path for a name that may be made.
  func newPath(_ parent: NodeID, _ name: [UInt8]) throws(TreeError) -> KeyPath {
    let name = try validated(name)
    if engine.isReadOnly { throw .readOnly }
    let domain: DomainName
    do {
      domain = try self.domain(parent)
    } catch {
      throw refused(error)
    }
    return KeyPath(domain: domain, key: try newKey(name, "\(domain) \(name)"))
  }

  private func newKey(_ name: String, _ subject: String) throws(TreeError) -> Key {
    switch NameCodec.decode(name) {
    case .key(let key): return key
    case .scratch:
      throw refused(
        .refused(
          "\(subject): a temporary file's name; write the first character as % and two digits"))
    case .none, .shortened:
      throw refused(.invalid("\(subject): not the canonical name of a key ('%' begins an escape)"))
    }
  }

  /// unlink(2).
  public func unlink(_ parent: NodeID, _ name: [UInt8], now: Instant) throws(TreeError) {
    let name = try validated(name)
    if engine.isReadOnly { throw .readOnly }
    if case .root = try node(parent).subject { throw .isDirectory }
    let domain = try domain(parent)
    guard let path = try path(domain, name), let resolution = try resolve(path, now: now) else {
      throw .missing
    }
    let node = table[path]
    let text = try node.map { node throws(TreeError) in try shownText(node) }
    let changeset = try apply([.remove(path.key, path.domain)])
    removed(path, node, text ?? [], kind: resolution.value.kind, now: now)
    propagate(changeset, known: [path], addsEntries: true)
  }

  /// A name is gone for a second, and its file keeps a private copy.
  func removed(_ path: KeyPath, _ node: Node?, _ text: [UInt8], kind: Kind, now: Instant) {
    let until = now.advanced(milliseconds: Self.removalTime)
    removals[path] = Removal(until: until, kind: kind)
    wake(at: until)
    if let node {
      node.modified = .now
      dropCache(node)
      table.detach(node, text: text)
    }
    table.renewInode(of: path)
  }

  /// mkdir(2): an empty domain, which is kept.
  public func makeDirectory(
    _ parent: NodeID, _ name: [UInt8], now: Instant
  ) throws(TreeError) -> Entry {
    let domain = try newDomain(parent, name)
    let changeset = try apply([.createDomain(domain)])
    rootChanged(at: changeset.time)
    let node = table.node(of: domain)
    node.modified = changeset.time
    return try entry(node)
  }

  private func newDomain(_ parent: NodeID, _ name: [UInt8]) throws(TreeError) -> DomainName {
    let name = try validated(name)
    guard case .root = try node(parent).subject else {
      throw refused(.refused("\(subjectText(try node(parent))): a domain has no directories"))
    }
    if engine.isReadOnly { throw .readOnly }
    return DomainName(try newKey(name, name).string)
  }

  /// rmdir(2) of a domain without keys.
  public func removeDirectory(
    _ parent: NodeID, _ name: [UInt8], now: Instant
  ) throws(TreeError) {
    let name = try validated(name)
    if engine.isReadOnly { throw .readOnly }
    guard case .root = try node(parent).subject else { throw .notDirectory }
    guard let domain = try domain(named: name) else { throw .missing }
    let changeset = try apply([.removeDomain(domain)])
    table.remove(domain)
    rootChanged(at: changeset.time)
  }
}
