import PreferenceModel
import PropertyList
import SystemCalls

// Requests about names. They are passed on to the directory that has the name.

extension Tree {
  /// Carries out FUSE_LOOKUP: finds a name. The look-up counts until `forget`.
  public func lookup(
    _ parent: NodeID, _ name: [UInt8], now: Moment
  ) throws(TreeError) -> LookupResult {
    let name = try validated(name)
    return try directory(parent).lookup(name, self, now)
  }

  /// Carries out FUSE_FORGET: subtracts look-ups of a node.
  public func forget(_ id: NodeID, _ count: UInt64) {
    guard let node = table.forget(id, count) else { return }
    if let file = node.keyFile { dropCachedText(file) }
  }

  /// Carries out mkdir(2). At the root it makes an empty domain, which is stored.
  public func makeDirectory(
    _ parent: NodeID, _ name: [UInt8], now: Moment
  ) throws(TreeError) -> Entry {
    let name = try validated(name)
    try requireWritable()
    return try directory(parent).makeDirectory(name, self, now)
  }

  /// Carries out rmdir(2). At the root it removes a domain, which must have no keys.
  public func removeDirectory(
    _ parent: NodeID, _ name: [UInt8], now: Moment
  ) throws(TreeError) {
    let name = try validated(name)
    try requireWritable()
    try directory(parent).removeDirectory(name, self, now)
  }

  /// Carries out unlink(2).
  public func unlink(_ parent: NodeID, _ name: [UInt8], now: Moment) throws(TreeError) {
    let name = try validated(name)
    try requireWritable()
    try directory(parent).unlink(name, self, now)
  }

  /// Carries out rename(2) and renameat2(2) of a key, domain or scratch file, as one transaction of
  /// the engine.
  ///
  /// A key or scratch file that is renamed over a key sets that key, which keeps its type. A text
  /// that is not a value of the type is EPERM, and nothing is changed. It is never EINVAL, after
  /// which Foundation's atomic write moves the key aside, tries again and deletes both.
  public func rename(
    _ oldParent: NodeID, _ oldName: [UInt8], to newParent: NodeID, _ newName: [UInt8],
    _ mode: RenameMode, now: Moment
  ) throws(TreeError) {
    try requireWritable()
    let (old, new) = (try validated(oldName), try validated(newName))
    do {
      try directory(oldParent).rename(old, to: directory(newParent), new, mode, self, now)
    } catch {
      // Never EINVAL, after which programs move the key aside, try again, and delete both.
      if case .notAValue(let sentence) = error { throw .refused(sentence) }
      throw error
    }
  }

  /// Returns the domains whose lists a request about the node, or about the name in it, needs. The
  /// driver asks this before the request, because reading a list may take long.
  public func domainsNeeded(at id: NodeID, _ name: [UInt8]? = nil) -> [DomainName] {
    switch table[id]?.content {
    case .key(let file):
      return engine.domainsNeeded(for: file.path.key, in: file.path.domain)
    case .directory(let directory):
      guard let path = directory.listsNeeded(for: name, self) else { return [] }
      return engine.domainsNeeded(for: path.key, in: path.domain)
    case .scratch, .detached, nil: return []
    }
  }

  // MARK: - What names mean

  /// Returns the name as a string; throws ENAMETOOLONG or EILSEQ.
  func validated(_ name: [UInt8]) throws(TreeError) -> String {
    guard name.count <= NameCodec.longest else { throw .nameTooLong }
    guard let text = String(validating: name, as: UTF8.self) else { throw .notUTF8 }
    return text
  }

  /// Returns the domain that a name at the root stands for; nil if it stands for none. The domain
  /// need not exist.
  func domain(named name: String) throws(TreeError) -> DomainName? {
    switch NameCodec.decode(name) {
    case .key(let key): return DomainName(key.string)
    case .shortened:
      return try asTreeError { () throws(EngineError) in try engine.domains() }
        .first { NameCodec.encode($0.key) == name }
    case .none, .scratch: return nil
    }
  }

  /// Returns the key that a new name stands for; throws EPERM for a scratch name, and EINVAL for a
  /// name that is not a key's.
  /// - Parameter subject: what log lines call the key.
  func newKey(_ name: String, _ subject: String) throws(TreeError) -> Key {
    switch NameCodec.decode(name) {
    case .key(let key): return key
    case .scratch:
      throw refused(
        .refused(
          "\(subject): this is a temporary file's name; to make a key of it, write its first "
            + "character as % and two hexadecimal digits"))
    case .none, .shortened:
      throw refused(.invalid("\(subject): not the canonical name of a key ('%' begins an escape)"))
    }
  }

  /// Returns the path of a key that is about to be made in the directory; throws as `newKey` does.
  func newPath(_ name: String, in directory: any FileDirectory) throws(TreeError) -> KeyPath {
    guard case .domain(let domain) = directory.filesParent else { throw refused(.notDirectory) }
    return KeyPath(domain: domain, key: try newKey(name, "\(domain) \(name)"))
  }
}
