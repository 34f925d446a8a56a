import PreferenceModel
import PropertyList
import SystemCalls

// rename(2) and renameat2(2): one transaction of the engine each.

extension Tree {
  /// Renames a key or a domain.
  ///
  /// A key renamed over another sets it: the target keeps its type, and a text that is no value
  /// of it is EPERM, with nothing changed (after EINVAL Foundation's atomic
  /// write moves the key aside, tries again and deletes both).
  public func rename(
    _ oldParent: NodeID, _ oldName: [UInt8], to newParent: NodeID, _ newName: [UInt8],
    _ mode: RenameMode, now: Instant
  ) throws(TreeError) {
    if engine.isReadOnly { throw .readOnly }
    let (oldText, newText) = (try validated(oldName), try validated(newName))
    switch (try node(oldParent).subject, try node(newParent).subject) {
    case (.root, .root):
      if let node = table[ScratchPath(parent: .root, name: oldText)] {
        return try renameRootScratch(node, to: newText)
      }
      return try renameDomain(oldText, to: newText, mode)
    case (.root, _), (_, .root):
      throw refused(.refused("a key stays a key in a domain, and a domain a directory at the root"))
    default: break
    }
    switch try find(oldParent, oldText, now: now) {
    case .nothing: throw .missing
    case .scratch(let node):
      try renameScratch(node, to: newParent, newText, mode, now: now)
    case .key(let old, _):
      let directory = try scratchParent(newParent)
      let target = try find(newParent, newText, now: now)
      if case .key(let new, _) = target {
        if old != new { try replace(old, new, mode, now: now) }
      } else if isMoveAway(newText, in: directory, target, now: now) {
        let path = ScratchPath(parent: directory, name: newText)
        try moveAway(old, to: path, mode, now: now)
      } else {
        try replace(old, try newPath(newParent, newName), mode, now: now)
      }
    }
  }

  private func renameRootScratch(_ node: Node, to name: String) throws(TreeError) {
    let path = ScratchPath(parent: .root, name: name)
    guard ScratchName.isRootDirectory(name), table[path] == nil else {
      throw refused(.refused("\(name): a tool's temporary directory does not become a domain"))
    }
    table.move(node, to: path)
    rootChanged(at: .now)
  }

  private func isMoveAway(
    _ name: String, in parent: ScratchPath.Parent, _ target: Found, now: Instant
  ) -> Bool {
    if case .scratch = target { return true }
    return isScratchName(name, in: parent, .rename)
  }

  private func replace(
    _ old: KeyPath, _ new: KeyPath, _ mode: RenameMode, now: Instant
  ) throws(TreeError) {
    if mode == .exchange {
      try exchange(old, new, now: now)
    } else {
      try rename(old, to: new, mode, now: now)
    }
  }

  private func rename(
    _ old: KeyPath, to new: KeyPath, _ mode: RenameMode, now: Instant
  ) throws(TreeError) {
    guard let source = try settled(old, now: now) else { throw .missing }
    if mode == .keep, try resolve(new, now: now) != nil { throw .exists }
    let target = try target(new, now: now)
    let text = sourceText(source)
    let kind = target?.value.kind ?? removals[new]?.kind
    let value = try self.value(source, text, as: kind, over: target?.value, new)
    let displaced = try displaced(new)
    let changeset = try apply([
      .set(new.key, new.domain, value, written(text, value)),
      .describe(
        new.key, new.domain, Description(mode: source.mode, modified: source.modified)),
      .remove(old.key, old.domain),
    ])
    detach(displaced, at: target?.modified)
    endHold(new)
    let node = table[old]
    if let node {
      dropCache(node)
      node.editor = nil
      if target != nil { node.creation = nil }
      node.changed = .now
      table.move(node, to: new)
    }
    removed(old, nil, [], kind: source.value.kind, now: now)
    propagate(changeset, known: [old, new], addsEntries: true)
    if let node { effects += [.dropAttributes(node.id), .dropContents(node.id)] }
  }

  /// The source as it is once text that waits for a decision got it.
  func settled(_ path: KeyPath, now: Instant) throws(TreeError) -> Resolution? {
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
    if let value = Recogniser.value(of: text, kind: kind, template: template, shown: old) {
      return value
    }
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
    endHolds(of: old)
    endHolds(of: new)
    guard table.scratchNodes(in: .domain(new)).isEmpty else {
      throw .notEmpty("\(new): it has temporary files")
    }
    let changeset = try apply([.renameDomain(old, to: new)])
    for path in removals.keys where path.domain == new { removals[path] = nil }
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
