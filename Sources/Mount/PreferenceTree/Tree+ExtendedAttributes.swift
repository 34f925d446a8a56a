import PreferenceModel
import PropertyList
import SystemCalls

// Extended attributes: `user.prefs.*`.

extension Tree {
  private static let prefix = "user.prefs."

  private enum Name: String, CaseIterable {
    case type, source, forced, key, domain, description
  }

  /// Carries out listxattr(2).
  /// - Returns: the names, each with a NUL behind it.
  public func extendedAttributeNames(_ id: NodeID) throws(TreeError) -> [UInt8] {
    let names: [Name]
    switch try node(id).content {
    case .directory(is DomainDirectory): names = [.domain]
    case .directory(is ScratchDirectory), .scratch: names = [.type]
    case .directory, .detached: names = []
    case .key(let path): names = Name.allCases.filter { has($0, path) }
    }
    return names.flatMap { Array((Self.prefix + $0.rawValue).utf8) + [0] }
  }

  /// Carries out getxattr(2). Names outside `user.` are EOPNOTSUPP, so that programs that ask for
  /// the access control list or security label of every file get a quick answer.
  public func extendedAttribute(_ id: NodeID, _ name: String) throws(TreeError) -> [UInt8] {
    guard name.hasPrefix("user.") else { throw .unsupported }
    guard let attribute = attributeName(name) else { throw .noAttribute }
    let node = try node(id)
    switch node.content {
    case .directory(let directory as DomainDirectory) where attribute == .domain:
      return Array(directory.domain.string.utf8)
    case .directory(is ScratchDirectory) where attribute == .type: fallthrough
    case .scratch where attribute == .type: return Array(Self.scratchType.utf8)
    case .directory, .scratch, .detached: throw .noAttribute
    case .key(let path):
      let found = try values.requireValue(path)
      guard has(attribute, path), let text = text(attribute, KeyFile(node, path), found) else {
        throw .noAttribute
      }
      return Array(text.utf8)
    }
  }

  private func attributeName(_ name: String) -> Name? {
    name.hasPrefix(Self.prefix) ? Name(rawValue: String(name.dropFirst(Self.prefix.count))) : nil
  }

  /// Whether the file of a key has the attribute. A document has no key and domain of its own.
  private func has(_ attribute: Name, _ path: KeyPath) -> Bool {
    switch attribute {
    case .type, .source, .forced: true
    case .key, .domain: !options.isGenerated
    case .description: engine.summary(of: path.key, in: path.domain) != nil
    }
  }

  /// The text of an attribute of a key's file; nil if the schema says nothing of the key.
  private func text(_ attribute: Name, _ file: KeyFile, _ found: Resolution) -> String? {
    let path = file.path
    return switch attribute {
    case .type: (file.wantedKind ?? found.kind).rawValue
    case .source: found.location.source(seenFrom: path.domain)
    case .forced: found.isForced ? "1" : "0"
    case .key: path.key.string
    case .domain: path.domain.string
    case .description: engine.summary(of: path.key, in: path.domain)
    }
  }

  /// Carries out setxattr(2). Setting `user.prefs.type` converts the value, or is EINVAL. Setting
  /// the others of `user.prefs.` on a key succeeds and changes nothing, because `cp -a` copies
  /// them.
  public func setExtendedAttribute(
    _ id: NodeID, _ name: String, _ value: [UInt8], now: Moment
  ) throws(TreeError) {
    guard name.hasPrefix(Self.prefix) else { throw .unsupported }
    guard let attribute = attributeName(name) else { throw .unsupported }
    let node = try node(id)
    try engine.requireWritable()
    let word = String(decoding: value.prefix { $0 != 0 }, as: UTF8.self)
    // `cp -a` of a scratch file sets this.
    if attribute == .type, word == Self.scratchType { return }
    switch node.content {
    case .directory, .detached: return
    case .key(let path):
      if attribute == .type {
        try texts.convert(KeyFile(node, path), to: try kind(word, node), now: now)
      }
    case .scratch(let file): try describe(node, file, attribute, word, now: now)
    }
  }

  private static let scratchType = "scratch"

  private func kind(_ word: String, _ node: Node) throws(TreeError) -> Kind {
    guard let kind = Kind(rawValue: word) else {
      throw log.refused(.invalid("\(node.subject): user.prefs.type: \"\(word)\" is not a type"))
    }
    return kind
  }

  /// Carries out setxattr(2) of `user.prefs.type` or `user.prefs.key` on a scratch file. A tool
  /// that does this puts a key back from a backup (`cp -a`, borg, restic), so the file becomes a
  /// key at once if its name can be a key's. Otherwise the type is for the key that a later rename
  /// makes (`rsync -X`).
  private func describe(
    _ node: Node, _ scratch: ScratchFile, _ attribute: Name, _ word: String, now: Moment
  ) throws(TreeError) {
    guard !scratch.isLink, attribute == .type || attribute == .key else { return }
    if attribute == .type { scratch.wantedKind = try kind(word, node) }
    let path = scratch.path
    guard case .domain(let domain) = path.parent, case .key(let key) = NameCodec.decode(path.name),
      attribute == .type || key.string == word, removedNames.source(of: node.id) == nil
    else { return }
    try keys.setKey(KeyPath(domain: domain, key: key), from: node, now: now)
  }

  /// Carries out removexattr(2). For `user.prefs.*` it succeeds and changes nothing, because
  /// `rsync -X` removes the attributes that the source file does not have.
  public func removeExtendedAttribute(_ id: NodeID, _ name: String) throws(TreeError) {
    try engine.requireWritable()
    guard name.hasPrefix("user.") else { throw .unsupported }
    if attributeName(name) == nil { throw .noAttribute }
  }
}
