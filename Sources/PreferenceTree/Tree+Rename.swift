import PreferenceModel
import PropertyList
import SystemCalls

// rename(2) and renameat2(2): one transaction of the engine each.

extension Tree {
  /// Renames a key or a domain.
  ///
  /// A key renamed over another sets it: the target keeps its type, and a text that is no value
  /// of it is EPERM, with nothing changed (TOOLS.md says why not EINVAL).
  public func rename(
    _ oldParent: NodeID, _ oldName: [UInt8], to newParent: NodeID, _ newName: [UInt8],
    _ mode: RenameMode, now: Instant
  ) throws(TreeError) {
    if engine.isReadOnly { throw .readOnly }
    switch (try node(oldParent).subject, try node(newParent).subject) {
    case (.root, .root):
      try renameDomain(try validated(oldName), to: try validated(newName), mode)
    case (.domain(let domain), .domain):
      guard let old = try path(domain, try validated(oldName)) else { throw .missing }
      let new = try targetPath(newParent, newName)
      if old == new { return }
      if mode == .exchange {
        try exchange(old, new, now: now)
      } else {
        try rename(old, to: new, mode, now: now)
      }
    case (.root, .domain), (.domain, .root):
      throw refused(.refused("a key stays a key in a domain, and a domain a directory at the root"))
    default: throw .notDirectory
    }
  }

  private func targetPath(_ parent: NodeID, _ name: [UInt8]) throws(TreeError) -> KeyPath {
    let domain = try domain(parent)
    if let path = try path(domain, try validated(name)) { return path }
    return try newPath(parent, name)
  }

  private func rename(
    _ old: KeyPath, to new: KeyPath, _ mode: RenameMode, now: Instant
  ) throws(TreeError) {
    guard let source = try settled(old, now: now) else { throw .missing }
    let target = try resolve(new, now: now)
    if mode == .keep, target != nil { throw .exists }
    let text = sourceText(source)
    let kind = target?.value.kind ?? removals[new]?.kind
    let value = try self.value(source, text, as: kind, over: target?.value, new)
    let targetNode = table[new]
    let targetText = try targetNode.map { node throws(TreeError) in try shownText(node) }
    let changeset = try apply([
      .set(new.key, new.domain, value, written(text, value)), .remove(old.key, old.domain),
    ])
    if let targetNode {
      targetNode.modified = target?.modified ?? .now
      dropCache(targetNode)
      table.detach(targetNode, text: targetText ?? [])
    }
    removals[new] = nil
    let node = table[old]
    if let node {
      dropCache(node)
      node.editor = nil
      if target != nil { node.creation = nil }
      table.move(node, to: new)
    }
    removed(old, nil, [], kind: source.value.kind, now: now)
    propagate(changeset, known: [old, new], addsEntries: true)
    if let node { effects += [.dropAttributes(node.id), .dropContents(node.id)] }
  }

  /// The source as it is once text that waits for a decision got it.
  private func settled(_ path: KeyPath, now: Instant) throws(TreeError) -> Resolution? {
    do {
      if let node = table[path] { try prepareSynchronize(node.id, now: now) }
    } catch {
      // Never EINVAL: programs then move the key aside, try again, and delete both.
      if case .notAValue(let sentence) = error { throw .refused(sentence) }
      throw error
    }
    return try resolve(path, now: now)
  }

  private func sourceText(_ source: Resolution) -> [UInt8] {
    source.text ?? ValueText.canonical(source.value, style: options.style)
  }

  private func value(
    _ source: Resolution, _ text: [UInt8], as kind: Kind?, over old: Value?, _ new: KeyPath
  ) throws(TreeError) -> Value {
    // As JSON with dates and data as strings, the target tells what was a date.
    let template = options.style == .json ? old : nil
    guard let kind, kind != source.value.kind || template != nil else { return source.value }
    if let value = Recogniser.value(of: text, kind: kind, template: template) { return value }
    guard old != nil else { return source.value }
    throw refused(
      .refused("\(new.domain) \(new.key): the renamed file's text is no \(kind.rawValue)"))
  }

  private func exchange(_ one: KeyPath, _ other: KeyPath, now: Instant) throws(TreeError) {
    guard let first = try settled(one, now: now), let second = try settled(other, now: now) else {
      throw .missing
    }
    let (firstText, secondText) = (sourceText(first), sourceText(second))
    let changeset = try apply([
      .set(other.key, other.domain, first.value, written(firstText, first.value)),
      .set(one.key, one.domain, second.value, written(secondText, second.value)),
    ])
    if let node = table[one], let otherNode = table[other] { table.exchange(node, otherNode) }
    for path in [one, other] {
      guard let node = table[path] else { continue }
      dropCache(node)
      node.editor = nil
      effects += [.dropAttributes(node.id), .dropContents(node.id)]
    }
    propagate(changeset, known: [one, other], addsEntries: true)
  }

  private func renameDomain(
    _ oldName: String, to newName: String, _ mode: RenameMode
  ) throws(TreeError) {
    guard let old = try domain(named: oldName) else { throw .missing }
    guard let new = try domain(named: newName) else {
      throw refused(.invalid("\(newName): not the canonical name of a domain"))
    }
    if old == new { return }
    if mode == .exchange { throw refused(.invalid("\(old): domains cannot be exchanged")) }
    let isThere = try asTreeError { () throws(EngineError) in try engine.hasDomain(new) }
    if mode == .keep, isThere { throw .exists }
    let changeset = try apply([.renameDomain(old, to: new)])
    table.remove(new)
    table.move(old, to: new)
    for key in answered.forget(old) + removals.keys.filter({ $0.domain == old }).map(\.key) {
      removals[KeyPath(domain: old, key: key)] = nil
      if let node = table[new] { dropEntry(node.id, key) }
    }
    rootChanged(at: changeset.time)
    entriesChanged(new, at: changeset.time)
    for item in changeset.items {
      if case .set(let key, _, _) = item.edit, let node = table[KeyPath(domain: new, key: key)] {
        effects.append(.dropAttributes(node.id))
      }
    }
  }
}
