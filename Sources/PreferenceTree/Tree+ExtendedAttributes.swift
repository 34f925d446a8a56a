import PreferenceModel
import PropertyList
import SystemCalls

// `user.prefs.*`.

extension Tree {
  private static let prefix = "user.prefs."

  private enum Name: String, CaseIterable {
    case type, source, forced, key, domain
  }

  /// listxattr(2): the names, each with its NUL.
  public func extendedAttributeNames(_ id: NodeID) throws(TreeError) -> [UInt8] {
    let names: [Name] =
      switch try node(id).subject {
      case .root, .detached: []
      case .scratch: [.type]
      case .domain: [.domain]
      case .key: Name.allCases
      }
    return names.flatMap { Array((Self.prefix + $0.rawValue).utf8) + [0] }
  }

  /// getxattr(2). What is not ours is not supported, so that programs that ask every file for
  /// its access list or label get a quick answer.
  public func extendedAttribute(_ id: NodeID, _ name: String) throws(TreeError) -> [UInt8] {
    guard name.hasPrefix("user.") else { throw .unsupported }
    guard let attribute = attributeName(name) else { throw .noAttribute }
    let node = try node(id)
    switch node.subject {
    case .root, .detached: throw .noAttribute
    case .scratch:
      guard attribute == .type else { throw .noAttribute }
      return Array(Self.scratchType.utf8)
    case .domain(let domain):
      guard attribute == .domain else { throw .noAttribute }
      return Array(domain.string.utf8)
    case .key(let path):
      guard let found = try resolve(path) else { throw .missing }
      if attribute == .type, let kind = node.wantedKind { return Array(kind.rawValue.utf8) }
      return Array(text(attribute, path, found).utf8)
    }
  }

  private func attributeName(_ name: String) -> Name? {
    name.hasPrefix(Self.prefix) ? Name(rawValue: String(name.dropFirst(Self.prefix.count))) : nil
  }

  private func text(_ attribute: Name, _ path: KeyPath, _ found: Resolution) -> String {
    switch attribute {
    case .type: found.value.kind.rawValue
    case .source: found.location.source(seenFrom: path.domain)
    case .forced: found.isForced ? "1" : "0"
    case .key: path.key.string
    case .domain: path.domain.string
    }
  }

  /// setxattr(2): `user.prefs.type` converts the value, or is EINVAL; the others succeed and
  /// change nothing, because `cp -a` copies them.
  public func setExtendedAttribute(
    _ id: NodeID, _ name: String, _ value: [UInt8], now: Instant
  ) throws(TreeError) {
    guard name.hasPrefix(Self.prefix) else { throw .unsupported }
    guard let attribute = attributeName(name) else { throw .unsupported }
    let node = try node(id)
    if engine.isReadOnly { throw .readOnly }
    let word = String(decoding: value.prefix { $0 != 0 }, as: UTF8.self)
    // cp -a of a temporary file.
    if attribute == .type, word == Self.scratchType { return }
    switch node.subject {
    case .root, .domain, .detached: return
    case .key(let path):
      if attribute == .type { try convert(node, path, to: try kind(word, node), now: now) }
    case .scratch(let path): try describe(node, path, attribute, word, now: now)
    }
  }

  private static let scratchType = "scratch"

  private func kind(_ word: String, _ node: Node) throws(TreeError) -> Kind {
    guard let kind = Kind(rawValue: word) else {
      throw refused(.invalid("\(subjectText(node)): there is no type of that name"))
    }
    return kind
  }

  /// A temporary file on which a tool sets its key's attributes is a key that is put back from a backup
  /// (cp -a, borg, restic), where its name can be a key's; else the type goes with the rename (rsync -X).
  private func describe(
    _ node: Node, _ path: ScratchPath, _ attribute: Name, _ word: String, now: Instant
  ) throws(TreeError) {
    guard node.type == .file, attribute == .type || attribute == .key else { return }
    if attribute == .type { node.scratch?.wantedKind = try kind(word, node) }
    guard case .domain(let domain) = path.parent, case .key(let key) = NameCodec.decode(path.name),
      attribute == .type || key.string == word, node.scratch?.movedFrom == nil
    else { return }
    try setKey(KeyPath(domain: domain, key: key), from: node, now: now)
  }

  private func convert(
    _ node: Node, _ path: KeyPath, to kind: Kind, now: Instant
  ) throws(TreeError) {
    try prepareSynchronize(node.id, now: now)
    guard let found = try resolve(path) else { throw .missing }
    if found.kind == kind {
      // What its creator writes next is of this type.
      (node.creation, node.wantedKind) = (nil, nil)
      return
    }
    let text = text(found, of: node)
    guard let value = ValueText.convert(found.value, text: text, to: kind) else {
      if text.isEmpty {
        // tar sets the attributes of a file before it writes it.
        (node.creation, node.wantedKind) = (nil, kind)
        return
      }
      throw refused(
        .notAValue("\(subjectText(node)): its \(found.value.kind.rawValue) is no \(kind.rawValue)"))
    }
    let keepsText = Recogniser.value(of: text, kind: kind) == value
    let written = keepsText ? self.written(text, value) : .canonical
    let wasOwn = isOwn(found, path)
    // As every setxattr(2) it leaves the modification time: cp -a and restic have set that before.
    let kept = Description(modified: found.modified)
    let changeset = try apply([
      .set(path.key, path.domain, value, written), .describe(path.key, path.domain, kept),
    ])
    node.changed = .now
    (node.creation, node.wantedKind) = (nil, nil)
    revert(node)
    propagate(changeset, known: [path], addsEntries: !wasOwn)
  }

  /// removexattr(2): of ours it succeeds and changes nothing, because `rsync -X` removes what the other file has
  /// not.
  public func removeExtendedAttribute(_ id: NodeID, _ name: String) throws(TreeError) {
    if engine.isReadOnly { throw .readOnly }
    guard name.hasPrefix("user.") else { throw .unsupported }
    if attributeName(name) == nil { throw .noAttribute }
  }
}
