import PreferenceModel
import PropertyList
import SystemCalls

// `user.prefs.*` (SPEC section 4).

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
    switch try node(id).subject {
    case .root, .detached: throw .noAttribute
    case .scratch:
      guard attribute == .type else { throw .noAttribute }
      return Array("scratch".utf8)
    case .domain(let domain):
      guard attribute == .domain else { throw .noAttribute }
      return Array(domain.string.utf8)
    case .key(let path):
      guard let found = try resolve(path) else { throw .missing }
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
    guard attribute == .type, case .key(let path) = node.subject else { return }
    let word = String(decoding: value.prefix { $0 != 0 }, as: UTF8.self)
    guard let kind = Kind(rawValue: word) else {
      throw refused(.invalid("\(subjectText(node)): there is no type of that name"))
    }
    try convert(node, path, to: kind, now: now)
  }

  private func convert(
    _ node: Node, _ path: KeyPath, to kind: Kind, now: Instant
  ) throws(TreeError) {
    try prepareSynchronize(node.id, now: now)
    guard let found = try resolve(path) else { throw .missing }
    if found.value.kind == kind { return }
    let text = text(found, of: node)
    guard let value = ValueText.convert(found.value, text: text, to: kind) else {
      throw refused(
        .notAValue("\(subjectText(node)): its \(found.value.kind.rawValue) is no \(kind.rawValue)"))
    }
    let keepsText = Recogniser.value(of: text, kind: kind) == value
    let written = keepsText ? self.written(text, value) : .canonical
    let wasOwn = isOwn(found, path)
    let changeset = try apply([.set(path.key, path.domain, value, written)])
    node.creation = nil
    revert(node)
    propagate(changeset, known: [path], addsEntries: !wasOwn)
  }

  /// removexattr(2).
  public func removeExtendedAttribute(_ id: NodeID, _ name: String) throws(TreeError) {
    if engine.isReadOnly { throw .readOnly }
    guard name.hasPrefix("user.") else { throw .unsupported }
    throw attributeName(name) == nil ? .noAttribute : .refused("\(name) belongs to the key")
  }
}
