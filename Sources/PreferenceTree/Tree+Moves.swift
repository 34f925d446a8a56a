import PreferenceModel
import PropertyList
import SystemCalls

// Keys become scratch files, and scratch files become keys: see `Departures`.

extension Tree {
  /// rename(2) of a key to a scratch name: the mount shows the move, the engine keeps the key until
  /// it is clear what was meant.
  func moveAway(
    _ old: KeyPath, to new: ScratchPath, _ mode: RenameMode, now: Moment
  ) throws(TreeError) {
    guard case .domain = new.parent, mode != .exchange else {
      throw refused(.refused("\(old): a key stays in a domain, and is exchanged with keys only"))
    }
    guard let source = try decided(old, now: now) else { throw .missing }
    guard !source.isReadOnly, source.location.domain == old.domain,
      [.user, .host].contains(source.location.place)
    else {
      let place = source.location.source(seenFrom: old.domain)
      throw refused(.refused("\(old): it comes from \(place), which a rename does not reach"))
    }
    if table[new] != nil, mode == .keep { throw .exists }
    let (node, file) = table.file(of: old)
    let text = try shownText(node)
    try checkRoom(for: text.count + ScratchSpace.overhead, new.name)
    try replaceScratch(table[new], now: now)
    dropCachedText(file)
    (node.modified, node.changed) = (source.modified, now.time)
    table.makeScratch(node, file, new, text: text, mode: source.mode)
    departures.moveAway(
      old, Departures.Former(kind: source.kind), to: node.id, at: now.instant)
    wake(at: departures.deadline ?? now.instant)
    entriesChanged(old.domain, at: now.time)
    entriesChanged(new.parent, at: now.time)
  }

  /// The second is over and nobody made the key again: the scratch file becomes a key under its
  /// own name. If the engine refuses that, the key shows again under its old name, and the scratch
  /// file stays.
  func completeMove(_ old: KeyPath, _ holder: NodeID, now: Moment) {
    guard let node = table[holder], let scratch = node.scratch, let text = scratch.text,
      case .domain(let domain) = scratch.path.parent, let source = try? resolve(old)
    else { return show(old, now: now) }
    let named: Key? =
      if case .key(let key) = NameCodec.decode(scratch.path.name) { key } else { nil }
    let new = KeyPath(domain: domain, key: named ?? Key(scratch.path.name))
    if new == old {
      table.makeKey(node, new)
      return
    }
    do throws(TreeError) {
      if named != nil, try resolve(new) != nil {
        throw refused(.refused("\(new): somebody else made it meanwhile"))
      }
      let intents = try renaming(old, to: new, scratch, text, source, node)
      try transact(intents, touching: named == nil ? [old] : [old, new]) { _ in
        if named != nil {
          table.makeKey(node, new)
        } else {
          removeScratch(node, now: now)
          effects.append(
            .invalidateEntry(parent: table[domain]?.id ?? .root, name: scratch.path.name))
        }
      }
      effects.append(.invalidateAttributes(node.id))
    } catch {
      // The refusal has been logged.
    }
    show(old, now: now)
  }

  /// The intents that rename a key that was moved away, with what was written and changed since.
  private func renaming(
    _ old: KeyPath, to new: KeyPath, _ scratch: ScratchFile, _ text: [UInt8],
    _ source: Resolution, _ node: Node
  ) throws(TreeError) -> [Intent] {
    let isUnchanged = text == sourceText(source)
    let value = isUnchanged ? source.value : Recogniser.value(of: text, kind: source.kind)
    let set =
      if let value {
        Intent.set(new.key, new.domain, value, written(text, value))
      } else {
        try setting(new, to: text, existing: nil)
      }
    let modified = scratch.hasOwnTime ? node.modified : isUnchanged ? source.modified : nil
    let kept = Description(mode: scratch.mode ?? source.mode, modified: modified)
    return [set, .describe(new.key, new.domain, kept), .remove(old.key, old.domain)]
  }

  /// open(2) with O_CREAT of a key that was moved away: the key as if it had been truncated.
  func remake(_ path: KeyPath, now: Moment) throws(TreeError) -> Entry {
    departures.forget(path)
    let node = table.file(of: path).node
    try truncate(node, to: 0, handle: .none, now: now)
    entriesChanged(path.domain, at: now.time)
    return try entry(node)
  }

