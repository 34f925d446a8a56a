import PreferenceModel
import PropertyList
import SystemCalls

// Requests about names: the directory of each answers them.

extension Tree {
  /// Finds a name (FUSE_LOOKUP); the look-up counts until `forget`.
  public func lookup(
    _ parent: NodeID, _ name: [UInt8], now: Moment
  ) throws(TreeError) -> LookupResult {
    let name = try validated(name)
    return try directory(parent).lookup(name, self, now)
  }

  /// Forgets so many look-ups of a node (FUSE_FORGET).
  public func forget(_ id: NodeID, _ count: UInt64) {
    guard let node = table.forget(id, count) else { return }
    if let file = node.keyFile { dropCachedText(file) }
  }

  /// mkdir(2): at the root an empty domain, which is kept.
  public func makeDirectory(
    _ parent: NodeID, _ name: [UInt8], now: Moment
  ) throws(TreeError) -> Entry {
    let name = try validated(name)
    try requireWritable()
    return try directory(parent).makeDirectory(name, self, now)
  }

  /// rmdir(2): at the root of a domain without keys.
  public func removeDirectory(
    _ parent: NodeID, _ name: [UInt8], now: Moment
  ) throws(TreeError) {
    let name = try validated(name)
    try requireWritable()
    try directory(parent).removeDirectory(name, self, now)
  }

  /// unlink(2).
  public func unlink(_ parent: NodeID, _ name: [UInt8], now: Moment) throws(TreeError) {
    let name = try validated(name)
    try requireWritable()
    try directory(parent).unlink(name, self, now)
  }

  /// rename(2) and renameat2(2) of a key, domain or scratch file: one transaction of the engine.
  ///
  /// A key that is renamed over another sets it: the target keeps its type, and a text that is not
  /// a value of it is EPERM, with nothing changed (after EINVAL Foundation's atomic write moves the
  /// key aside, tries again and deletes both).
  public func rename(
    _ oldParent: NodeID, _ oldName: [UInt8], to newParent: NodeID, _ newName: [UInt8],
    _ mode: RenameMode, now: Moment
  ) throws(TreeError) {
    try requireWritable()
    let (old, new) = (try validated(oldName), try validated(newName))
    try directory(oldParent).rename(old, to: directory(newParent), new, mode, self, now)
  }

  /// The domain whose lists a request needs that is about the node, or about the name in it; nil:
  /// it needs none. The driver asks before the request, because reading a list may take long.
  public func domain(at id: NodeID, _ name: [UInt8]? = nil) -> DomainName? {
    guard let node = table[id] else { return nil }
    if let file = node.keyFile { return file.path.domain }
    if name == nil { return node.directory?.domain(of: nil, self) }
    guard let text = name.flatMap({ String(validating: $0, as: UTF8.self) }) else { return nil }
    return node.directory?.domain(of: text, self)
  }

  // MARK: - What names mean

  /// The name as text; throws ENAMETOOLONG or EILSEQ.
  func validated(_ name: [UInt8]) throws(TreeError) -> String {
    guard name.count <= NameCodec.longest else { throw .nameTooLong }
    guard let text = String(validating: name, as: UTF8.self) else { throw .notUTF8 }
    return text
  }

  /// The domain that a name at the root means; nil if it means none. It need not exist.
  func domain(named name: String) throws(TreeError) -> DomainName? {
    switch NameCodec.decode(name) {
    case .key(let key): return DomainName(key.string)
    case .shortened:
      return try asTreeError { () throws(EngineError) in try engine.domains() }
        .first { NameCodec.encode($0.key) == name }
    case .none, .scratch: return nil
    }
  }

  /// The key that a new name means; throws EPERM or EINVAL where a key cannot have the name.
  /// - Parameter subject: what log lines call it.
  func newKey(_ name: String, _ subject: String) throws(TreeError) -> Key {
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

  /// The path of a key that is about to be made in the directory.
  func newPath(_ name: String, in directory: any FileDirectory) throws(TreeError) -> KeyPath {
    guard case .domain(let domain) = directory.filesParent else { throw refused(.notDirectory) }
    return KeyPath(domain: domain, key: try newKey(name, "\(domain) \(name)"))
  }
}