  /// rename(2) of a scratch file or directory.
  func renameScratch(
    _ node: Node, to directory: any FileDirectory, _ name: String, _ mode: RenameMode,
    now: Moment
  ) throws(TreeError) {
    guard mode != .exchange else {
      throw refused(.invalid("\(node.subject): temporary files cannot be exchanged"))
    }
    let found = try find(name, in: directory, now: now)
    if mode == .keep, case .nothing = found {} else if mode == .keep { throw .exists }
    if case .scratch(let existing) = found, existing === node { return }
    if case .key(let path, _) = found { return try setKey(path, from: node, now: now) }
    if case .domain(let domain) = directory.filesParent, becomesKey(node, name, directory) {
      let key = try newKey(name, "\(domain) \(name)")
      try setKey(KeyPath(domain: domain, key: key), from: node, now: now)
      if case .scratch(let existing) = found { try replaceScratch(existing, now: now) }
      return
    }
    if case .scratch(let existing) = found {
      guard (existing.type == .directory) == (node.type == .directory) else {
        throw existing.type == .directory ? .isDirectory : .notDirectory
      }
      try replaceScratch(existing, now: now)
    }
    if let old = node.scratchPath { entriesChanged(old.parent, at: now.time) }
    table.rename(node, to: ScratchPath(parent: directory.filesParent, name: name))
    entriesChanged(directory.filesParent, at: now.time)
  }

  /// Whether a scratch file becomes a key under the new name. A type that a tool has set on it says
  /// that it does, whatever the name looks like.
  private func becomesKey(
    _ node: Node, _ name: String, _ directory: any FileDirectory
  ) -> Bool {
    guard node.type == .file else { return false }
    if node.scratch?.wantedKind != nil, !NameCodec.isScratchPattern(name) { return true }
    let making = ScratchName.Making.file(exclusively: false, readsToo: false)
    return !isScratchName(name, in: directory, making)
  }

  /// rename(2) of a scratch file over a key, or to a new key's name: sets the key, in one step.
  func setKey(_ path: KeyPath, from node: Node, now: Moment) throws(TreeError) {
    guard let scratch = node.scratch, let text = scratch.text else {
      throw refused(.refused("\(path): only a file can become a key"))
    }
    let existing = try target(path, now: now)
    let source = departures.source(of: node.id)
    let isLate = source == nil && mayComeLater(text, existing)
    var intents =
      isLate
      ? []
      : [
        try setting(path, to: text, existing: existing, from: source, wanted: scratch.wantedKind)
      ]
    let description = Description(
      mode: scratch.mode, modified: scratch.hasOwnTime ? node.modified : nil)
    if !description.isEmpty { intents.append(.describe(path.key, path.domain, description)) }
    if let source, source != path { intents.append(.remove(source.key, source.domain)) }
    let displaced = try displaced(path)
    try transact(intents, touching: [path]) { _ in
      detach(displaced, at: existing?.modified ?? now.time)
      departures.forget(path)
      if let source { departures.forget(source) }
      let file = table.makeKey(node, path)
      node.changed = now.time
      if isLate { file.editorMemory = TextEditor.Memory(startsEmpty: true) }
      if text.isEmpty { file.wantedKind = scratch.wantedKind }
      entriesChanged(scratch.path.parent, at: now.time)
    }
    entriesChanged(path.domain, at: now.time)
    invalidateFile(node.id)
  }

  /// Whether an empty file that replaces a key waits for its text: it may be written after the
  /// rename, by the descriptor that made the file.
  private func mayComeLater(_ text: [UInt8], _ existing: Resolution?) -> Bool {
    guard let existing, text.isEmpty, !existing.isReadOnly else { return false }
    return ![.string, .data].contains(existing.kind)
  }

  /// The intent that sets a key to a text. The value gets the type that the key has, or had a
  /// moment ago; the type of a new key follows from the text. Throws EPERM, never EINVAL, where the
  /// text is not a value of the type.
  /// - Parameters:
  ///   - moved: the key that the file was a moment ago; its type goes along to a new name.
  ///   - wanted: the type that a tool has asked for; it counts if the text is a value of it.
  func setting(
    _ path: KeyPath, to text: [UInt8], existing: Resolution?, from moved: KeyPath? = nil,
    wanted: Kind? = nil
  ) throws(TreeError) -> Intent {
    guard text.count <= TextEditor.largest else { throw tooLarge("\(path)") }
    if let existing { try requireWritable(existing, path) }
    if let wanted, let value = Recogniser.value(of: text, kind: wanted) {
      return .set(path.key, path.domain, value, written(text, value))
    }
    let template = options.style == .json ? existing?.value : nil
    let kind =
      existing?.kind ?? moved.flatMap { departures.former($0)?.kind }
      ?? departures.former(path)?.kind
    let known = kind.flatMap {
      Recogniser.value(of: text, kind: $0, template: template, shown: existing?.value)
    }
    if let existing, known == nil { throw wrongType(path, existing.kind) }
    let value = known ?? newValue(of: text)
    return .set(path.key, path.domain, value, written(text, value))
  }

  /// EPERM for a file that is renamed over a key of another type.
  func wrongType(_ path: KeyPath, _ kind: Kind) -> TreeError {
    refused(.refused("\(path): the renamed file's text is not of the key's type, \(kind.rawValue)"))
  }

  /// The value that a new key's text denotes.
  private func newValue(of text: [UInt8]) -> Value {
    guard options.createsStrings else { return Inference.value(of: text) }
    return Recogniser.value(of: text, kind: .string) ?? .data(text)
  }
}
